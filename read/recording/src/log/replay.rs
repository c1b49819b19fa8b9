//! A log read again: executions and their accesses, in the order of each thread.

use super::packed::Unpacker;
use super::parts::{LogBlock, LogPart};
use crate::native::record;
use crate::native::repeated_lines::each_in_turn;
use crate::native::superblock::{AccessForm, Reckoned, Superblock, named};
use crate::records::event::Event;
use std::collections::HashMap;
use std::ops::Range;

/// Handlers on top of each other in one thread, at most.
const MOST_INTERRUPTED: usize = 1 << 12;
/// A string instruction does not repeat more often: no memory is that large.
const MOST_REPETITIONS: u64 = 1 << 47;

impl LogPart {
    /// The part of an event, when it is one.
    pub fn of(event: &Event) -> Option<&LogPart> {
        match event {
            Event::LogPart(part) => Some(part),
            _ => None,
        }
    }
}

/// One thing of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogEntry<'a> {
    /// A superblock was executed, or some of it.
    Executed(Execution<'a>),
    /// A system call: its number, the first four arguments, and its position in the order of such events.
    SystemCall([u64; 6]),
    /// The following execution was not recorded.
    Lost,
}

/// A superblock that was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Execution<'a> {
    /// Its place among all superblocks of the log.
    pub place: usize,
    /// Its description.
    pub superblock: &'a Superblock,
    /// Its executed instructions: all up to the end of a part, unless a signal came in between.
    pub instructions: Range<usize>,
    record: &'a [u64],
    thread_base: u64,
    stack: u64,
}

impl Execution<'_> {
    /// The number of instructions that it counts as.
    pub fn count(&self) -> u64 {
        self.instructions.len() as u64
    }

    /// The number of repetitions of its string instruction; 1 where it has none.
    pub fn repetitions(&self) -> u64 {
        self.superblock.repetitions(self.record)
    }

    /// Passes on every access in its order, with its address and its bytes. A string instruction that
    /// repeats has one for each line that it touches; its two sides take turns.
    pub fn each_access(&self, mut pass_on: impl FnMut(&Reckoned, u64, u32)) {
        let own = |access: &&Reckoned| self.instructions.contains(&usize::from(access.instruction));
        if self.superblock.is_repeated() {
            let mut all = self.superblock.accesses.iter().filter(own);
            let own = [all.next(), all.next()];
            let sides =
                own.map(|access| access.map(|access| access.repeated(self.record)).unwrap_or_default());
            return each_in_turn(sides, |side, address, bytes| {
                own[side].into_iter().for_each(|access| pass_on(access, address, bytes));
            });
        }
        let words = self.superblock.worked_out(self.record, self.stack);
        for access in self.superblock.accesses.iter().filter(own) {
            debug_assert!(access.told != AccessForm::Repeated);
            let (address, bytes) = access.reckon(&words, self.thread_base);
            if bytes > 0 {
                pass_on(access, address, bytes);
            }
        }
    }
}

/// The state of a thread.
#[derive(Clone, Default)]
struct ThreadState {
    base: u64,
    /// The stack pointer.
    stack: u64,
    /// The stack pointers at signals, and at the beginnings of the superblocks that they interrupted.
    interrupted: Vec<(u64, u64)>,
    /// The number of the next record's instructions that were executed before a signal came.
    done: usize,
}

/// The superblocks of a log, and the progress of its threads.
#[derive(Default)]
pub struct Log {
    blocks: Vec<LogBlock>,
    /// Instructions up to the end of each part.
    ends: Vec<Vec<usize>>,
    /// The places of superblocks, by number.
    places: HashMap<u32, usize>,
    threads: HashMap<u64, ThreadState>,
    unpacker: Unpacker,
}

impl Log {
    /// Stores the description of a superblock, when the event holds one. The first of a number counts.
    pub fn learn(&mut self, event: &Event) {
        let Event::LogBlock(block) = event else { return };
        let place = self.blocks.len();
        if block.number != 0 && *self.places.entry(block.number).or_insert(place) == place {
            let own = &block.superblock;
            self.ends.push((0..own.parts.len()).map(|part| own.instructions(part)).collect());
            self.blocks.push(block.clone());
        }
    }

    /// The superblocks known so far, in the order of their descriptions.
    pub fn blocks(&self) -> &[LogBlock] {
        &self.blocks
    }

