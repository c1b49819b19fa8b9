//! Locks of a kernel that a task sleeps for: mutexes and reader-writer semaphores, and the spin locks of PREEMPT_RT.
//!
//! A task has such a lock, on whatever CPU it goes on. It asks from the call of the function that takes the lock to the return
//! from it, which is the load of the slot that the call stored to: what lies between, such as the switch to another task, belongs
//! to the asking. So this is known where return addresses lie in memory. Pieces of a task come from several CPUs and not in
//! their order; so all accesses of such functions are collected first, and gone through by time.

use super::code::{LockKind, SleepingCode, sleeping_code};
use super::holds::Hold;
use super::{IsShared, MOST_HOLDS};
use crate::namer::Namer;
use lineup_model::access::{Access, AccessKind, Call, ThreadId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes below and above a return address that are taken for the same stack: no lock lies on it.
const STACK_BYTES: u64 = 16 << 10;

/// Accesses of such functions kept at most.
const MOST_EVENTS: usize = 1 << 22;

/// Holds of a task looked through for the one that it took last.
const NEAR_HOLDS: usize = 16;

/// An access by a function that takes such locks or gives them back.
#[derive(Clone, Copy)]
struct Event {
    at: u64,
    window: u64,
    task: u32,
    code: SleepingCode,
    address: u64,
    is_store: bool,
    /// In one step that no other processor comes between.
    changes: bool,
    /// The store of eight bytes right before it, by other code: its address and the code, as that of a call is.
    called_from: Option<(u64, u64)>,
}

/// A task asks for a lock.
struct Ask {
    /// Where its return address lies.
    slot: u64,
    since: u64,
    place: u64,
    kind: LockKind,
    is_shared: IsShared,
    word: Option<u64>,
}

/// A lock that a task has.
struct Held {
    word: u64,
    kind: LockKind,
    is_shared: IsShared,
    asked_at: u64,
    got_at: u64,
    place: u64,
}

#[derive(Default)]
struct Doing {
    ask: Option<Ask>,
    has: Vec<Held>,
}

/// A time in which a task had a lock.
#[derive(Clone, Copy)]
struct Span {
    from: u64,
    to: u64,
    word: u64,
}

/// All such locks.
#[derive(Default)]
pub(super) struct Sleeping {
    codes: HashMap<u64, Option<SleepingCode>>,
    events: Vec<Event>,
    windows: BTreeSet<u64>,
    /// By task, in the order in which it took them.
    spans: HashMap<u32, Vec<Span>>,
    /// By word.
    pub(super) holds: BTreeMap<u64, (LockKind, Vec<Hold>)>,
}

impl Sleeping {
    /// What code at a program counter does with such locks, if a piece held an access by it.
    pub(super) fn code_at(&self, pc: u64) -> Option<SleepingCode> {
        self.codes.get(&pc).copied().flatten()
    }

    fn learn(&mut self, pc: u64, namer: &Namer<'_>) -> Option<SleepingCode> {
        *self.codes.entry(pc).or_insert_with(|| sleeping_code(&namer.function_at(pc).0))
    }

    /// Collects a piece's accesses, which a task did if `task` is one.
    pub(super) fn observe(&mut self, call: &Call, times: &[u64], task: Option<u32>, namer: &Namer<'_>) {
        self.windows.insert(call.sequence);
        let Some(task) = task else { return };
        let mut before: Option<&Access> = None;
        for (access, at) in call.accesses.iter().zip(times) {
            let code = self.learn(access.pc, namer);
            if let Some(code) = code.filter(|_| self.events.len() < MOST_EVENTS) {
                let is_other = |store: &&Access| self.code_at(store.pc) != Some(code);
                let is_push = |store: &&Access| store.kind == AccessKind::Store && store.size_bytes == 8;
                let is_store = access.kind == AccessKind::Store;
                self.events.push(Event {
                    at: *at,
                    window: call.sequence,
                    task,
                    code,
                    address: access.address,
                    is_store,
                    changes: is_store && namer.atomic_at(access.pc).is_some(),
                    called_from: before
                        .filter(is_push)
                        .filter(is_other)
                        .map(|store| (store.address, store.pc)),
                });
            }
            before = Some(access);
        }
    }

    /// Between the passes: who had which lock when.
    pub(super) fn settle(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|event| event.at);
        let mut doing: HashMap<u32, Doing> = HashMap::new();
        let (mut last, mut count) = (None, 0);
        for event in events {
            // Nothing is known of what happened in windows that were not kept.
            if last.is_some_and(|last| !(last..=event.window).all(|window| self.windows.contains(&window))) {
                doing.clear();
            }
            last = Some(event.window);
            if count < MOST_HOLDS && self.see(&event, &mut doing) {
                count += 1;
            }
        }
        self.spans.values_mut().for_each(|spans| spans.sort_by_key(|span| span.from));
    }

    /// Goes through an access; true when a lock was given back.
    fn see(&mut self, event: &Event, doing: &mut HashMap<u32, Doing>) -> bool {
        let own = doing.entry(event.task).or_default();
        if let Some(ask) = &mut own.ask {
            if !event.is_store && event.address == ask.slot {
                own.end_asking(event.at);
            } else if event.changes && event.address.abs_diff(ask.slot) >= STACK_BYTES {
                ask.word.get_or_insert(event.address);
            }
            return false;
        }
        match event.code {
            SleepingCode::Takes(kind, is_shared) => {
                if let Some((slot, place)) = event.called_from {
                    let word = Some(event.address).filter(|_| event.changes);
                    own.ask = Some(Ask { slot, since: event.at, place, kind, is_shared, word });
                }
                false
            }
            SleepingCode::GivesBack if event.changes => self.give_back(event, doing),
            SleepingCode::GivesBack => false,
        }
    }

    /// The task itself gives a lock back, or another one does so for it.
    fn give_back(&mut self, event: &Event, doing: &mut HashMap<u32, Doing>) -> bool {
        let has = |doing: &Doing| doing.has.iter().rposition(|held| held.word == event.address);
        let own = doing.get(&event.task).and_then(has).map(|index| (event.task, index));
        let found = own.or_else(|| doing.iter().find_map(|(task, doing)| Some((*task, has(doing)?))));
        let Some((task, index)) = found else { return false };
        let Some(doing) = doing.get_mut(&task) else { return false };
        let Held { word, kind, is_shared, asked_at, got_at, place } = doing.has.remove(index);
        let hold =
            Hold { thread: ThreadId(task), is_shared, asked_at, got_at, given_back_at: event.at, place };
        self.holds.entry(word).or_insert_with(|| (kind, Vec::new())).1.push(hold);
        self.spans.entry(task).or_default().push(Span { from: got_at, to: event.at, word });
        true
    }

    /// The word of the lock that a task took last and has.
    pub(super) fn under(&self, task: u32, at: u64) -> Option<u64> {
        let spans = self.spans.get(&task)?;
        let after = spans.partition_point(|span| span.from < at);
        spans[..after].iter().rev().take(NEAR_HOLDS).find(|span| at < span.to).map(|span| span.word)
    }
}

