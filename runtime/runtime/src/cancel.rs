//! Keeps `pthread_cancel` out of work that must be finished.
//!
//! Reading and writing files are cancellation points. A thread that ended there would leave a lock held, or code half
//! changed, and unwinding it through our functions would end the whole program.

use std::marker::PhantomData;

/// While this lives, the calling thread is not cancelled; a request waits for the thread's next cancellation point.
#[derive(Debug)]
pub(crate) struct NotCancelled {
    before: libc::c_int,
    /// It belongs to the thread that made it.
    on_one_thread: PhantomData<*const ()>,
}

#[cfg(not(miri))]
unsafe extern "C" {
    fn pthread_setcancelstate(state: libc::c_int, before: *mut libc::c_int) -> libc::c_int;
}

/// Miri knows no cancellation.
#[cfg(miri)]
unsafe fn pthread_setcancelstate(_state: libc::c_int, _before: *mut libc::c_int) -> libc::c_int {
    0
}

impl NotCancelled {
    /// Holds requests back from here on. No system call, and allowed in a signal handler.
    pub(crate) fn begin() -> Self {
        const DISABLE: libc::c_int = 1;
        let mut before = 0;
        // SAFETY: writes the state that was into our variable; changes the calling thread alone.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        Self { before, on_one_thread: PhantomData }
    }
}

impl Drop for NotCancelled {
    fn drop(&mut self) {
        // SAFETY: restores the state that `begin` found, on the same thread.
        unsafe { pthread_setcancelstate(self.before, &raw mut self.before) };
    }
}
