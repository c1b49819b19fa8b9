//! Runs the engine in a statically linked program: without a loader, and without a C library that could be called.
//!
//! The command lays the library's parts out itself and binds their imports to the functions here, which have the same
//! names behind `lineup_alone_`. The engine's words of a thread lie in the program's own thread-local memory. The
//! command reserves them in the program's table of parts before the program begins. It calls [`lineup_engine_inject`]
//! when the first thread's base has just been set.
//!
//! Few imports are called: those for thread-local variables and for the length of a text. The machine's functions copy
//! memory, see [`crate::machine::Abi`]. The other imports belong to panics, and end the program as a panic does.

use crate::shared::{Shared, remember_first};
use crate::start::constructor;
use crate::threads::owned;
use lineup_recording::native::state;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::Ordering;

/// Starts the engine for the memory that a file names. Returns 0 when it does not record: then a note gives the reason,
/// or the file cannot be opened. Otherwise it returns 1, or, for a whole program, the function that leads into the
/// cache. The caller jumps to that, with the address to continue at on the stack.
///
/// # Safety
/// `path` must be a terminated text, and no other thread must run.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_engine_inject(path: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    owned::set_alone();
    remember_first(path);
    let Some(shared) = Shared::open(path).filter(Shared::is_first) else { return 0 };
    let Some(engine) = constructor::prepare(shared) else { return 0 };
    if engine.shared.has_refused() {
        engine.shared.control().state.store(state::REFUSED, Ordering::Release);
        return 0;
    }
    constructor::begin_first(engine).unwrap_or(1)
}

/// Nothing reports a thread's end: see [`owned::Owned`].
///
/// # Safety
/// `key` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_alone_pthread_key_create(key: *mut u32, _end: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { key.write(0) };
    0
}

/// See [`lineup_alone_pthread_key_create`].
#[unsafe(no_mangle)]
pub extern "C" fn lineup_alone_pthread_setspecific(_key: u32, _value: *const c_void) -> c_int {
    0
}
