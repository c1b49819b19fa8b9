//! Tasks that sleep and work by turns, for random spans: the load whose balancing across CPUs is hard.

use crate::stop::Stop;
use lineup_stats::random::Seed;
use rand::RngExt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Runs `count` tasks in threads until stopped. Each sleeps and works in turn, for spans sampled uniformly from zero to
/// twice `mean`. A span of work begins when the sleep before it was to end. Returns the time all of them spent working.
pub fn sleep_and_work(count: u32, mean: Duration, seed: Seed, stop: &Stop) -> Duration {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..count)
            .map(|task| scope.spawn(move || one_task(mean, seed.part(task.into()), stop)))
            .collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).sum()
    })
}

fn one_task(mean: Duration, seed: Seed, stop: &Stop) -> Duration {
    let mut random = seed.generator();
    let mut worked = Duration::ZERO;
    while !stop.is_set() {
        let due = Instant::now() + mean.mul_f64(random.random_range(0.0..2.0));
        stop.sleep_until(due);
        worked += work(due + mean.mul_f64(random.random_range(0.0..2.0)), stop);
    }
    worked
}

/// Keeps a CPU busy by the wall clock, as a task with a deadline does: it gets older while it waits for the CPU.
fn work(end: Instant, stop: &Stop) -> Duration {
    let started = Instant::now();
    let mut sum = 0u64;
    while Instant::now() < end && !stop.is_set() {
        for step in 0..1000u64 {
            sum = black_box(sum.wrapping_add(step));
        }
    }
    started.elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_work_and_end_when_told() {
        let worked_within = |ms: u64| {
            let stop = Stop::new();
            let theirs = stop.clone();
            let load =
                std::thread::spawn(move || sleep_and_work(3, Duration::from_millis(2), Seed(1), &theirs));
            std::thread::sleep(Duration::from_millis(ms));
            stop.set();
            load.join().unwrap()
        };
        // A busy machine may not let the tasks run at all in the shorter times.
        assert!([60, 600, 6_000].into_iter().any(|ms| worked_within(ms) > Duration::ZERO));
    }
}
