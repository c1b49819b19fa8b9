//! A lock that allocates nothing, and that a child of `fork` can give back for its parent.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const AWAITED: u32 = 2;

pub(crate) struct Lock(AtomicU32);

impl Lock {
    pub(crate) const fn new() -> Self {
        Lock(AtomicU32::new(FREE))
    }

    pub(crate) fn with<T>(&self, body: impl FnOnce() -> T) -> T {
        self.take();
        let result = body();
        self.give();
        result
    }

    pub(crate) fn try_with<T>(&self, body: impl FnOnce() -> T) -> Option<T> {
        self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).ok()?;
        let result = body();
        self.give();
        Some(result)
    }

    pub(crate) fn take(&self) {
        if self.0.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok() {
            return;
        }
        while self.0.swap(AWAITED, Acquire) != FREE {
            self.futex(libc::FUTEX_WAIT, AWAITED);
        }
    }

    pub(crate) fn give(&self) {
        if self.0.swap(FREE, Release) == AWAITED {
            self.futex(libc::FUTEX_WAKE, 1);
        }
    }

    fn futex(&self, operation: i32, value: u32) {
        let _keeping = crate::memory::Errno::keep();
        let operation = operation | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word lives as long as the lock, and there is no timeout.
        unsafe {
            libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, value, ptr::null::<libc::timespec>())
        };
    }
}
