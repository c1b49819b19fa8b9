//! Timing calls: what the code that stamps them needs, see [`crate::machine::Timing::stamp`].
//!
//! A call inside a call of the same region is counted and not timed. One that was left by an exception or a jump is
//! found out by the next: the stack pointer then lies no lower.

use crate::alone::Owned;
use crate::engine::{self, Engine};
use crate::machine::{Abi, Host, HostRegisters};
use crate::{system, trials};
use lineup_recording::native::{chunk, timed, word};
use std::sync::atomic::{AtomicU64, Ordering};

/// How long the counter is compared with the clock.
const COMPARED_NS: i64 = 5_000_000;
/// Calls by which the stamps' own cost is worked out.
const TRIAL_CALLS: u64 = 20_000;

/// A table that is not read, for threads beyond those that there is room for.
static SPARE: AtomicU64 = AtomicU64::new(0);

/// Tables of threads whose end nobody tells.
static TABLES: Owned<u64> = Owned::new();

/// A thread's first call that is timed: gives it a table.
///
/// # Safety
/// Only from the code of stamps.
pub(crate) unsafe extern "C" fn first_call(_registers: *mut HostRegisters) {
    let Some(engine) = engine::get() else { return };
    if system::is_sealed() {
        engine.shared.word(word::PASSED_OVER).fetch_add(1, Ordering::Relaxed);
        // SAFETY: this thread's own.
        unsafe { (*Host::slots()).times = SPARE.load(Ordering::Relaxed) };
        return;
    }
    let blocked = system::block_signals();
    // SAFETY: this thread's own.
    let slots = unsafe { &mut *Host::slots() };
    while let Some(table) = TABLES.take() {
        give_back(engine, table);
    }
    match engine.shared.take_table() {
        Some((number, table)) => {
            trials::begin(engine, number, table);
            TABLES.keep(table as u64);
            slots.times = table as u64;
            // SAFETY: as in the recording of calls.
            unsafe { libc::pthread_setspecific(engine.thread_key, table.cast()) };
        }
        None => {
            engine.shared.word(word::PASSED_OVER).fetch_add(1, Ordering::Relaxed);
            slots.times = SPARE.load(Ordering::Relaxed);
        }
    }
    system::restore_signals(blocked);
}

/// A thread ends: another may count on in its table.
pub(crate) unsafe extern "C" fn end_thread(table: *mut libc::c_void) {
    let Some(engine) = engine::get().filter(|engine| engine.is_on()) else { return };
    // SAFETY: this thread's own.
    let slots = unsafe { &mut *Host::slots() };
    slots.times = 0;
    slots.own.timed = [[0; 2]; timed::REGIONS];
    give_back(engine, table as u64);
}

fn give_back(engine: &Engine, table: u64) {
    trials::end(table as *mut u8);
    engine.shared.leave_table(table);
}

/// Before the first call can be made. False when there is no memory.
pub(crate) fn prepare(engine: &Engine) -> bool {
    let spare = system::memory(chunk::BYTES as usize);
    SPARE.store(spare.map_or(0, |spare| spare as u64), Ordering::Relaxed);
    spare.is_some() && trials::prepare(engine)
}

/// Compares the counter with the clock, and has calls of a function that does nothing stamped, whose code is at
/// `stamped`, with `bare` for comparison.
pub(crate) fn calibrate(engine: &Engine, stamped: u64, bare: u64) {
    let set = |number: usize, value: u64| engine.shared.word(number).store(value, Ordering::Relaxed);
    let (from, begun_ns) = (Host::counter(), system::clock_ns());
    system::sleep_ns(COMPARED_NS);
    let (to, ended_ns) = (Host::counter(), system::clock_ns());
    set(word::CYCLES, to.wrapping_sub(from));
    set(word::NANOSECONDS, ended_ns.saturating_sub(begun_ns));
    let calls = |at: u64| {
        // SAFETY: code of ours that returns at once.
        let function: extern "C" fn() = unsafe { std::mem::transmute(at as *const ()) };
        let begun = Host::counter();
        (0..TRIAL_CALLS).for_each(|_| function());
        Host::counter().wrapping_sub(begun)
    };
    // The first round takes what is taken once.
    calls(stamped);
    let added = calls(stamped).saturating_sub(calls(bare));
    set(word::CYCLES_ADDED, added * 1000 / TRIAL_CALLS);
    set(word::BEGUN_AT, Host::counter());
}
