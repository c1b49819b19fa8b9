//! Functions that the loader chooses (IFUNC): it calls the function of the name once, which returns the function to
//! use.
//!
//! In files that the program begins with, and in a program that is attached to, the loader has called it: it is called
//! again. In a library that is loaded later the engine may call nothing before the loader does. So it waits for the
//! loader's call, natively or in the cache.

use crate::engine::Engine;
use crate::machine::{Gates, Host};
use crate::system::mappings;
use lineup_recording::native::head::Entry;
use lineup_recording::native::{Refusal, entry, state};
use std::sync::atomic::{AtomicU64, Ordering};

/// Code to run before an entry: at a chosen function it skips calls of the engine's own code, which uses the C
/// library's functions for memory.
pub(crate) fn code_before(engine: &Engine, number: usize, code: Vec<u8>) -> Vec<u8> {
    let is_chosen = engine.shared.entry(number).chooser.load(Ordering::Acquire) != 0;
    let own = code_before as *const () as u64;
    let holds_own = || mappings::read().into_iter().map(|one| one.range).find(|range| range.contains(&own));
    match is_chosen.then(holds_own).flatten() {
        Some(range) => Host::unless_called_from(&range, code),
        None => code,
    }
}

/// An entry whose function is not chosen yet.
#[derive(Clone, Copy)]
pub(super) struct Chooser {
    pub(super) number: usize,
    pub(super) pc: u64,
}

impl Engine {
    pub(super) fn choosers(&self, answer: u64) -> Vec<Chooser> {
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        let one = |(number, entry): (usize, &Entry)| {
            let pc = read(&entry.chooser);
            let is_one = pc != 0 && read(&entry.address) == pc && read(&entry.answer) == answer;
            is_one.then_some(Chooser { number, pc })
        };
        self.shared.entries().iter().enumerate().filter_map(one).collect()
    }

    /// Notes the chosen function, unless that is watched already or cannot be. Returns whether the command is to look
    /// for it.
    pub(super) fn is_chosen(&self, chooser: Chooser, chosen: u64) -> bool {
        let entries = self.shared.entries();
        let own = self.shared.entry(chooser.number);
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        let is_other =
            |(number, entry): &(usize, &Entry)| *number != chooser.number && read(&entry.address) == chosen;
        let is_code = || {
            mappings::read()
                .iter()
                .any(|own| own.is_fixed_code && own.is_of_file && own.range.contains(&chosen))
        };
        let set_chosen = |entry: &Entry| {
            entry.chooser.store(chooser.pc, Ordering::Release);
            entry.size.store(0, Ordering::Release);
            entry.room.store(0, Ordering::Release);
            entry.address.store(chosen, Ordering::Release);
        };
        let answer = match entries.iter().enumerate().find(is_other) {
            Some((_, other)) if read(&other.region) == read(&own.region) => {
                // Its name may be that of another version of the function.
                if read(&other.answer) == 0 {
                    set_chosen(other);
                }
                own.address.store(chosen, Ordering::Release);
                entry::PATCHED
            }
            Some(_) => Refusal::Shared.answer(),
            None if chosen == 0 || !is_code() => Refusal::Elsewhere.answer(),
            None => {
                set_chosen(own);
                0
            }
        };
        own.answer.store(answer, Ordering::Release);
        answer == 0 || answer == entry::PATCHED
    }
}

/// Calls the choosers in files that the loader has finished with, before or during the program's own code. False when
/// the command does not answer.
pub(crate) fn call_all(engine: &Engine) -> bool {
    let mut was_any = false;
    for chooser in engine.choosers(0) {
        // SAFETY: a function that takes nothing and returns an address; the loader has called it before, in the same
        // way.
        let chosen = unsafe { call(chooser.pc) };
        was_any |= engine.is_chosen(chooser, chosen);
    }
    let shared = &engine.shared;
    if was_any {
        shared.control().state.store(state::ASKS_AGAIN, Ordering::Release);
    }
    !was_any || shared.wait_for_answer()
}

/// # Safety
/// At the address must be a function that takes nothing.
pub(super) unsafe fn call(pc: u64) -> u64 {
    // SAFETY: the caller's promise.
    let function: extern "C" fn() -> u64 = unsafe { std::mem::transmute(pc as *const ()) };
    function()
}
