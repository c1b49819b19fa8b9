//! The choice of a thread's recorded calls when each thread has the same limit.

use crate::records::sizes::{CALLS_IN_RUN, spread_position};

/// Cycles of a stretch of time, as a power of two: half a millisecond to one.
const STRETCH_SHIFT: u32 = 21;

/// The positions of one thread's calls in the recording order under a limit: the calls with the lowest positions are
/// recorded.
///
/// Time is cut into stretches, the same for all threads. The first calls in a row of each stretch come first, with
/// those stretches in front that are spread evenly over the run; then the next ones, and so on. So threads that run at
/// the same time are recorded at the same times, independently of their number of calls and of their start.
#[derive(Clone, Default, Debug)]
pub struct ThreadBudget {
    stretch: u64,
    taken: u64,
}

impl ThreadBudget {
    /// The position of a call that begins now, by the counter of cycles.
    pub fn position(&mut self, cycles: u64) -> u64 {
        let stretch = cycles >> STRETCH_SHIFT;
        if stretch != self.stretch {
            *self = ThreadBudget { stretch, taken: 0 };
        }
        let run = (self.taken / CALLS_IN_RUN).min(u64::from(u8::MAX));
        run << 56 | spread_position(stretch) >> 8
    }

    /// The cycle from which calls may have another position than calls that begin at this one.
    pub fn end(cycles: u64) -> u64 {
        ((cycles >> STRETCH_SHIFT) + 1) << STRETCH_SHIFT
    }

    /// Counts a call as recorded.
    pub fn take(&mut self) {
        self.taken += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_prefer_the_same_stretches_and_first_calls_of_each() {
        let (mut one, mut other) = (ThreadBudget::default(), ThreadBudget::default());
        let at = |stretch: u64| stretch << STRETCH_SHIFT;
        for call in 0..3 * CALLS_IN_RUN {
            assert_eq!(one.position(at(5) + call), other.position(at(5) + 1000 + call));
            assert_eq!(one.position(at(5)) >> 56, call / CALLS_IN_RUN);
            one.take();
            other.take();
        }
        assert_eq!((one.position(ThreadBudget::end(at(5)) - 1) >> 56, at(6)), (3, ThreadBudget::end(at(5))));
        // A run that is the first of its stretch precedes every later run.
        let later = one.position(at(5));
        assert!((6..100).all(|stretch| one.position(at(stretch)) < later));
    }
}
