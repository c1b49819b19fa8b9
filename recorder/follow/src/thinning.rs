//! Selects the accesses that are kept of long calls of several threads at the same time.
//!
//! The first accesses of each thread would not show how the threads share lines, since threads begin one after the
//! other. So the recorder keeps windows of time, which are the same for all threads: those whose number is a multiple
//! of a power of two. When a call has too many accesses the power grows, and every second window goes. Windows begin
//! and end at readings of the clock.

use lineup_model::access::{Access, TimeMark};

/// Cycles of a window, as a power of two: some hundredths of a millisecond, in which a thread that is recorded makes
/// some thousand accesses.
const WINDOW_BITS: u32 = 16;

/// The power of two.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Thinning(u32);

impl Thinning {
    /// Whether accesses at this time are kept.
    pub(crate) fn keeps(self, cycles: u64) -> bool {
        (cycles >> WINDOW_BITS).trailing_zeros() >= self.0
    }

    /// Leaves out every second window, until at most `most` accesses are left, or one window.
    pub(crate) fn thin(&mut self, accesses: &mut Vec<Access>, times: &mut Vec<TimeMark>, most: usize) {
        while accesses.len() > most && self.0 < u64::BITS - WINDOW_BITS {
            self.0 += 1;
            let before = accesses.len();
            self.leave_out(accesses, times);
            // A clock without progress, or one window that holds all.
            if accesses.len() == before && self.0 > 40 - WINDOW_BITS {
                return;
            }
        }
    }

    /// Keeps the accesses after readings of the clock in kept windows, with the readings before and after them.
    fn leave_out(self, accesses: &mut Vec<Access>, times: &mut Vec<TimeMark>) {
        let all = std::mem::take(accesses);
        let marks = std::mem::take(times);
        for (number, mark) in marks.iter().enumerate() {
            let end = marks.get(number + 1).map_or(all.len(), |next| next.access as usize);
            if !self.keeps(mark.cycles) {
                continue;
            }
            times.push(TimeMark { access: accesses.len() as u32, cycles: mark.cycles });
            accesses.extend_from_slice(all.get(mark.access as usize..end).unwrap_or_default());
            times.extend(
                marks.get(number + 1).map(|next| TimeMark { access: accesses.len() as u32, ..*next }),
            );
        }
        times.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::access::AccessKind;

    fn of_windows(windows: &[u64], accesses: usize) -> (Vec<Access>, Vec<TimeMark>) {
        let mut all = Vec::new();
        let mut times = Vec::new();
        for window in windows {
            times.push(TimeMark { access: all.len() as u32, cycles: window << WINDOW_BITS });
            let access = |at| Access {
                pc: *window,
                address: at as u64,
                size_bytes: 8,
                kind: AccessKind::Load,
                value: None,
            };
            all.extend((0..accesses).map(access));
        }
        (all, times)
    }

    #[test]
    fn threads_keep_the_same_windows_whenever_they_begin() {
        let mut kept = Vec::new();
        for windows in [(0..64).collect::<Vec<u64>>(), (5..40).collect()] {
            let (mut accesses, mut times) = of_windows(&windows, 100);
            let mut thinning = Thinning::default();
            thinning.thin(&mut accesses, &mut times, 900);
            let mut of_call: Vec<u64> = accesses.iter().map(|access| access.pc).collect();
            of_call.dedup();
            assert!(
                accesses.len() <= 900 && of_call.iter().all(|window| thinning.keeps(window << WINDOW_BITS))
            );
            kept.push(of_call);
        }
        assert_eq!(kept[0], [0, 8, 16, 24, 32, 40, 48, 56]);
        // The thread that has fewer accesses keeps more windows, and those of the other among them.
        assert_eq!(kept[1], [8, 12, 16, 20, 24, 28, 32, 36]);
    }

    #[test]
    fn the_times_around_what_is_left_out_stay() {
        let (mut accesses, mut times) = of_windows(&[0, 1, 2, 3, 4], 10);
        Thinning::default().thin(&mut accesses, &mut times, 30);
        let marks: Vec<(u32, u64)> =
            times.iter().map(|time| (time.access, time.cycles >> WINDOW_BITS)).collect();
        assert_eq!(marks, [(0, 0), (10, 1), (10, 2), (20, 3), (20, 4)]);
        assert_eq!(accesses.len(), 30);
    }

    #[test]
    fn one_window_that_holds_too_many_ends_it() {
        let (mut accesses, mut times) = of_windows(&[0], 10);
        Thinning::default().thin(&mut accesses, &mut times, 5);
        assert_eq!(accesses.len(), 10);
    }
}
