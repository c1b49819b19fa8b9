//! Registration, recalibration, suspension: everything that changes a clock's parameters.

use super::cold::{Pair, State};
use super::latch::{Clock, Parameters};
use super::scale::{MAX_HZ, MIN_HZ, Scale};
use super::source::{SYSTEM, Source, SourceError, clock_ns, index_of, system_reference};

/// The most that an update may change the rate to remove an error: 500 ppm, as the kernel slews its own clock.
const SLEW_LIMIT: f64 = 500e-6;
/// The time for which a counter of unknown rate is first compared with the reference.
const FIRST_BASELINE_NS: u64 = 10_000_000;
/// Differences below this are not taken for a suspension or a jump of the counter.
const SHORT_NS: u64 = 1_000_000;
/// Parameters older than this when they are published are made anew.
const NEAR_NS: f64 = 1_000.0;
/// A writer may be held up for this long between its last check and the switch to a slower rate without turning time
/// back. The condition is that the step forward which this costs is at most [`LARGEST_STEP_NS`].
const HELD_UP_NS: f64 = 10_000_000.0;
/// About the time of two reads of the clock.
const LARGEST_STEP_NS: f64 = 20.0;
/// The longest time between two updates of a wide counter.
const PERIOD_NS: u64 = 1_000_000_000;

/// The findings and actions of [`Clock::maintain`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MaintenanceReport {
    /// The action.
    pub did: Maintained,
    /// The clock's reading minus the reference's, before the update, in nanoseconds.
    pub error_ns: i64,
    /// The rate now in use against the nominal or measured one, in parts per million.
    pub slew_ppm: f64,
    /// Call again within this many nanoseconds.
    pub next_within_ns: u64,
}

/// The action of an update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Maintained {
    /// The clock reads the system's; there is nothing to maintain.
    Nothing,
    /// The rate was adjusted; time did not step.
    Slewed,
    /// The machine had been suspended, or the counter had stopped or jumped: time moved forward to the reference.
    Resumed,
}

fn signed_distance(from: u64, to: u64, bits: u8) -> i64 {
    let unused = u32::from(64 - bits) & 63;
    (to.wrapping_sub(from) << unused) as i64 >> unused
}

fn slept_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME).saturating_sub(clock_ns(libc::CLOCK_MONOTONIC))
}

impl Clock {
    /// Moves the clock to another counter. Time continues from its present reading without a step. A counter of unknown
    /// rate is first measured for ten milliseconds.
    ///
    /// # Errors
    ///
    /// [`SourceError`] for an unsupported width, or when too many counters were registered.
    pub fn try_register(&self, source: Source) -> Result<(), SourceError> {
        if !(8..=64).contains(&source.bits) {
            return Err(SourceError::Width { bits: source.bits });
        }
        if let Some(hz) = source.hz.filter(|hz| !(MIN_HZ..=MAX_HZ).contains(hz)) {
            return Err(SourceError::Rate { hz: hz as u64 });
        }
        let index = index_of(source.read)?;
        let mut state = self.cold.state();
        let ns_per_cycle = match source.hz {
            Some(hz) => 1e9 / hz,
            None => measure_rate(&source),
        };
        let was_new = state.source.is_none();
        let first = Pair::read(&source);
        // A clock that was on the system's and shares its reference continues; a clock that never ran starts at the
        // reference.
        let starts_at_reference =
            was_new && source.reference as usize != system_reference as *const () as usize;
        *state = State {
            source: Some(source),
            first,
            last: first,
            ns_per_cycle,
            slept_ns: slept_ns(),
            between: state.between,
        };
        let scale = Scale::from_ns_per_cycle(ns_per_cycle);
        self.publish_with(&state, &source, &|| {
            // The new counter before the old one: the time between the two reads moves time forward, never back.
            let (epoch_cycles, epoch_ns) = if starts_at_reference {
                (first.cycles, first.reference_ns)
            } else {
                ((source.read)(), self.now_ns())
            };
            Parameters { epoch_cycles, epoch_ns, scale, bits: source.bits, source: index, is_frozen: false }
        });
        Ok(())
    }

