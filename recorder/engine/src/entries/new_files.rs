//! Entries in files that the program maps: they are patched at once, or when the loader has chosen their functions.

use super::choosers::{self, Chooser};
use crate::engine::{self, Engine};
use crate::entries::patching;
use crate::machine::{Gates, Host, HostRegisters, Registers};
use crate::system::lock::Lock;
use crate::system::{self, File};
use lineup_recording::native::{Refusal, entry, state};
use std::sync::atomic::{AtomicBool, Ordering};

/// Held while entries are looked for in new files.
pub(crate) static LOOKING: Lock<()> = Lock::new(());

/// Asks the command for entries in files that were mapped just now, and patches them: no thread executes them yet.
/// `blocked` are the signals that the program blocks in this thread.
pub(crate) fn more(engine: &Engine, blocked: u64) {
    let shared = &engine.shared;
    shared.control().state.store(state::ASKS_AGAIN, Ordering::Release);
    if shared.wait_for_answer() {
        patching::watch_allocators(engine);
        wait_for_all(engine);
        patching::all(engine, blocked);
    }
    shared.control().state.store(state::RUNS, Ordering::Release);
}

/// Set while a chooser is awaited.
static WAITS: AtomicBool = AtomicBool::new(false);

/// Waits for the choosers in files that were mapped just now.
pub(crate) fn wait_for_all(engine: &Engine) {
    let choosers = engine.choosers(0);
    if choosers.is_empty() {
        return;
    }
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    for chooser in choosers {
        let entry = engine.shared.entry(chooser.number);
        let extent = (entry.size.load(Ordering::Acquire), entry.room.load(Ordering::Acquire));
        let before = Host::before_choosing(from_site as *const () as u64, chooser.number as u64);
        let led = patching::lead_entry(engine, &memory, chooser.pc, extent, before);
        let answer = match led {
            Ok(()) => entry::WAITS,
            Err(Refusal::NoRoom) => continue,
            Err(refusal) => refusal.answer(),
        };
        entry.answer.store(answer, Ordering::Release);
        WAITS.store(true, Ordering::Release);
    }
}

/// Code at an address is about to run in the cache for the first time: it may be a chooser.
pub(crate) fn notice(engine: &Engine, pc: u64) {
    if WAITS.load(Ordering::Acquire)
        && let Some(chooser) = engine.choosers(entry::WAITS).into_iter().find(|chooser| chooser.pc == pc)
    {
        choose(engine, chooser);
    }
}

/// Called by a chooser's entry, before the chooser runs.
///
/// # Safety
/// Only from [`Gates::before_choosing`].
unsafe extern "C" fn from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    let number = unsafe { (*registers).chooser() };
    let Some(engine) = engine::get().filter(|engine| engine.is_on()) else { return };
    if let Some(chooser) = engine.choosers(entry::WAITS).into_iter().find(|chooser| chooser.number == number)
    {
        choose(engine, chooser);
    }
}

/// Calls a chooser that the loader is about to call, and watches the function that it chooses.
fn choose(engine: &Engine, chooser: Chooser) {
    let signals = system::block_signals();
    let moved = engine.code.with(|code| code.moved.get(&chooser.pc).copied());
    if let Some(moved) = moved {
        // SAFETY: as in `call_all`; the loader calls it next. It begins with the instructions that were moved from
        // there.
        let chosen = unsafe { choosers::call(moved) };
        LOOKING.with(|()| {
            // Another thread may have done this at the same time.
            let waits = |other: &Chooser| other.number == chooser.number && other.pc == chooser.pc;
            if engine.choosers(entry::WAITS).iter().any(waits) && engine.is_chosen(chooser, chosen) {
                engine.code.with(|code| code.watch(engine, chosen));
                more(engine, signals);
            }
        });
    }
    system::restore_signals(signals);
}
