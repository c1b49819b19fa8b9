//! The registry behind one lock that signals and forks cannot break.

use super::registry::Registry;
use std::cell::UnsafeCell;

struct Guarded {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    registry: UnsafeCell<Option<Registry>>,
}

// SAFETY: the registry is touched between lock and unlock of the mutex alone; a pthread mutex may be used from any
// thread.
unsafe impl Sync for Guarded {}

static GUARDED: Guarded =
    Guarded { mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), registry: UnsafeCell::new(None) };

/// Runs `work` with the registry. Signals that a handler of the program could answer wait until it is done: such a
/// handler may itself set a value, which would wait for this very thread. Synchronous ones stay open, for the trap
/// protocol and for debuggers.
pub(super) fn with_registry<R>(work: impl FnOnce(&mut Registry) -> R) -> R {
    let mask = block_signals();
    lock();
    // SAFETY: the lock is held.
    let slot = unsafe { &mut *GUARDED.registry.get() };
    let registry = slot.get_or_insert_with(|| {
        prepare_for_forks();
        Registry::start()
    });
    let result = work(registry);
    unlock();
    restore_signals(&mask);
    result
}

/// Miri knows neither signals nor forks.
#[cfg(miri)]
fn block_signals() {}

#[cfg(miri)]
fn restore_signals((): &()) {}

#[cfg(miri)]
fn prepare_for_forks() {
    let _: [extern "C" fn(); 3] = [before_fork, after_fork_in_parent, after_fork_in_child];
}

#[cfg(not(miri))]
fn prepare_for_forks() {
    // SAFETY: registers three functions that live as long as this image; the C library drops the registration when
    // the image is unloaded.
    unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child)) };
}

#[cfg(not(miri))]
fn restore_signals(mask: &libc::sigset_t) {
    // SAFETY: restores the mask that the caller found.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
}

#[cfg(not(miri))]
fn block_signals() -> libc::sigset_t {
    // SAFETY: signal sets on our stack; changes this thread's mask alone.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        let mut old: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut blocked);
        for open in [libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT] {
            libc::sigdelset(&mut blocked, open);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut old);
        old
    }
}

fn lock() {
    // SAFETY: a statically initialised mutex, never destroyed.
    unsafe { libc::pthread_mutex_lock(GUARDED.mutex.get()) };
}

fn unlock() {
    // SAFETY: held by this thread, or inherited from it through fork.
    unsafe { libc::pthread_mutex_unlock(GUARDED.mutex.get()) };
}

// A fork waits for a set in progress, so the child never starts with half a change.
extern "C" fn before_fork() {
    lock();
}

extern "C" fn after_fork_in_parent() {
    unlock();
}

extern "C" fn after_fork_in_child() {
    // SAFETY: `before_fork` took the lock on this thread.
    if let Some(registry) = unsafe { &mut *GUARDED.registry.get() } {
        registry.after_fork();
    }
    unlock();
}
