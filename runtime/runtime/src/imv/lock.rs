//! The registry behind one lock that signals, forks, panics and cancelled threads cannot break.

use super::registry::Registry;
use crate::cancel::NotCancelled;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Guarded {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    registry: UnsafeCell<Option<Registry>>,
    fork: UnsafeCell<Option<Fork>>,
}

/// The state that a forking thread keeps from before the fork to after it.
struct Fork {
    /// The process that forks; in the child another one, until the registry is the child's own.
    pid: libc::pid_t,
    _undisturbed: Undisturbed,
}

// SAFETY: registry and fork are touched by the thread that holds the mutex alone; a pthread mutex may be used from
// any thread.
unsafe impl Sync for Guarded {}

static GUARDED: Guarded = Guarded {
    mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
    registry: UnsafeCell::new(None),
    fork: UnsafeCell::new(None),
};

/// The thread that holds the lock for a fork, by its `pthread_self`; 0 when none does.
static FORKING: AtomicUsize = AtomicUsize::new(0);

/// Runs `work` with the registry. Signals that a handler of the program could answer wait until it is done: such a
/// handler may itself set a value, which would wait for this very thread. Synchronous ones stay open, for the trap
/// protocol and for debuggers. A panic of `work` gives the lock back.
pub(super) fn with_registry<R>(work: impl FnOnce(&mut Registry) -> R) -> R {
    let _undisturbed = Undisturbed::begin();
    let _held = RegistryGuard::take();
    // SAFETY: the lock is held.
    let slot = unsafe { &mut *GUARDED.registry.get() };
    work(slot.get_or_insert_with(|| {
        prepare_for_forks();
        Registry::start()
    }))
}

/// The lock, held until this is dropped.
struct RegistryGuard {
    /// False for a fork handler of the program on the thread that holds the lock for that fork.
    is_ours_to_release: bool,
}

impl RegistryGuard {
    fn take() -> Self {
        if FORKING.load(SeqCst) == own_thread() {
            own_the_registry();
            return Self { is_ours_to_release: false };
        }
        lock();
        Self { is_ours_to_release: true }
    }
}

impl Drop for RegistryGuard {
    fn drop(&mut self) {
        if self.is_ours_to_release {
            unlock();
        }
    }
}

/// No signal handler of the program runs on this thread, and it is not cancelled, until this is dropped.
struct Undisturbed {
    /// Restored before cancellation is.
    _signals: BlockedSignals,
    _cancel: NotCancelled,
}

impl Undisturbed {
    fn begin() -> Self {
        let cancel = NotCancelled::begin();
        Self { _signals: BlockedSignals::begin(), _cancel: cancel }
    }
}

/// Miri knows neither signals nor forks.
#[cfg(miri)]
struct BlockedSignals;

#[cfg(miri)]
impl BlockedSignals {
    fn begin() -> Self {
        Self
    }
}

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

/// The mask that the thread had.
#[cfg(not(miri))]
struct BlockedSignals(libc::sigset_t);

#[cfg(not(miri))]
impl BlockedSignals {
    fn begin() -> Self {
        // SAFETY: signal sets on our stack; changes this thread's mask alone.
        unsafe {
            let mut blocked: libc::sigset_t = std::mem::zeroed();
            let mut old: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&mut blocked);
            for open in
                [libc::SIGTRAP, libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGABRT]
            {
                libc::sigdelset(&mut blocked, open);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &blocked, &mut old);
            Self(old)
        }
    }
}

#[cfg(not(miri))]
impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: restores the mask that `begin` found on this thread.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

fn own_thread() -> usize {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::pthread_self() as usize }
}

fn own_pid() -> libc::pid_t {
    // SAFETY: takes nothing, cannot fail.
    unsafe { libc::getpid() }
}

fn lock() {
    // SAFETY: a statically initialised mutex, never destroyed.
    unsafe { libc::pthread_mutex_lock(GUARDED.mutex.get()) };
}

fn unlock() {
    // SAFETY: held by this thread, or inherited from it through fork.
    unsafe { libc::pthread_mutex_unlock(GUARDED.mutex.get()) };
}

// A fork waits for a set in progress, so the child never starts with half a change. Until the fork is over no signal
// handler runs on this thread, because one that sets a value would wait for the lock that its own thread holds.
extern "C" fn before_fork() {
    let undisturbed = Undisturbed::begin();
    lock();
    // SAFETY: the lock is held.
    unsafe { *GUARDED.fork.get() = Some(Fork { pid: own_pid(), _undisturbed: undisturbed }) };
    FORKING.store(own_thread(), SeqCst);
}

extern "C" fn after_fork_in_parent() {
    end_fork();
}

extern "C" fn after_fork_in_child() {
    own_the_registry();
    end_fork();
}

/// In a forked child, once: detaches the registry from the parent's memory. The caller holds the lock for a fork.
fn own_the_registry() {
    // SAFETY: `before_fork` took the lock on this thread, and it is held still.
    let (fork, registry) = unsafe { (&mut *GUARDED.fork.get(), &mut *GUARDED.registry.get()) };
    let (Some(fork), Some(registry)) = (fork, registry) else { return };
    if fork.pid != own_pid() {
        fork.pid = own_pid();
        registry.after_fork();
    }
}

fn end_fork() {
    FORKING.store(0, SeqCst);
    // SAFETY: `before_fork` took the lock on this thread.
    let fork = unsafe { (*GUARDED.fork.get()).take() };
    unlock();
    // Signals that waited are delivered only now, when their handlers can have the lock.
    drop(fork);
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn is_blocked(signal: libc::c_int) -> bool {
        // SAFETY: reads this thread's mask into a set of ours.
        unsafe {
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &mut mask);
            libc::sigismember(&mask, signal) == 1
        }
    }

    #[test]
    fn a_panic_gives_the_lock_and_the_signals_back() {
        let panicked = std::panic::catch_unwind(|| with_registry(|_| panic!("in the locked section")));
        assert!(panicked.is_err());
        assert!(!is_blocked(libc::SIGUSR1));
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || with_registry(|registry| sender.send(registry.status().images)));
        assert!(receiver.recv_timeout(Duration::from_secs(30)).is_ok_and(|images| images >= 1));
    }

    #[test]
    fn signals_wait_while_the_lock_is_held() {
        assert!(with_registry(|_| is_blocked(libc::SIGUSR1) && !is_blocked(libc::SIGTRAP)));
        assert!(!is_blocked(libc::SIGUSR1));
    }
}
