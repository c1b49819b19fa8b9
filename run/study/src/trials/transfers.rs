//! The time that a line of memory takes from one CPU to another. Effects of threads on each other's caches show only on
//! CPUs with separate caches, and most where lines travel farthest.

use crate::process::cpus::keep_on;
use std::collections::BTreeMap;
use std::hint::spin_loop;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// CPUs that are measured at most; with more, some that are spread evenly.
const MOST_CPUS: usize = 16;
/// Journeys of a line, there and back, that are timed together.
const BATCH: u32 = 32;
/// Batches for a pair in each round. The fastest counts: others were interrupted.
const BATCHES: u32 = 40;
/// Rounds through all pairs: a CPU that was busy in one may be free in the next.
const ROUNDS: u32 = 2;
/// A pair's time in a round.
const LONGEST: Duration = Duration::from_millis(20);
/// A pair is farther than another when its time is this many times as long.
const FARTHER: f64 = 1.25;
/// The line's value when both threads are to end.
const OVER: u32 = u32::MAX;

/// The measured times.
#[derive(Clone, PartialEq, Debug)]
pub struct Transfers {
    cpus: Vec<u32>,
    /// Nanoseconds of one journey, by two CPUs in ascending order.
    between: BTreeMap<(u32, u32), f64>,
}

impl Transfers {
    /// The times between these CPUs, measured once in the life of this process: a few milliseconds for each pair that
    /// is not busy.
    pub fn of(cpus: &[u32]) -> &'static Transfers {
        static MEASURED: OnceLock<Transfers> = OnceLock::new();
        MEASURED.get_or_init(|| Transfers::measure(cpus))
    }

    fn measure(cpus: &[u32]) -> Transfers {
        let step = cpus.len().div_ceil(MOST_CPUS).max(1);
        let spread: Vec<u32> = cpus.iter().copied().step_by(step).collect();
        let mut between = BTreeMap::new();
        for _ in 0..ROUNDS {
            for (index, first) in spread.iter().enumerate() {
                for second in &spread[index + 1..] {
                    let Some(ns) = journey_ns(*first, *second) else { continue };
                    let least = between.entry((*first, *second)).or_insert(ns);
                    *least = ns.min(*least);
                }
            }
        }
        Transfers { cpus: cpus.to_vec(), between }
    }

    fn ns(&self, one: u32, other: u32) -> f64 {
        self.between.get(&(one.min(other), one.max(other))).copied().unwrap_or(0.0)
    }

    /// The CPUs in an order in which each is as far as possible from the one before, beginning with the two that are
    /// farthest from each other. Where all distances are equal, the CPUs keep their own order.
    pub fn far_apart(&self) -> Vec<u32> {
        let farthest = self.between.values().copied().fold(0.0, f64::max);
        let mut left = self.cpus.clone();
        let begins = |cpu: &u32| left.iter().any(|other| self.ns(*cpu, *other) * FARTHER >= farthest);
        let mut next = left.iter().position(begins).filter(|_| farthest > 0.0).unwrap_or(0);
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let cpu = left.remove(next);
            order.push(cpu);
            let farthest = left.iter().map(|other| self.ns(cpu, *other)).fold(0.0, f64::max);
            let is_far = |other: &u32| self.ns(cpu, *other) * FARTHER >= farthest;
            next = left.iter().position(is_far).unwrap_or(0);
        }
        order
    }

    /// The shortest and the longest journey in nanoseconds; `None` when none was measured.
    pub fn range_ns(&self) -> Option<(f64, f64)> {
        let least = self.between.values().copied().reduce(f64::min)?;
        Some((least, self.between.values().copied().fold(least, f64::max)))
    }
}

/// A line of its own, with the adjacent one that some processors fetch as well.
#[repr(align(128))]
struct Line(AtomicU32);

