//! Superblocks that a signal handler interrupts, when all of a run is logged.
//!
//! The written part of a superblock's record goes to the log as a record of its own, so that the handler's records
//! follow it. When the handler has returned, the superblock's record begins anew at the log's end, with the number of
//! its instructions that were executed before.

use crate::engine::Engine;
use crate::machine::{Context, Host, HostContext, Translation};
use crate::signals::marks::mark_at;
use crate::threads::slots::Slots;
use lineup_recording::native::record;

/// The most words kept here; a longer record is kept elsewhere, since signal stacks may be small.
const FEW: usize = 24;

/// The unfinished part of a superblock.
pub(crate) struct Unfinished {
    /// The number of its executed instructions, 0 when it was not writing a record.
    instructions: u8,
    /// The stack pointer of then.
    stack: u64,
    words: usize,
    few: [u64; FEW],
    many: Vec<u64>,
}

/// A thread was interrupted with these registers: stores the log's end from its register to the slot. `None` where the
/// slot holds it already.
pub(crate) fn begin(engine: &Engine, slots: &mut Slots, cached: &HostContext) -> Option<Unfinished> {
    let pc = cached.pc();
    if !engine.logs_all() || !engine.signals.cache.contains(&pc) {
        return None;
    }
    let (mark, block) = mark_at(engine, pc)?;
    let open = Host::open_log(&mark, cached)?;
    slots.log = open.log;
    let stack = cached.stack();
    let instructions = open.instructions.unwrap_or_default();
    let mut unfinished = Unfinished { instructions, stack, words: 0, few: [0; FEW], many: Vec::new() };
    let head =
        |number: u64, words: usize| [u64::from(record::INTERRUPTED) << 32, number, words as u64, stack];
    let superblock = open.instructions.and(block.superblock.as_ref());
    let Some(part) = superblock.and_then(|superblock| superblock.parts.last()) else {
        engine.log(slots, &head(0, 0));
        return Some(unfinished);
    };
    // A record of the stack pointer may be unfinished as well.
    unfinished.words = usize::from(part.words).max(record::STACK_WORDS);
    let words = slots.log as *const u64;
    // SAFETY: the thread's own chunk has room for the record, as the superblock has checked.
    let words = unsafe { std::slice::from_raw_parts(words, unfinished.words) };
    match unfinished.few.get_mut(..words.len()) {
        Some(few) => few.copy_from_slice(words),
        None => unfinished.many.extend_from_slice(words),
    }
    let number = engine.number_of(pc);
    let number = u64::from(number) | u64::from(instructions) << 32;
    engine.log(slots, &head(number, part.words.into()));
    unfinished.write(slots.log, part.words.into());
    slots.log += 8 * u64::from(part.words);
    Some(unfinished)
}

impl Engine {
    /// The number of the superblock at a place in the cache.
    fn number_of(&self, pc: u64) -> u32 {
        self.code.with(|code| code.number_at(pc)).unwrap_or_default()
    }
}

impl Unfinished {
    /// Writes the words to a place in the log, which has room for them.
    fn write(&self, to: u64, count: usize) {
        let words = if self.many.is_empty() { &self.few[..self.words] } else { &self.many[..] };
        for (number, word) in words.iter().take(count).enumerate() {
            // SAFETY: behind a full chunk there is room for more than two records.
            unsafe { (to as *mut u64).add(number).write(*word) };
        }
    }

    /// The handler has returned.
    pub(crate) fn go_on(&self, engine: &Engine, slots: &mut Slots, registers: &mut HostContext) {
        engine.log(slots, &[u64::from(record::RESUMED) << 32, self.instructions.into(), self.stack]);
        self.write(slots.log, self.words);
        Host::set_log(registers, slots.log);
    }
}
