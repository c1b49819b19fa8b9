//! Timing calls: the engine's part of stamping them, see [`crate::machine::Timing::stamp`].
//!
//! [`crate::timing::open_calls`] handles the calls that the stamps' code cannot handle alone.

use crate::engine::{self, Engine};
use crate::machine::{Abi, Host, HostRegisters, Registers};
use crate::system;
use crate::threads::owned::Owned;
use crate::timing::open_calls::{CallExit, OpenCalls, Slot, Words, slot};
use crate::timing::trials;
use lineup_recording::native::{chunk, timed};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Time over which the counter is compared with the clock.
const COMPARED_NS: i64 = 5_000_000;
/// The number of calls for measuring the stamps' own cost.
const TRIAL_CALLS: u64 = 20_000;

/// A table without a reader, for threads beyond the room for tables.
static SPARE: AtomicU64 = AtomicU64::new(0);

/// Tables of threads whose end is not reported.
static TABLES: Owned<u64> = Owned::new();

/// Open calls of the threads that have a table, by its number: 0 until a thread needs them. They begin as zeros.
static OPEN: [AtomicU64; chunk::COUNT] = [const { AtomicU64::new(0) }; chunk::COUNT];

/// A thread's open calls of all regions.
struct OfThread {
    /// A handler of a signal has interrupted work on them.
    is_busy: AtomicBool,
    regions: [OpenCalls; timed::REGIONS],
}

/// Set in a region's number where a call ends with a jump.
pub(crate) const JUMPS: u64 = 1 << 8;

/// Open calls of a thread's region, its slot, and its words in the thread's table.
type OfRegion<'a> = (&'a mut OpenCalls, &'a mut Slot, &'a mut Words);

/// A call begins while others are open: the region and the return address's place come as a function's arguments.
///
/// # Safety
/// Only from the code of stamps.
pub(crate) unsafe extern "C" fn enter(registers: *mut HostRegisters) {
    // SAFETY: the caller's registers.
    let [region, at, ..] = unsafe { (*registers).function_arguments() };
    let done = with_open_calls(region, |_, (calls, slot, words)| calls.enter(slot, words, at));
    if done.is_none() {
        count_alone(region, timed::INNER);
    }
}

/// The innermost open call has ended while there is more to do than to count it.
///
/// # Safety
/// As of [`enter`].
pub(crate) unsafe extern "C" fn ended(registers: *mut HostRegisters) {
    // SAFETY: the caller's registers.
    let [region, ..] = unsafe { (*registers).function_arguments() };
    let jumps = region & JUMPS != 0;
    with_open_calls(region & !JUMPS, |_, (calls, slot, words)| calls.ended(slot, words, jumps));
}

/// A call ends that is not the innermost open one; the counter comes as an argument as well.
///
/// # Safety
/// As of [`enter`].
pub(crate) unsafe extern "C" fn other_end(registers: *mut HostRegisters) {
    // SAFETY: the caller's registers.
    let [region, at, now, ..] = unsafe { (*registers).function_arguments() };
    let ended = CallExit { at, now, jumps: region & JUMPS != 0 };
    let region = region & !JUMPS;
    with_open_calls(region, |engine, (calls, slot, words)| {
        if let Some(cycles) = calls.other_end(slot, words, ended) {
            trials::note(engine, region, words, cycles);
        }
    });
}

