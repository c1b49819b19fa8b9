//! The number of calls recorded a second. For a function that is called a million times a second, a thousand calls
//! spread over them say as much as all, and cost next to nothing.
//!
//! The engine counts every call, and begins to record those whose position lies below a bound. The bound follows the
//! function's rate of calls, so that the recorded calls spread evenly over all. When the rate rises, the bound is too
//! high for a moment: then the allowance runs out, and recording pauses until it grows again.

use crate::recorder::native::shared_memory::Memory;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// The interval at which bounds are set.
pub(super) const STEP: Duration = Duration::from_millis(10);
/// The time for which an unused allowance is kept.
const KEPT: Duration = Duration::from_millis(50);
/// The time over which the rate of calls is averaged.
const FOLLOWED: Duration = Duration::from_millis(50);

/// The rate of recorded calls of each region.
pub(super) struct Pace {
    per_second: u64,
    stepped: Instant,
    regions: Vec<OfRegion>,
}

impl Pace {
    /// Begins. The first calls may be recorded at once.
    pub(super) fn new(per_second: u64, regions: usize, memory: &Memory) -> Pace {
        memory.control().is_paced.store(1, Release);
        let mut pace = Pace { per_second, stepped: Instant::now(), regions: Vec::new() };
        pace.regions.resize_with(regions, OfRegion::default);
        pace.step(memory, Duration::ZERO);
        pace
    }

    /// Sets bounds and allowances, when a step is due.
    pub(super) fn keep(&mut self, memory: &Memory) {
        let elapsed = self.stepped.elapsed();
        if elapsed >= STEP {
            self.stepped = Instant::now();
            self.step(memory, elapsed);
        }
    }

    fn step(&mut self, memory: &Memory, elapsed: Duration) {
        for (number, own) in self.regions.iter_mut().enumerate() {
            let (calls, taken) =
                (memory.region(number).calls.load(Acquire), memory.region(number).taken.load(Acquire));
            let (bound, allowed) = own.step(self.per_second, elapsed, calls, taken);
            memory.region(number).allowed.store(allowed, Release);
            memory.region(number).bound.store(bound, Release);
        }
    }
}

#[derive(Default)]
struct OfRegion {
    calls: u64,
    /// Calls a second, and for how long that is known.
    rate: f64,
    known: f64,
    /// Calls that may have been recorded by now.
    allowed: f64,
}

impl OfRegion {
    /// After some time: the position below which calls are recorded, and how many may have been by now.
    fn step(&mut self, per_second: u64, elapsed: Duration, calls: u64, taken: u64) -> (u64, u64) {
        let (wanted, seconds) = (per_second as f64, elapsed.as_secs_f64());
        let made = calls.saturating_sub(std::mem::replace(&mut self.calls, calls)) as f64;
        self.known = (self.known + seconds).min(FOLLOWED.as_secs_f64());
        if seconds > 0.0 {
            let share = (seconds / self.known).min(1.0);
            self.rate += share * (made / seconds - self.rate);
        }
        let most = (wanted * KEPT.as_secs_f64()).max(1.0);
        self.allowed = (self.allowed + wanted * seconds).min(taken as f64 + most);
        if seconds == 0.0 {
            self.allowed = taken as f64 + 1.0;
        }
        let bound = match self.rate > wanted {
            true => (wanted / self.rate * u64::MAX as f64) as u64,
            false => u64::MAX,
        };
        (bound, self.allowed as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of recorded calls among these calls in each step of a hundredth of a second, when positions are as
    /// good as random.
    fn recorded(per_second: u64, calls: &[u64]) -> Vec<u64> {
        let mut own = OfRegion::default();
        let (mut bound, mut allowed) = own.step(per_second, Duration::ZERO, 0, 0);
        let (mut made, mut taken) = (0, 0);
        let step = |number: &u64| {
            let before = taken;
            let hits = ((u128::from(*number) * (u128::from(bound) + 1)) >> 64) as u64;
            taken = (taken + hits).min(allowed.max(taken));
            made += number;
            (bound, allowed) = own.step(per_second, STEP, made, taken);
            taken - before
        };
        calls.iter().map(step).collect()
    }

    #[test]
    fn of_many_calls_so_many_a_second_are_recorded() {
        let all = recorded(1000, &[10_000; 300]);
        assert!((2900..=3000).contains(&all.iter().sum::<u64>()), "{all:?}");
        // Not in bursts.
        assert!(all[10..].iter().all(|count| (9..=11).contains(count)), "{all:?}");
    }

    #[test]
    fn of_few_calls_all_are_recorded() {
        let all = recorded(1000, &[5; 300]);
        assert!(all.iter().sum::<u64>() > 5 * 297, "{all:?}");
    }

    #[test]
    fn a_burst_of_calls_is_not_a_burst_of_recorded_ones() {
        let calls: Vec<u64> = (0..300).map(|step| if step % 50 == 49 { 1_000_000 } else { 100 }).collect();
        let all = recorded(1000, &calls);
        assert!(all.iter().max() <= Some(&51) && all.iter().sum::<u64>() <= 3001, "{all:?}");
    }
}
