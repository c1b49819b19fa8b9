//! Words that several threads need: no layout helps, but another use of the word may.

use crate::findings::{Evidence, Finding, Kind, Sign, Trial, WordChange};
use crate::hand_findings::LockWaits;
use crate::owner::{self, Owner};
use crate::tables::manual_edits;
use crate::threads::contention::{LEAST_WAITS, Waits, Word};
use crate::threads::lock_waits::is_locking;
use crate::work::Work;
use lineup_coherence::WAIT_CYCLES;
use lineup_explain::instruction::Atomic;
use lineup_explain::threads::is_of_system;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A word with a smaller share of all waits of threads is no finding.
const LEAST_SHARE: f64 = 0.1;
/// Words that are findings.
const MOST_WORDS: usize = 3;
/// The part of the waits for a lock that follows writes that take it, and writes that give it back, at least.
const LEAST_OF_LOCK: f64 = 0.02;

impl Work<'_, '_> {
    /// The words with most waits, most first. Data that a lock hands from thread to thread is none: the lock is.
    pub(crate) fn shared_words(&mut self, locks: &[LockWaits], all_cycles: f64) -> Vec<Finding> {
        let all = self.between.all.all();
        let with_waits = all_cycles + self.thread_waits(self.between.all).all() * WAIT_CYCLES;
        let words = std::mem::take(&mut self.between.words);
        let mut words: Vec<(u32, Word)> = words.into_iter().collect();
        words.retain(|(spot, word)| {
            word.waits >= LEAST_WAITS
                && word.waits as f64 >= LEAST_SHARE * all as f64
                && self.is_shared_word(*spot, word, !locks.is_empty())
        });
        words.sort_by_key(|(spot, word)| (Reverse(word.waits), *spot));
        words.truncate(MOST_WORDS);
        words.into_iter().map(|(spot, word)| self.shared_word(spot, &word, with_waits)).collect()
    }

    fn is_shared_word(&mut self, spot: u32, word: &Word, are_locks_taken: bool) -> bool {
        let has_place = match self.naming.spots[spot as usize].owner {
            Owner::Type(ty) => !is_of_system(ty, &mut self.naming.namer),
            Owner::Variable(..) => true,
            _ => false,
        };
        // Memory that is not changed atomically is handed over with a lock, where there is one.
        let is_atomic = word.written_by.keys().any(|pc| self.naming.namer.atomic_at(*pc).is_some());
        has_place && (is_atomic || !are_locks_taken)
    }

    fn shared_word(&mut self, spot: u32, word: &Word, with_waits: f64) -> Finding {
        let place = self.naming.spots[spot as usize];
        let subject = owner::name(&mut self.naming.namer, place.owner);
        let waits = self.thread_waits(Waits { of_same_bytes: word.waits, of_line_alone: 0 }).all();
        let gain = waits * WAIT_CYCLES / with_waits;
        let change = self.change(word);
        let functions = self.functions_that_wait(&word.awaited_by);
        Finding {
            kind: Kind::OwnParts,
            stalls: gain,
            gain,
            gains: vec![gain],
            sign: Sign::Steady,
            evidence: Evidence::Shared {
                word: self.word_name(spot),
                change,
                writers: word.writers.len() as u64,
                waiting: word.waiting.len() as u64,
                waits,
                of_waits: word.waits as f64 / self.between.all.all().max(1) as f64,
            },
            trials: vec![Trial { kind: Kind::OwnParts, gain }],
            next: if functions.is_empty() { String::new() } else { self.next_of_threads(&functions) },
            by_hand: Some(manual_edits::own_parts(change)),
            is_written: false,
            instead: None,
            functions,
            map: None,
            clock: None,
            subject: Some(subject),
        }
    }

    /// The member or variable that a word is.
    pub(crate) fn word_name(&mut self, spot: u32) -> String {
        let spot = self.naming.spots[spot as usize];
        let owner = owner::name(&mut self.naming.namer, spot.owner);
        let member = owner::member_name(&mut self.naming.namer, spot);
        if member.is_empty() { owner } else { format!("{owner}.{member}") }
    }

    /// Takes out the words of locks, and returns those that the program's own code takes and gives back.
    pub(crate) fn taken_words(&mut self) -> Vec<(u32, Word)> {
        let mut words = std::mem::take(&mut self.between.words);
        let in_locks = |pc: &u64| self.attribution.function_of(*pc).is_some_and(|one| is_locking(&one.name));
        words.retain(|_, word| !word.awaited_by.keys().any(in_locks));
        let (locks, others): (BTreeMap<u32, Word>, _) =
            words.into_iter().partition(|(_, word)| self.is_taken(word));
        self.between.words = others;
        locks.into_iter().collect()
    }

    /// Whether some writes are conditional or swap, as those that take a lock, and others store, as those that give it back.
    fn is_taken(&self, word: &Word) -> bool {
        let effect = |pc: &u64| self.naming.namer.atomic_at(*pc);
        let has = |wanted: &[Option<Atomic>]| {
            let own = word.written_by.iter().filter(|(pc, _)| wanted.contains(&effect(pc)));
            own.map(|(_, waits)| *waits).sum::<u64>() as f64 >= LEAST_OF_LOCK * word.waits as f64
        };
        let (swaps, stores) = (Some(Atomic::Swaps), None);
        word.writers.len() > 1
            && (has(&[Some(Atomic::Tests)]) && has(&[swaps, stores]) || has(&[swaps]) && has(&[stores]))
    }

    /// How threads change a word: by what the writes do that most waits follow.
    fn change(&self, word: &Word) -> WordChange {
        let sums = |pc: &u64| self.naming.namer.atomic_at(*pc) == Some(Atomic::Other);
        let of_sums: u64 = word.written_by.iter().filter(|(pc, _)| sums(pc)).map(|(_, waits)| *waits).sum();
        match word.writers.len() {
            1 => WordChange::ByOne,
            _ if 2 * of_sums.max(word.of_updates) >= word.waits => WordChange::Adds,
            _ => WordChange::Stores,
        }
    }
}
