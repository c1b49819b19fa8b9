//! Times the pthread mutexes and spin locks of an unmodified program:
//! `LINEUP_TRACE=locks.trace LD_PRELOAD=liblineup_preload.so program`.
//!
//! Design constraints:
//!
//! * Without `LINEUP_TRACE` every function goes straight to the C library's. The constructor reads the environment
//!   once, because a preloaded library has no other input.
//! * A lock is named by its kind and address; locks beyond the table's room share one name, and every lock is timed.
//! * Nothing here waits for a lock of its own: the library replaces the functions that such a lock would call.
//! * While a thread waits for a condition variable, its mutex is free, and is recorded as free.

mod locks;
mod real;

use libc::{c_int, c_void, pthread_cond_t, pthread_mutex_t, timespec};
use lineup_runtime::trace::c_api::{
    LineupLockFunctions, lineup_lock_note_released, lineup_lock_note_taken, lineup_lock_release,
    lineup_lock_take,
};
use lineup_runtime::trace::{self, Config};
use std::cell::Cell;
use std::path::Path;

const MUTEX: LineupLockFunctions = LineupLockFunctions {
    try_take: real::mutex_trylock,
    take: real::mutex_lock,
    release: real::mutex_unlock,
};
const SPIN: LineupLockFunctions =
    LineupLockFunctions { try_take: real::spin_trylock, take: real::spin_lock, release: real::spin_unlock };

thread_local! {
    /// True while this thread is inside a timed function: the tracer's own locks are not the program's.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `timed` unless tracing is off or this thread is inside already, in which case `plain`.
fn unless_inside(plain: impl FnOnce() -> c_int, timed: impl FnOnce() -> c_int) -> c_int {
    if !trace::is_on() || INSIDE.try_with(|inside| inside.replace(true)).unwrap_or(true) {
        return plain();
    }
    let result = timed();
    let _ = INSIDE.try_with(|inside| inside.set(false));
    result
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_lock(mutex: *mut pthread_mutex_t) -> c_int {
    let lock = mutex.cast::<c_void>();
    // SAFETY: the caller's mutex, handed to the functions for mutexes; names are static.
    unsafe {
        unless_inside(
            || real::mutex_lock(lock),
            || lineup_lock_take(locks::name(c"mutex", lock as usize), lock, MUTEX),
        )
    }
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_trylock(mutex: *mut pthread_mutex_t) -> c_int {
    let lock = mutex.cast::<c_void>();
    let try_and_note = || {
        // SAFETY: the caller's mutex.
        let result = unsafe { real::mutex_trylock(lock) };
        if result == 0 {
            // SAFETY: the name is static.
            unsafe { lineup_lock_note_taken(locks::name(c"mutex", lock as usize), lock) };
        }
        result
    };
    // SAFETY: the caller's mutex.
    unless_inside(|| unsafe { real::mutex_trylock(lock) }, try_and_note)
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    let lock = mutex.cast::<c_void>();
    // SAFETY: the caller's mutex, handed to the functions for mutexes.
    unsafe { unless_inside(|| real::mutex_unlock(lock), || lineup_lock_release(lock, MUTEX)) }
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_lock(lock: *mut c_void) -> c_int {
    // SAFETY: the caller's spin lock, handed to the functions for spin locks; names are static.
    unsafe {
        unless_inside(
            || real::spin_lock(lock),
            || lineup_lock_take(locks::name(c"spin", lock as usize), lock, SPIN),
        )
    }
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_unlock(lock: *mut c_void) -> c_int {
    // SAFETY: the caller's spin lock, handed to the functions for spin locks.
    unsafe { unless_inside(|| real::spin_unlock(lock), || lineup_lock_release(lock, SPIN)) }
}

/// Notes the mutex free for as long as `wait` lasts.
fn around_wait(mutex: *mut pthread_mutex_t, wait: impl FnOnce() -> c_int) -> c_int {
    let lock = mutex.cast::<c_void>();
    let note = |work: &dyn Fn()| {
        unless_inside(
            || 0,
            || {
                work();
                0
            },
        )
    };
    note(&|| lineup_lock_note_released(lock));
    let result = wait();
    // SAFETY: the name is static.
    note(&|| unsafe { lineup_lock_note_taken(locks::name(c"mutex", lock as usize), lock) });
    result
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_wait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: the caller's condition and mutex.
    around_wait(mutex, || unsafe { real::cond_wait(condition, mutex) })
}

/// Replaces the C library's.
///
/// # Safety
///
/// As for the function it replaces.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_cond_timedwait(
    condition: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    until: *const timespec,
) -> c_int {
    // SAFETY: the caller's condition, mutex and time.
    around_wait(mutex, || unsafe { real::cond_timedwait(condition, mutex, until) })
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = construct;

extern "C" fn construct() {
    let Some(path) = std::env::var_os("LINEUP_TRACE") else { return };
    let mut config = Config::new(Path::new(&path));
    config.names = locks::ROOM as u32 + 2;
    if let Err(error) = trace::start(&config) {
        // A preloaded library has no caller to return this to.
        eprintln!("lineup-preload: {error}");
    }
}
