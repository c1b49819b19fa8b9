//! Locks that a program has written itself: words that its threads wait for in loops.
//!
//! A word counts as one when a thread was seen to try again: an instruction that puts a value there and returns the old
//! one runs twice in a row, with nothing between but loads of the word. The thread that runs it takes the lock, and its
//! later plain store or exchange elsewhere gives it back. A word that two threads take so at once is not a lock. Loops
//! that nobody had to run twice, and locks taken with sums (tickets), are not recognised. Machines other than x86 use
//! instructions that do not return the old value.

use crate::code::instruction::Atomic;
use crate::naming::namer::Namer;
use crate::threads::locks::holds::{Hold, Word};
use lineup_model::access::{Access, AccessKind, Call, ThreadId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The largest number of holds in a hundred that may be unlike those of a lock: long calls are not recorded completely.
const MOST_DOUBTS: usize = 10;

/// A thread took a word.
#[derive(Clone, Copy)]
pub(super) struct Take {
    at: u64,
    thread: ThreadId,
}

/// Words and the code that takes them.
#[derive(Default)]
pub(super) struct Spins {
    /// By word, the instructions that try to take it.
    takers: HashMap<Word, HashSet<u64>>,
    /// The waited-for words that a value was put to as a lock is given back.
    given_back: HashSet<Word>,
    /// By instruction: whether it tries to take a lock.
    tries: HashMap<u64, bool>,
    /// The threads that took a word, with the times.
    taken: BTreeMap<Word, Vec<Take>>,
    /// The number of times a thread took a word that it already had, or accessed nothing else while it had it.
    doubts: HashMap<Word, usize>,
}

impl Spins {
    /// Looks for loops in a call.
    pub(super) fn observe(&mut self, call: &Call, namer: &Namer<'_>) {
        // The word that the thread accessed last, and by which instruction it tried to take it.
        let mut last: Option<(u64, Option<u64>)> = None;
        for access in &call.accesses {
            let is_same = last.is_some_and(|(word, _)| word == access.address);
            let tried = last.and_then(|(_, tried)| tried).filter(|_| is_same);
            if access.kind == AccessKind::Load {
                last = Some((access.address, tried));
                continue;
            }
            let word = (call.process, access.address);
            let is_taker = |pcs: &HashSet<u64>| pcs.contains(&access.pc);
            if self.takers.get(&word).is_some_and(|pcs| !is_taker(pcs))
                && matches!(namer.atomic_at(access.pc), None | Some(Atomic::Swaps))
            {
                self.given_back.insert(word);
            }
            if !self.tries(access, namer) {
                last = None;
                continue;
            }
            if tried == Some(access.pc) {
                self.takers.entry(word).or_default().insert(access.pc);
            }
            last = Some((access.address, Some(access.pc)));
        }
    }

    fn tries(&mut self, access: &Access, namer: &Namer<'_>) -> bool {
        let tells = || matches!(namer.atomic_at(access.pc), Some(Atomic::Swaps | Atomic::Tests));
        *self.tries.entry(access.pc).or_insert_with(tells)
    }

    /// Whether an instruction tries to take a word that is waited for.
    pub(super) fn takes(&self, word: Word, pc: u64) -> bool {
        self.takers.get(&word).is_some_and(|takers| takers.contains(&pc)) && self.given_back.contains(&word)
    }

    /// A thread took a word.
    pub(super) fn took(&mut self, word: Word, thread: ThreadId, at: u64) {
        self.taken.entry(word).or_default().push(Take { at, thread });
    }

    /// Counts an access to a word that may be unlike an access to a lock.
    pub(super) fn doubt(&mut self, word: Word, is_unlike: bool) {
        *self.doubts.entry(word).or_default() += usize::from(is_unlike);
    }

    /// Whether threads had a word one after the other, as they have a lock. Several threads gave it back. Hardly any
    /// took it while it was held, or without accessing anything else. `holds` are in order of their beginning.
    pub(super) fn is_lock(&self, word: Word, holds: &[Hold]) -> bool {
        let threads: HashSet<ThreadId> = holds.iter().map(|hold| hold.thread).collect();
        let is_inside = |take: &&Take| {
            let before = holds.partition_point(|hold| hold.got_at < take.at);
            let last = before.checked_sub(1).and_then(|last| holds.get(last));
            last.is_some_and(|hold| hold.thread != take.thread && take.at < hold.given_back_at)
        };
        let takes = self.taken.get(&word).map_or(&[][..], Vec::as_slice);
        let doubts = self.doubts.get(&word).copied().unwrap_or(0) + takes.iter().filter(is_inside).count();
        threads.len() > 1 && doubts * 100 <= MOST_DOUBTS * holds.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::holds::Course;
    use super::*;
    use lineup_model::access::ProcessId;

    fn hold(thread: u32, got_at: u64, given_back_at: u64) -> Hold {
        Hold::new(Course::Lock, ThreadId(thread), got_at, given_back_at)
    }

    #[test]
    fn a_lock_is_had_by_one_thread_at_a_time_and_for_something() {
        let word = (ProcessId(0), 0x1000);
        let holds = [hold(0, 10, 20), hold(1, 30, 40), hold(0, 50, 60)];
        let is_lock = |more: &[(u64, u32)], doubts: &[bool], holds: &[Hold]| {
            let mut spins = Spins::default();
            for (at, thread) in [(10, 0), (30, 1), (50, 0)].iter().chain(more) {
                spins.took(word, ThreadId(*thread), *at);
            }
            doubts.iter().for_each(|is_unlike| spins.doubt(word, *is_unlike));
            spins.is_lock(word, holds)
        };
        assert!(is_lock(&[], &[false, false], &holds));
        assert!(!is_lock(&[(15, 1)], &[], &holds), "taken while 0 has it");
        assert!(!is_lock(&[], &[true], &holds), "a thread took it twice, or for nothing");
        assert!(!is_lock(&[], &[], &holds[..1]), "nobody else wants it");
    }
}
