//! The sign of life that engines look at while they wait for room in the log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

/// The interval between beats: engines wait for some seconds.
const BEAT: Duration = Duration::from_millis(100);

/// Ends the beats, when the work fails as well.
struct End<'a>(&'a AtomicBool, Thread);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

/// Does some work, and has `beat` called with a higher number again and again as long as it lasts: a piece of the log
/// may take longer to read than engines wait.
pub(super) fn beat_during<T>(beat: impl Fn(u64) + Sync, work: impl FnOnce() -> T) -> T {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let beats = scope.spawn(|| {
            for number in 1.. {
                beat(number);
                if is_over.load(Ordering::Acquire) {
                    return;
                }
                thread::park_timeout(BEAT);
            }
        });
        let _end = End(&is_over, beats.thread().clone());
        work()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn it_beats_while_work_lasts_and_ends_when_that_fails() {
        let last = AtomicU64::new(0);
        let worked = std::panic::catch_unwind(|| {
            beat_during(
                |number| last.store(number, Ordering::Release),
                || {
                    while last.load(Ordering::Acquire) < 3 {
                        thread::yield_now();
                    }
                    assert!(last.load(Ordering::Acquire) == 0, "the work fails");
                },
            );
        });
        assert!(worked.is_err());
    }
}