/// The mean nanoseconds that a line takes from one of two CPUs to the other, in the fastest batch. `None` when no
/// thread may run on one of them, or no batch ended in time.
fn journey_ns(first: u32, second: u32) -> Option<f64> {
    let line = Line(AtomicU32::new(0));
    let line = &line.0;
    std::thread::scope(|scope| {
        let answering = std::thread::Builder::new().name("answering".into());
        let answered = answering.spawn_scoped(scope, move || {
            let is_there = keep_on(None, [second]).is_ok();
            let mut next = if is_there { 1 } else { OVER };
            line.store(if is_there { 2 } else { OVER }, Ordering::Release);
            while next != OVER {
                next = await_turn(line, |value| value % 2 == 1);
                if next != OVER {
                    line.store(next + 1, Ordering::Release);
                }
            }
        });
        answered.ok()?;
        let asking = std::thread::Builder::new().name("asking".into());
        let asked = asking.spawn_scoped(scope, move || {
            let fastest = keep_on(None, [first]).is_ok().then(|| fastest_batch(line)).flatten();
            line.store(OVER, Ordering::Release);
            fastest
        });
        let Ok(asked) = asked else {
            line.store(OVER, Ordering::Release);
            return None;
        };
        let fastest = asked.join().ok()??;
        Some(fastest.as_nanos() as f64 / f64::from(2 * BATCH))
    })
}

/// Sends the line there and back in batches.
fn fastest_batch(line: &AtomicU32) -> Option<Duration> {
    let mut fastest: Option<Duration> = None;
    let mut last = await_turn(line, |value| value != 0);
    let begun = Instant::now();
    for _ in 0..BATCHES {
        let before = Instant::now();
        for _ in 0..BATCH {
            if last == OVER {
                return fastest;
            }
            line.store(last + 1, Ordering::Release);
            last = await_turn(line, |value| value % 2 == 0);
        }
        let took = before.elapsed();
        fastest = Some(fastest.map_or(took, |fastest| fastest.min(took)));
        if begun.elapsed() > LONGEST {
            break;
        }
    }
    fastest
}

fn await_turn(line: &AtomicU32, is_own: impl Fn(u32) -> bool) -> u32 {
    loop {
        let value = line.load(Ordering::Acquire);
        if value == OVER || is_own(value) {
            return value;
        }
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::cpus::allowed_cpus;

    fn of(cpus: &[u32], ns: impl Fn(u32, u32) -> f64) -> Transfers {
        let pairs = cpus.iter().flat_map(|one| cpus.iter().map(move |other| (*one, *other)));
        let between = pairs.filter(|(one, other)| one < other).map(|pair| (pair, ns(pair.0, pair.1)));
        Transfers { cpus: cpus.to_vec(), between: between.collect() }
    }

    #[test]
    fn those_that_share_a_core_or_a_socket_do_not_follow_each_other() {
        let siblings = of(&[0, 1, 2, 3], |one, other| if one / 2 == other / 2 { 12.0 } else { 60.0 });
        assert_eq!(siblings.far_apart(), [0, 2, 1, 3]);
        let sockets = of(&[0, 1, 2, 3], |one, other| if one / 2 == other / 2 { 60.0 } else { 190.0 });
        assert_eq!(sockets.far_apart(), [0, 2, 1, 3]);
        assert_eq!(sockets.range_ns(), Some((60.0, 190.0)));
        let one_far = of(&[0, 1, 2], |_, other| if other == 2 { 150.0 } else { 60.0 });
        assert_eq!(one_far.far_apart(), [0, 2, 1]);
    }

    #[test]
    fn where_all_are_as_far_or_nothing_is_known_the_order_stays() {
        let noisy = of(&[1, 4, 5, 7], |one, other| f64::from(60 + (one * 7 + other) % 9));
        assert_eq!(noisy.far_apart(), [1, 4, 5, 7]);
        let unknown = of(&[3, 1], |_, _| 0.0);
        assert_eq!(unknown.far_apart(), [3, 1]);
        assert_eq!(Transfers::measure(&[0]), Transfers { cpus: vec![0], between: BTreeMap::new() });
    }

    #[test]
    fn each_pair_is_measured_and_every_cpu_has_its_place() {
        let cpus = allowed_cpus().expect("the allowed CPUs");
        let measured = Transfers::measure(&cpus);
        assert!(measured.between.values().all(|ns| *ns > 0.0), "{measured:?}");
        let mut order = measured.far_apart();
        order.sort_unstable();
        assert_eq!(order, cpus);
        assert_eq!(journey_ns(cpus[0], u32::from(u16::MAX)), None, "no such CPU");
    }
}