    /// Passes on the contents of a part, in its order. `None` when it is malformed: the contents before the error were
    /// passed on.
    pub fn each(&mut self, part: &LogPart, mut pass_on: impl FnMut(LogEntry<'_>)) -> Option<()> {
        let (blocks, places) = (&self.blocks, &self.places);
        let shape = |number| blocks.get(*places.get(&number)?).map(|block| block.superblock.words());
        let words = self.unpacker.unpack(&part.packed, shape)?;
        let mut state = self.threads.remove(&part.thread).unwrap_or_default();
        let mut left = words.as_slice();
        while !left.is_empty() {
            let used = self.record(left, &mut state, &mut pass_on)?;
            left = left.get(used..)?;
        }
        self.threads.insert(part.thread, state);
        Some(())
    }

    /// Passes on the contents of the first record. Returns its number of words.
    fn record(
        &self,
        words: &[u64],
        state: &mut ThreadState,
        pass_on: &mut impl FnMut(LogEntry<'_>),
    ) -> Option<usize> {
        let head = *words.first()?;
        if head as u32 == 0 {
            return self.special((head >> 32) as u32, words, state, pass_on);
        }
        let (number, part) = named(head);
        let place = *self.places.get(&number)?;
        let superblock = &self.blocks[place].superblock;
        let record = words.get(..superblock.parts.get(part)?.words.into())?;
        let done = std::mem::take(&mut state.done);
        let end = self.ends[place][part];
        self.executed(place, record, done.min(end)..end, state, pass_on)?;
        state.stack = superblock.parts[part].stack_at_end(record, state.stack);
        Some(record.len())
    }

    fn executed(
        &self,
        place: usize,
        record: &[u64],
        instructions: Range<usize>,
        state: &ThreadState,
        pass_on: &mut impl FnMut(LogEntry<'_>),
    ) -> Option<()> {
        let superblock = &self.blocks[place].superblock;
        let (thread_base, stack) = (state.base, state.stack);
        let execution = Execution { place, superblock, instructions, record, thread_base, stack };
        (superblock.repetitions(record) <= MOST_REPETITIONS).then(|| pass_on(LogEntry::Executed(execution)))
    }

    /// A record that is no superblock's.
    fn special(
        &self,
        kind: u32,
        words: &[u64],
        state: &mut ThreadState,
        pass_on: &mut impl FnMut(LogEntry<'_>),
    ) -> Option<usize> {
        match kind {
            record::SYSTEM_CALL => {
                pass_on(LogEntry::SystemCall(words.get(1..record::SYSTEM_CALL_WORDS)?.try_into().ok()?));
                Some(record::SYSTEM_CALL_WORDS)
            }
            record::LOST | record::LEAVE => {
                pass_on(LogEntry::Lost);
                Some(record::LEAVE_WORDS)
            }
            record::BEGIN => {
                *state = ThreadState { base: *words.get(1)?, ..ThreadState::default() };
                Some(record::BEGIN_WORDS)
            }
            record::RESUMED => {
                let [_, done, place] = *words.first_chunk::<{ record::RESUMED_WORDS }>()?;
                state.done = usize::try_from(done).ok()?;
                let at = state.interrupted.iter().rposition(|(own, _)| *own == place)?;
                state.stack = state.interrupted[at].1;
                state.interrupted.truncate(at);
                Some(record::RESUMED_WORDS)
            }
            record::STACK => {
                state.stack = *words.get(1)?;
                Some(record::STACK_WORDS)
            }
            record::INTERRUPTED => self.interrupted(words, state, pass_on),
            _ => None,
        }
    }

    /// Some of a superblock was executed.
    fn interrupted(
        &self,
        words: &[u64],
        state: &mut ThreadState,
        pass_on: &mut impl FnMut(LogEntry<'_>),
    ) -> Option<usize> {
        let [_, head, count, at] = *words.first_chunk::<{ record::INTERRUPTED_WORDS }>()?;
        let count = usize::try_from(count).ok()?;
        let record = words[record::INTERRUPTED_WORDS..].get(..count)?;
        // A handler that was left by a jump has not returned.
        state.interrupted.retain(|(own, _)| *own != at);
        if state.interrupted.len() == MOST_INTERRUPTED {
            state.interrupted.remove(0);
        }
        state.interrupted.push((at, state.stack));
        if head == 0 && count == 0 {
            return Some(record::INTERRUPTED_WORDS);
        }
        let place = *self.places.get(&(head as u32))?;
        let all = *self.ends[place].last()?;
        let executed = (head >> 32) as usize;
        let is_whole = self.blocks[place].superblock.parts.last()?.words == u8::try_from(count).ok()?;
        if executed > all || !is_whole {
            return None;
        }
        let done = std::mem::take(&mut state.done).min(executed);
        if executed > done {
            self.executed(place, record, done..executed, state, pass_on)?;
        }
        Some(record::INTERRUPTED_WORDS + count)
    }
}