    /// As [`try_register`](Self::try_register); a source that is refused changes nothing.
    pub fn register(&self, source: Source) -> bool {
        self.try_register(source).is_ok()
    }

    /// Compares with the reference and adjusts the rate. To be called within every `next_within_ns`; the error then
    /// stays below the reference's own reading error plus 500 ppm of the period.
    pub fn maintain(&self) -> MaintenanceReport {
        let mut state = self.cold.state();
        let Some(source) = state.source else {
            return MaintenanceReport {
                did: Maintained::Nothing,
                error_ns: 0,
                slew_ppm: 0.0,
                next_within_ns: u64::MAX,
            };
        };
        let old = self.parameters();
        let pair = Pair::read(&source);
        let own_ns = old.to_ns(pair.cycles);
        let error_ns = own_ns.wrapping_sub(pair.reference_ns) as i64;
        let period_ns = period_ns(&source, state.ns_per_cycle);
        let report = |did, slew: f64| MaintenanceReport {
            did,
            error_ns,
            slew_ppm: slew * 1e6,
            next_within_ns: period_ns,
        };
        let elapsed_ns = pair.reference_ns.saturating_sub(state.last.reference_ns);
        let distance = signed_distance(state.last.cycles, pair.cycles, source.bits);
        if old.is_frozen || state.has_jumped(distance, elapsed_ns) {
            state.first = pair;
            state.last = pair;
            // Ahead of the reference by less than a second: stand where readers already are.
            let is_ahead = (0..1_000_000_000).contains(&error_ns);
            let epoch_ns = if is_ahead { own_ns } else { pair.reference_ns.max(old.epoch_ns) };
            let scale = Scale::from_ns_per_cycle(state.ns_per_cycle);
            let epoch_cycles = pair.cycles;
            self.publish_with(&state, &source, &|| Parameters { epoch_cycles, epoch_ns, scale, ..old });
            return report(Maintained::Resumed, 0.0);
        }
        state.last = Pair { cycles: state.last.cycles.wrapping_add(distance as u64), ..pair };
        state.refine_rate();
        // Called later than asked for, the caller will be late again: the error goes over that time.
        let horizon_ns = period_ns.max(elapsed_ns) as f64;
        let slew = (-known_error(error_ns, pair.uncertainty_ns) / horizon_ns).clamp(-SLEW_LIMIT, SLEW_LIMIT);
        let scale = Scale::from_ns_per_cycle(state.ns_per_cycle * (1.0 + slew));
        let head_start_ns = head_start_ns(old.scale, scale);
        self.publish_with(&state, &source, &|| {
            let epoch_cycles = (source.read)();
            Parameters { epoch_cycles, epoch_ns: old.to_ns(epoch_cycles) + head_start_ns, scale, ..old }
        });
        report(Maintained::Slewed, slew)
    }

    /// Stops time: reads return the present moment until [`resume`](Self::resume). For counters that stop, or
    /// jump, while the machine sleeps.
    pub fn suspend(&self) {
        let state = self.cold.state();
        let old = self.parameters();
        let Some(source) = state.source.filter(|_| !old.is_frozen) else { return };
        self.publish_with(&state, &source, &|| {
            let reading = self.read();
            Parameters { epoch_cycles: reading.cycles, epoch_ns: reading.ns, is_frozen: true, ..old }
        });
    }

    /// Lets time continue from where it stopped, independently of the counter's value since.
    pub fn resume(&self) {
        let mut state = self.cold.state();
        let old = self.parameters();
        let Some(source) = state.source.filter(|_| old.is_frozen) else { return };
        state.first = Pair::read(&source);
        state.last = state.first;
        state.slept_ns = slept_ns();
        self.publish_with(&state, &source, &|| Parameters {
            epoch_cycles: (source.read)(),
            is_frozen: false,
            ..old
        });
    }

