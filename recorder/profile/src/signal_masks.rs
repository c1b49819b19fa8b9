//! Starting threads that take no signals.

#![allow(unsafe_code, reason = "no safe interface sets a thread's mask of signals")]

use std::mem::MaybeUninit;

/// Runs `start` with every signal blocked, so that a thread it starts gets none: the emulator's handlers pass signals
/// on to the guest thread they came to, and this one has none.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let (mut all, mut old) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: the first call fills `all`, which the second reads; the second writes `old`. With valid pointers and a
    // valid `how` neither fails.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr());
    }
    let result = start();
    // SAFETY: `old` was written above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), std::ptr::null_mut()) };
    result
}
