//! Functions that the loader chooses (IFUNC): it calls the function of the name once, which returns the function to
//! use.
//!
//! In files that the program begins with, and in a program that is attached to, the loader has called it: it is called
//! again. In a library that is loaded later the engine may call nothing before the loader does. So it waits for the
//! loader's call, natively or in the cache.

use crate::engine::Engine;
use crate::machine::{Gates, Host};
use crate::system::mappings;
use lineup_recording::native::{Refusal, entry, state, word};
use std::sync::atomic::Ordering;

/// Code to run before an entry: at a chosen function it skips calls of the engine's own code, which uses the C
/// library's functions for memory.
pub(crate) fn code_before(engine: &Engine, number: usize, code: Vec<u8>) -> Vec<u8> {
    let is_chosen = engine.shared.entry(number, entry::CHOOSER).load(Ordering::Acquire) != 0;
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
        let shared = &self.shared;
        let read = |number, field| shared.entry(number, field).load(Ordering::Acquire);
        let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
        let of = |number| Chooser { number, pc: read(number, entry::CHOOSER) };
        let is_one = |own: &Chooser| {
            own.pc != 0
                && read(own.number, entry::ADDRESS) == own.pc
                && read(own.number, entry::ANSWER) == answer
        };
        (0..entries).map(of).filter(is_one).collect()
    }

    /// Notes the chosen function, unless that is watched already or cannot be. Returns whether the command is to look
    /// for it.
    pub(super) fn is_chosen(&self, chooser: Chooser, chosen: u64) -> bool {
        let shared = &self.shared;
        let word = |number, field| shared.entry(number, field);
        let read = |number, field| word(number, field).load(Ordering::Acquire);
        let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
        let is_other = |number: &usize| *number != chooser.number && read(*number, entry::ADDRESS) == chosen;
        let is_code = || {
            mappings::read()
                .iter()
                .any(|own| own.is_fixed_code && own.is_of_file && own.range.contains(&chosen))
        };
        let set = |number, field, value| word(number, field).store(value, Ordering::Release);
        let set_chosen = |number| {
            set(number, entry::CHOOSER, chooser.pc);
            set(number, entry::SIZE, 0);
            set(number, entry::ROOM, 0);
            set(number, entry::ADDRESS, chosen);
        };
        let answer = match (0..entries).find(is_other) {
            Some(other) if read(other, entry::REGION) == read(chooser.number, entry::REGION) => {
                // Its name may be that of another version of the function.
                if read(other, entry::ANSWER) == 0 {
                    set_chosen(other);
                }
                set(chooser.number, entry::ADDRESS, chosen);
                entry::PATCHED
            }
            Some(_) => Refusal::Shared.answer(),
            None if chosen == 0 || !is_code() => Refusal::Elsewhere.answer(),
            None => {
                set_chosen(chooser.number);
                0
            }
        };
        set(chooser.number, entry::ANSWER, answer);
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
        shared.word(word::STATE).store(state::ASKS_AGAIN, Ordering::Release);
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