    /// True when time comes from a registered counter rather than from the system's clock.
    pub fn uses_counter(&self) -> bool {
        self.parameters().source != SYSTEM
    }

    /// Has `interrupt` called at each step of every later update, where a signal might strike: for tests.
    pub fn interrupt_updates_with(&self, interrupt: Option<fn()>) {
        self.cold.state().between = interrupt;
    }

    fn publish_with(&self, state: &State, source: &Source, make: &dyn Fn() -> Parameters) {
        let near = (NEAR_NS / state.ns_per_cycle) as i64 + 1;
        let is_fresh = |made: &Parameters| {
            let age = signed_distance(made.epoch_cycles, (source.read)(), source.bits);
            made.is_frozen || age.abs() <= near
        };
        let between = state.between;
        self.publish(make, &is_fresh, &mut || {
            if let Some(between) = between {
                between();
            }
        });
    }
}

impl State {
    /// Moves the rate as far as the whole baseline demands and no further: an update whose pair was read slowly carries
    /// little information and changes little.
    fn refine_rate(&mut self) {
        let baseline_ns = self.last.reference_ns.saturating_sub(self.first.reference_ns);
        if baseline_ns <= FIRST_BASELINE_NS {
            return;
        }
        let measured = baseline_ns as f64 / self.last.cycles.wrapping_sub(self.first.cycles) as f64;
        let uncertainty_ns = self.first.uncertainty_ns as f64 + self.last.uncertainty_ns as f64;
        let half_width = measured * (uncertainty_ns / baseline_ns as f64).min(1.0);
        self.ns_per_cycle = self.ns_per_cycle.clamp(measured - half_width, measured + half_width);
    }

    /// True when the counter did not move as the reference did, or the machine slept, since the last pair.
    fn has_jumped(&mut self, distance: i64, elapsed_ns: u64) -> bool {
        let slept = slept_ns();
        let was_suspended = slept.saturating_sub(self.slept_ns) > SHORT_NS;
        self.slept_ns = slept;
        let expected = elapsed_ns as f64 / self.ns_per_cycle;
        let tolerance = expected * 0.1 + SHORT_NS as f64 / self.ns_per_cycle;
        was_suspended || (distance as f64 - expected).abs() > tolerance
    }
}

/// The part of `error_ns` that the pair's own uncertainty does not explain.
fn known_error(error_ns: i64, uncertainty_ns: u64) -> f64 {
    let known = error_ns.unsigned_abs().saturating_sub(uncertainty_ns) as f64;
    if error_ns < 0 { -known } else { known }
}

/// The height above the old line, in nanoseconds, at which the line of the `new` rate starts.
///
/// One for rounding: a reader on the old line may already have been given a whole nanosecond that only the old and the
/// new part make up together. The rest for a slower rate: while the writer is held up before the switch, readers run
/// ahead of the new line by the difference of the rates. The next update takes the bias off.
fn head_start_ns(old: Scale, new: Scale) -> u64 {
    let slower_by = 1.0 - new.ns_per_cycle() / old.ns_per_cycle();
    1 + (slower_by * HELD_UP_NS).ceil().clamp(0.0, LARGEST_STEP_NS) as u64
}

/// A quarter of the counter's wrap, at most a second.
fn period_ns(source: &Source, ns_per_cycle: f64) -> u64 {
    let quarter_wrap_ns = (f64::from(source.bits) - 2.0).exp2() * ns_per_cycle;
    quarter_wrap_ns.min(PERIOD_NS as f64) as u64
}

/// Nanoseconds per cycle over a first short baseline.
fn measure_rate(source: &Source) -> f64 {
    let first = Pair::read(source);
    let mut last = first;
    let mut cycles = 0;
    while last.reference_ns.wrapping_sub(first.reference_ns) < FIRST_BASELINE_NS {
        let next = Pair::read(source);
        cycles += signed_distance(last.cycles, next.cycles, source.bits);
        last = next;
    }
    last.reference_ns.wrapping_sub(first.reference_ns) as f64 / cycles.max(1) as f64
}
