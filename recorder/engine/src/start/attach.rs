//! Attaches to a running program, and detaches from it. The command makes a thread of the program load the library and
//! start a thread of the engine's own ([`crate::threads::own_thread`]). That thread calls these functions one after the
//! other.
//!
//! 1. [`lineup_engine_attach`] makes all code, but changes none of the program's: it lists the changes.
//! 2. The command makes the changes while all threads stand still, outside the changed code.
//! 3. [`lineup_engine_begin`] takes the signals' handlers over.
//! 4. [`lineup_engine_leave`] gives these back; threads leave the cache when they enter the engine next. The command
//!    undoes its changes, and moves threads out of the cache that wait in system calls.
//! 5. The last step is for when no thread is in the engine's code, nor returns to it. [`lineup_engine_give_back_traps`]
//!    restores the handlers and masks that traps needed, and [`lineup_engine_give_back`] unmaps the engine's memory.
//!    The engine's own thread ends, and a thread of the program unloads the library.

use crate::engine;
use crate::entries::{code_changes, trap_permission};
use crate::shared::Shared;
use crate::signals::handlers;
use crate::start::{bursts, constructor};
use crate::syscalls::redirections;
use crate::system::{holdings, lock};
use crate::threads::slots::at;
use lineup_recording::native::{RANGES, state, timed};
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;

/// Prepares everything for the memory that a file names. Returns 1 on success, and 0 on failure, with a note of the
/// reason unless the file cannot be opened. Returns 2 and does nothing when an earlier engine is still loaded: the
/// program's code may lead to it, so its memory must stay.
///
/// # Safety
/// `path` must be a terminated text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_engine_attach(path: *const c_char) -> u64 {
    if engine::get().is_some() {
        return 2;
    }
    // SAFETY: the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes_with_nul();
    let Some(shared) = Shared::open(path) else { return 0 };
    code_changes::defer_writes(true);
    let Some(engine) = constructor::prepare(shared) else { return 0 };
    let shared = &engine.shared;
    let control = shared.control();
    control.cache_start.store(engine.signals.cache.start, Ordering::Relaxed);
    control.cache_end.store(engine.signals.cache.end, Ordering::Relaxed);
    control.slots.store(i64::from(engine.slots) as u64, Ordering::Relaxed);
    control.pc_slot.store(at!(pc) as u64, Ordering::Relaxed);
    control.busy_slot.store(at!(busy) as u64, Ordering::Relaxed);
    if shared.has_refused() {
        control.state.store(state::REFUSED, Ordering::Relaxed);
        return 0;
    }
    redirections::system_calls(engine);
    bursts::prepare(engine);
    1
}

/// Begins recording, after the changes of the program's code.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_engine_begin() -> u64 {
    let Some(engine) = engine::get() else { return 0 };
    code_changes::defer_writes(false);
    if engine.shared.control().mode.load(Ordering::Relaxed) != timed::MODE {
        handlers::take_over();
    }
    constructor::begin(engine);
    // Calls since the code was changed were not missed.
    engine.shared.regions().iter().for_each(|region| region.unwatched.store(0, Ordering::Relaxed));
    1
}

/// Removes the engine's traces that the program would meet, and lists the engine's memory. 1 when all of it is known.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_engine_leave() -> u64 {
    engine::begin_leaving();
    code_changes::settle();
    let Some(engine) = engine::get() else { return 0 };
    engine.is_on.store(0, Ordering::Release);
    handlers::give_back();
    // SAFETY: our own key. Memory of threads that end from now on is given back with the rest.
    unsafe { libc::pthread_key_delete(engine.thread_key) };
    let room = (RANGES.end - RANGES.start) / 16;
    let mut count = 0;
    holdings::each(|start, bytes| {
        if count < room {
            engine.shared.list_range(count, start, bytes);
            count += 1;
        }
    });
    let used = engine.code.with(|code| code.cache.next());
    engine.shared.control().cache_used.store(used, Ordering::Relaxed);
    engine.shared.control().ranges.store(count, Ordering::Release);
    u64::from(holdings::are_known() && count < room)
}

/// Gives back SIGTRAP: the program's code has no trap any more.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_engine_give_back_traps() -> u64 {
    trap_permission::give_back();
    1
}

/// Unmaps all memory of the engine.
///
/// # Safety
/// No thread is in the engine's code or returns to it, except the caller, who unloads the library next.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_engine_give_back() -> u64 {
    lock::forget();
    // SAFETY: the caller's promise; no code here uses the heap from now on.
    unsafe { holdings::give_back() };
    1
}
