//! Work that may never return, done on a thread of its own, with a time limit for the wait.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;

/// The result of the work; `None` when it did not return in time, or no thread could be started. Such work continues:
/// nothing in a process can end it safely.
pub(crate) fn within<T: Send + 'static>(
    limit: Duration,
    stack_bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (done, result) = channel();
    let run = move || {
        // The receiver is gone when the caller gave up waiting.
        let _ = done.send(work());
    };
    let thread = Builder::new().stack_size(stack_bytes).spawn(run).ok()?;
    match result.recv_timeout(limit) {
        Ok(value) => Some(value),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => None,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_comes_back_gives_its_result() {
        assert_eq!(within(Duration::from_secs(600), 1 << 20, || 7), Some(7));
    }

    #[test]
    fn work_that_never_comes_back_is_given_up() {
        let forever = || loop {
            std::thread::park();
        };
        assert_eq!(within(Duration::from_millis(1), 1 << 20, forever), None::<()>);
    }

    #[test]
    #[should_panic(expected = "broken")]
    fn a_panic_is_passed_on() {
        within(Duration::from_secs(600), 1 << 20, || panic!("broken"));
    }
}