/// Runs work on the open calls of a region, except when it has interrupted the same work, or when there is no memory
/// for them.
fn with_open_calls(region: u64, work: impl FnOnce(&Engine, OfRegion<'_>)) -> Option<()> {
    let engine = engine::get()?;
    let region = usize::try_from(region).ok().filter(|region| *region < timed::REGIONS)?;
    // SAFETY: this thread's own.
    let slots = unsafe { &mut *Host::slots() };
    let open = open_calls(engine, slots.times)?;
    // SAFETY: made for this table, and never given back.
    let is_busy = unsafe { &(*open).is_busy };
    if is_busy.swap(true, Ordering::Acquire) {
        return None;
    }
    // SAFETY: the table is this thread's, and so are the open calls, which nothing else of this thread uses meanwhile.
    let (calls, slot, words) = unsafe {
        (&mut (*open).regions[region], &mut slots.own.timed[region], &mut *words_of(slots.times, region))
    };
    work(engine, (calls, slot, words));
    is_busy.store(false, Ordering::Release);
    Some(())
}

/// The open calls of a table. `None` for the table without a reader, and when there is no memory.
fn open_calls(engine: &Engine, table: u64) -> Option<*mut OfThread> {
    let known = &OPEN[engine.shared.number_of_table(table)?];
    if known.load(Ordering::Acquire) == 0 {
        let made = system::memory(size_of::<OfThread>())? as u64;
        if known.compare_exchange(0, made, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // A handler was first.
            system::unmap(made as *mut u8, size_of::<OfThread>());
        }
    }
    Some(known.load(Ordering::Acquire) as *mut OfThread)
}

fn words_of(table: u64, region: usize) -> *mut Words {
    (table as *mut Words).wrapping_add(region)
}

/// Counts a call without any other data.
fn count_alone(region: u64, word: usize) {
    // SAFETY: this thread's own.
    let slots = unsafe { &*Host::slots() };
    let region = (region as usize).min(timed::STAMPS);
    if slots.times != 0 {
        // SAFETY: within this thread's table, or the one without a reader.
        unsafe { (*words_of(slots.times, region))[word] += 1 };
    }
}

/// A thread's first call that is timed: gives it a table.
///
/// # Safety
/// Only from the code of stamps.
pub(crate) unsafe extern "C" fn first_call(_registers: *mut HostRegisters) {
    let Some(engine) = engine::get() else { return };
    if system::is_sealed() {
        engine.shared.control().passed_over.fetch_add(1, Ordering::Relaxed);
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
            engine.shared.control().passed_over.fetch_add(1, Ordering::Relaxed);
            slots.times = SPARE.load(Ordering::Relaxed);
        }
    }
    system::restore_signals(blocked);
}

/// A thread ends: another may continue to count in its table.
pub(crate) unsafe extern "C" fn end_thread(table: *mut libc::c_void) {
    let Some(engine) = engine::get().filter(|engine| engine.is_on()) else { return };
    // SAFETY: this thread's own.
    let slots = unsafe { &mut *Host::slots() };
    slots.times = 0;
    slots.own.timed = [[0; slot::WORDS]; timed::REGIONS];
    give_back(engine, table as u64);
}

/// The thread has ended: the calls that it had open were left.
fn give_back(engine: &Engine, table: u64) {
    trials::end(table as *mut u8);
    for region in 0..timed::REGIONS {
        // SAFETY: within the table, which no other thread uses.
        let words = unsafe { &mut *words_of(table, region) };
        words[timed::LEFT] += std::mem::take(&mut words[timed::OPEN]);
    }
    let open = engine.shared.number_of_table(table).map(|number| OPEN[number].load(Ordering::Acquire));
    if let Some(open) = open.filter(|open| *open != 0) {
        // SAFETY: made for this table, whose thread has ended.
        let open = unsafe { &mut *(open as *mut OfThread) };
        open.regions.iter_mut().for_each(OpenCalls::forget);
        open.is_busy.store(false, Ordering::Release);
    }
    engine.shared.leave_table(table);
}

/// Runs before the first call can be made. False when there is no memory.
pub(crate) fn prepare(engine: &Engine) -> bool {
    let spare = system::memory(chunk::BYTES as usize);
    SPARE.store(spare.map_or(0, |spare| spare as u64), Ordering::Relaxed);
    spare.is_some() && trials::prepare(engine)
}

/// Compares the counter with the clock, and measures stamped calls of a function that does nothing, whose code is at
/// `stamped`, against `bare`.
pub(crate) fn calibrate(engine: &Engine, stamped: u64, bare: u64) {
    let control = engine.shared.control();
    let (from, begun_ns) = (Host::counter(), system::clock_ns());
    system::sleep_ns(COMPARED_NS);
    let (to, ended_ns) = (Host::counter(), system::clock_ns());
    control.cycles.store(to.wrapping_sub(from), Ordering::Relaxed);
    control.nanoseconds.store(ended_ns.saturating_sub(begun_ns), Ordering::Relaxed);
    let calls = |at: u64| {
        // SAFETY: code of ours that returns at once.
        let function: extern "C" fn() = unsafe { std::mem::transmute(at as *const ()) };
        let begun = Host::counter();
        (0..TRIAL_CALLS).for_each(|_| function());
        Host::counter().wrapping_sub(begun)
    };
    // The first round pays the costs that occur once.
    calls(stamped);
    let added = calls(stamped).saturating_sub(calls(bare));
    control.cycles_added.store(added * 1000 / TRIAL_CALLS, Ordering::Relaxed);
    control.begun_at.store(Host::counter(), Ordering::Relaxed);
}
