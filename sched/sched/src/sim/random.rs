//! The random numbers of a run: one stream per task, so that a task's behaviour never depends on when others
//! are scheduled, and variants of a scenario meet the same tasks.

use crate::scenario::Span;

/// A splitmix64 stream: the public-domain generator by S. Vigna, a Weyl sequence passed through a mixer.
#[derive(Clone)]
pub(super) struct Stream(u64);

const WEYL: u64 = 0x9e37_79b9_7f4a_7c15;

impl Stream {
    /// The stream of task `task` in the run with `seed`.
    pub(super) fn new(seed: u64, task: u64) -> Self {
        Self(mix(seed.wrapping_mul(WEYL) ^ mix(task.wrapping_add(1))))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(WEYL);
        mix(self.0)
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn within(&mut self, low: u64, high: u64) -> u64 {
        let width = u128::from(high - low) + 1;
        low + ((u128::from(self.next()) * width) >> 64) as u64
    }

    /// A length sampled from `span`, in nanoseconds, at least 1.
    pub(super) fn length_ns(&mut self, span: Span) -> u64 {
        match span {
            Span::Fixed(ns) => ns,
            Span::Uniform { low, high } => self.within(low, high),
        }
        .max(1)
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_its_seed_and_task() {
        let draw = |seed, task| -> Vec<u64> {
            let mut stream = Stream::new(seed, task);
            (0..8).map(|_| stream.next()).collect()
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(2, 1));
        assert_ne!(draw(1, 2), draw(1, 3));
    }

    #[test]
    fn a_uniform_span_has_its_mean_and_meets_its_ends() {
        let mut stream = Stream::new(7, 0);
        let draws: Vec<u64> = (0..40_000).map(|_| stream.within(3, 9)).collect();
        let sum: u64 = draws.iter().sum();
        assert!((235_000..245_000).contains(&sum), "{sum}");
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&3), Some(&9)));
    }
}
