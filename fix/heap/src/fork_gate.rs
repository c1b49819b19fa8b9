//! The gate at which threads wait while one of them forks.

use crate::lock::Lock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;

pub(crate) static IS_NEAR: AtomicBool = AtomicBool::new(false);

/// Taken while a thread forks.
pub(crate) static GATE: Lock = Lock::new();

/// True while a thread forks, or is about to.
pub(crate) fn is_near() -> bool {
    IS_NEAR.load(SeqCst)
}

/// Waits until no thread forks.
pub(crate) fn wait() {
    if is_near() {
        GATE.with(|| {});
    }
}