impl Doing {
    /// The function that takes the lock returns.
    fn end_asking(&mut self, at: u64) {
        let Some(Ask { since, place, kind, is_shared, word: Some(word), .. }) = self.ask.take() else {
            return;
        };
        // A task that asks for a lock that it has did not get it the time before.
        self.has.retain(|held| held.word != word);
        self.has.push(Held { word, kind, is_shared, asked_at: since, got_at: at, place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: SleepingCode = SleepingCode::Takes(LockKind::KernelMutex, false);
    const WORD: u64 = 0x9000_0000;

    fn event(task: u32, at: u64, code: SleepingCode, address: u64) -> Event {
        let (window, is_store, changes) = (at / 100, false, false);
        Event { at, window, task, code, address, is_store, changes, called_from: None }
    }

    /// A task calls a function that tries at once; it has the lock when that returns.
    fn takes(task: u32, at: u64, returns_at: u64, code: SleepingCode) -> [Event; 3] {
        let slot = 0x10_0000 * u64::from(task + 1);
        let entry = Event { called_from: Some((slot, 7)), ..event(task, at, code, WORD) };
        let tries = Event { is_store: true, changes: true, ..event(task, at + 1, code, WORD) };
        [entry, tries, event(task, returns_at, code, slot)]
    }

    fn gives_back(task: u32, at: u64) -> Event {
        Event { is_store: true, changes: true, ..event(task, at, SleepingCode::GivesBack, WORD) }
    }

    fn told(events: impl IntoIterator<Item = Event>, windows: impl IntoIterator<Item = u64>) -> Sleeping {
        let (events, windows) = (events.into_iter().collect(), windows.into_iter().collect());
        let mut all = Sleeping { events, windows, ..Sleeping::default() };
        all.settle();
        all
    }

    fn holds(all: &Sleeping) -> Vec<(u32, u64, u64, u64)> {
        let holds = all.holds.values().flat_map(|(_, holds)| holds);
        holds.map(|hold| (hold.thread.0, hold.asked_at, hold.got_at, hold.given_back_at)).collect()
    }

    #[test]
    fn a_task_that_sleeps_until_it_has_a_mutex_waits_for_the_one_that_has_it() {
        // Task 1 asks while 0 has it, sleeps, and goes on elsewhere; pieces come in the order of CPUs.
        let late = [takes(1, 30, 160, MUTEX).to_vec(), vec![gives_back(1, 190)]].concat();
        let early = [takes(0, 10, 20, MUTEX).to_vec(), vec![gives_back(0, 150)]].concat();
        let all = told(late.into_iter().chain(early), [0, 1]);
        assert_eq!(holds(&all), [(0, 10, 20, 150), (1, 30, 160, 190)]);
        let under = [(0, 20), (0, 21), (0, 150), (1, 100), (1, 170)].map(|(task, at)| all.under(task, at));
        assert_eq!(under, [None, Some(WORD), None, None, Some(WORD)]);
        let waits = super::super::holds::waits(&all.holds[&WORD].1);
        assert_eq!(waits.len(), 1);
        assert_eq!((waits[0].thread, waits[0].waits_for, waits[0].time), (1, 0, 130));
    }

    #[test]
    fn readers_have_a_lock_beside_each_other_and_what_a_gap_hides_is_not_told() {
        let read = SleepingCode::Takes(LockKind::KernelReadWriteSemaphore, true);
        let two = [takes(0, 10, 20, read), takes(1, 12, 22, read)].concat();
        let all = told(two.iter().copied().chain([gives_back(1, 50), gives_back(0, 60)]), [0]);
        assert_eq!(holds(&all), [(1, 12, 22, 50), (0, 10, 20, 60)]);
        assert!(super::super::holds::waits(&all.holds[&WORD].1).is_empty());
        // The one that took it gave it back, or had it taken back for it, in a window that was not kept.
        let gap = told(takes(0, 10, 20, MUTEX).into_iter().chain([gives_back(0, 350)]), [0, 3]);
        assert_eq!(holds(&gap), []);
        // Another task gives it back.
        let other = told(takes(0, 10, 20, MUTEX).into_iter().chain([gives_back(5, 40)]), [0]);
        assert_eq!(holds(&other), [(0, 10, 20, 40)]);
    }

    #[test]
    fn an_attempt_that_failed_counts_from_the_one_that_did_not() {
        let events = [takes(0, 10, 20, MUTEX), takes(0, 30, 40, MUTEX)].concat();
        let all = told(events.into_iter().chain([gives_back(0, 60)]), [0]);
        assert_eq!(holds(&all), [(0, 30, 40, 60)]);
    }
}
