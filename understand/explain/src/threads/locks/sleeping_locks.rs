//! Locks of a kernel that a task sleeps for: mutexes and reader-writer semaphores, and the spin locks of PREEMPT_RT.
//!
//! A task has such a lock, on any CPU it continues on. It asks from the call of the function that takes the lock to the
//! return from it. Accesses between them, such as the switch to another task, belong to the asking. On x86 a call
//! stores the return address, and the return loads it. On Arm the function stores it first of all, where it calls
//! others, and loads it last; one that calls none has the lock when it changed it. Pieces of a task come from several
//! CPUs and not in their order; so all accesses of such functions are collected first, and gone through by time.

use crate::naming::namer::Namer;
use crate::threads::locks::holds::{Course, Hold, MOST_HOLDS};
use crate::threads::locks::lock_code::{IsShared, LockKind, SleepingCode, sleeping_code};
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
    /// It is the first of a function.
    begins: Option<Begins>,
}

/// A function begins.
#[derive(Clone, Copy)]
struct Begins {
    /// The place of its return address, if it is stored.
    slot: Option<u64>,
    /// The code that was there before.
    place: u64,
}

/// A task asks for a lock.
struct Ask {
    /// The place of its return address.
    slot: u64,
    since: u64,
    place: u64,
    kind: LockKind,
    is_shared: IsShared,
    word: Option<u64>,
}

/// A lock that a task has.
struct TaskLock {
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
    has: Vec<TaskLock>,
    /// The function that gives a semaphore back has done so.
    has_posted: bool,
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
    /// By task, the slots of functions that take a lock and did not return yet, the outermost first. Another function
    /// that such a one ends with may return for it.
    slots: HashMap<u32, Vec<(u64, SleepingCode)>>,
    /// Words of locks that were taken.
    words: BTreeMap<u64, LockKind>,
    /// By task, in the order in which it took them.
    spans: HashMap<u32, Vec<Span>>,
    /// By word.
    pub(super) holds: BTreeMap<u64, (LockKind, Vec<Hold>)>,
}

impl Begins {
    /// On machines whose calls store the return address, the access before is such a store.
    fn behind_a_call(store: &Access) -> Option<Begins> {
        let is_push = store.kind == AccessKind::Store && store.size_bytes == 8;
        is_push.then_some(Begins { slot: Some(store.address), place: store.pc })
    }

    /// On machines whose functions store it, their first access stores it, or none does.
    fn of_its_first(access: &Access, changes: bool, before: Option<&Access>) -> Option<Begins> {
        let slot = Some(access.address).filter(|_| !changes);
        let begins = Begins { slot, place: before?.pc };
        (access.kind == AccessKind::Store).then_some(begins)
    }
}

impl Sleeping {
    /// The role of code at a program counter in handling such locks, if a piece held an access by it.
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
            let own = self.learn(access.pc, namer);
            let code = self.returns(task, access).or(own);
            if let Some(code) = code.filter(|_| self.events.len() < MOST_EVENTS) {
                let is_store = access.kind == AccessKind::Store;
                let changes = is_store && namer.atomic_at(access.pc).is_some();
                let other = before.filter(|other| self.code_at(other.pc) != Some(code));
                let begins = match namer.calls_store_at(access.pc) {
                    _ if own.is_none() => None,
                    true => other.and_then(Begins::behind_a_call),
                    false => Begins::of_its_first(access, changes, other.or(before.filter(|_| changes))),
                };
                self.note_slot(task, code, begins);
                let (at, window, address) = (*at, call.sequence, access.address);
                self.events.push(Event { at, window, task, code, address, is_store, changes, begins });
            }
            before = Some(access);
        }
    }

    fn note_slot(&mut self, task: u32, code: SleepingCode, begins: Option<Begins>) {
        let slot = begins.and_then(|begins| begins.slot);
        if let Some(slot) = slot.filter(|_| matches!(code, SleepingCode::Takes(..))) {
            let open = self.slots.entry(task).or_default();
            // Stacks grow down: a function whose slot lies below has returned, even if that was not seen.
            open.retain(|(known, _)| *known > slot && *known - slot < STACK_BYTES);
            open.push((slot, code));
        }
    }

    /// The code that a function returns for that knows of no lock.
    fn returns(&mut self, task: u32, access: &Access) -> Option<SleepingCode> {
        let open = self.slots.get_mut(&task).filter(|_| access.kind == AccessKind::Load)?;
        let index = open.iter().position(|(slot, _)| *slot == access.address)?;
        let (_, code) = open[index];
        open.truncate(index);
        Some(code)
    }

    /// Between the passes: who had which lock when.
    pub(super) fn settle(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        events.sort_by_key(|event| event.at);
        let mut doing: HashMap<u32, Doing> = HashMap::new();
        let (mut last, mut count) = (None, 0);
        for event in events {
            // Windows that were not kept leave gaps of unknown events.
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
        if event.code != SleepingCode::Posts || event.begins.is_some() {
            own.has_posted = false;
        }
        if let Some(ask) = &mut own.ask {
            if !event.is_store && event.address == ask.slot {
                own.end_asking(event.at, &mut self.words);
            } else if event.may_be_word(ask.kind, ask.slot) {
                ask.word.get_or_insert(event.address);
            }
            return false;
        }
        match event.code {
            SleepingCode::Takes(kind, is_shared) => {
                own.begin_asking(event, (kind, is_shared), &mut self.words);
                false
            }
            SleepingCode::GivesBack if event.changes => self.give_back(event, doing),
            SleepingCode::Posts if event.is_store && !own.has_posted => {
                let is_given = self.give_back(event, doing);
                doing.entry(event.task).or_default().has_posted = is_given;
                is_given
            }
            SleepingCode::GivesBack | SleepingCode::Posts => false,
        }
    }

    /// The task itself gives a lock back, or another one does so for it.
    fn give_back(&mut self, event: &Event, doing: &mut HashMap<u32, Doing>) -> bool {
        let has = |doing: &Doing| doing.has.iter().rposition(|held| held.is_given_back_by(event));
        let own = doing.get(&event.task).and_then(has).map(|index| (event.task, index));
        let found = own.or_else(|| doing.iter().find_map(|(task, doing)| Some((*task, has(doing)?))));
        let Some((task, index)) = found else { return false };
        let Some(doing) = doing.get_mut(&task) else { return false };
        let TaskLock { word, kind, is_shared, asked_at, got_at, place } = doing.has.remove(index);
        let hold = Hold::new(Course::Lock, ThreadId(task), got_at, event.at);
        let hold = Hold { is_shared, asked_at, place, ..hold };
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

impl Event {
    /// Whether its address identifies the requested lock. A kernel's semaphores are changed as any other data, under a
    /// spin lock.
    fn may_be_word(&self, kind: LockKind, slot: u64) -> bool {
        let changes = if kind == LockKind::KernelSemaphore { self.is_store } else { self.changes };
        changes && self.address.abs_diff(slot) >= STACK_BYTES
    }
}

impl TaskLock {
    fn is_given_back_by(&self, event: &Event) -> bool {
        let is_semaphore = self.kind == LockKind::KernelSemaphore;
        is_semaphore == (event.code == SleepingCode::Posts) && self.kind.is_at(self.word, event.address)
    }
}

impl Doing {
    fn begin_asking(
        &mut self,
        event: &Event,
        (kind, is_shared): (LockKind, IsShared),
        words: &mut BTreeMap<u64, LockKind>,
    ) {
        let Some(Begins { slot, place }) = event.begins else { return };
        let word = slot.map_or(Some(event.address), |slot| {
            Some(event.address).filter(|_| event.may_be_word(kind, slot))
        });
        self.ask = Some(Ask { slot: slot.unwrap_or(0), since: event.at, place, kind, is_shared, word });
        if slot.is_none() {
            self.end_asking(event.at, words);
        }
    }

    /// The function that takes the lock returns.
    fn end_asking(&mut self, at: u64, words: &mut BTreeMap<u64, LockKind>) {
        let Some(Ask { since, place, kind, is_shared, word: Some(word), .. }) = self.ask.take() else {
            return;
        };
        let near = word.saturating_sub(kind.own_bytes())..=word.saturating_add(kind.own_bytes());
        let mut known = words.range(near).filter(|(known, of)| **of == kind && kind.is_at(**known, word));
        let word = known.next().map_or(word, |(known, _)| *known);
        words.insert(word, kind);
        // A task that asks for a lock that it has did not get it the time before.
        self.has.retain(|held| held.word != word);
        self.has.push(TaskLock { word, kind, is_shared, asked_at: since, got_at: at, place });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUTEX: SleepingCode = SleepingCode::Takes(LockKind::KernelMutex, false);
    const WORD: u64 = 0x9000_0000;

    fn event(task: u32, at: u64, code: SleepingCode, address: u64) -> Event {
        let (window, is_store, changes) = (at / 100, false, false);
        Event { at, window, task, code, address, is_store, changes, begins: None }
    }

    /// A task calls a function that tries at once; it has the lock when that returns.
    fn takes(task: u32, at: u64, returns_at: u64, code: SleepingCode) -> [Event; 3] {
        let slot = 0x10_0000 * u64::from(task + 1);
        let begins = Some(Begins { slot: Some(slot), place: 7 });
        let entry = Event { begins, ..event(task, at, code, WORD) };
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
        // Task 1 asks while 0 has it, sleeps, and continues elsewhere; pieces arrive in the order of CPUs.
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

    #[test]
    fn a_function_that_another_ends_with_returns_for_it() {
        let mut all = Sleeping::default();
        let begins = |slot| Some(Begins { slot: Some(slot), place: 7 });
        all.note_slot(3, MUTEX, begins(0x9000));
        all.note_slot(3, MUTEX, begins(0x8f00));
        all.note_slot(3, SleepingCode::GivesBack, begins(0x8e00));
        let access = |kind, address| Access { pc: 1, address, size_bytes: 8, kind, value: None };
        assert_eq!(all.returns(3, &access(AccessKind::Store, 0x9000)), None);
        assert_eq!(all.returns(4, &access(AccessKind::Load, 0x9000)), None);
        assert_eq!(all.returns(3, &access(AccessKind::Load, 0x9000)), Some(MUTEX));
        assert_eq!(all.slots[&3], [], "and the one that it called has as well");
    }

    #[test]
    fn a_function_that_calls_none_has_a_lock_when_it_changed_it() {
        let begins = Some(Begins { slot: None, place: 7 });
        let taken = Event { is_store: true, changes: true, begins, ..event(0, 10, MUTEX, WORD) };
        assert_eq!(holds(&told([taken, gives_back(0, 30)], [0])), [(0, 10, 10, 30)]);
    }

    #[test]
    fn where_functions_begin_is_told_by_what_calls_or_they_store() {
        let access = |pc, kind, address, size_bytes| Access { pc, address, size_bytes, kind, value: None };
        let call = access(1, AccessKind::Store, 0x1000, 8);
        let begins = |begins: Option<Begins>| begins.map(|begins| (begins.slot, begins.place));
        assert_eq!(begins(Begins::behind_a_call(&call)), Some((Some(0x1000), 1)));
        assert_eq!(begins(Begins::behind_a_call(&access(1, AccessKind::Load, 0x1000, 8))), None);
        let frame = access(2, AccessKind::Store, 0xff0, 16);
        assert_eq!(begins(Begins::of_its_first(&frame, false, Some(&call))), Some((Some(0xff0), 1)));
        let changes = access(3, AccessKind::Store, WORD, 8);
        assert_eq!(begins(Begins::of_its_first(&changes, true, Some(&call))), Some((None, 1)));
        assert_eq!(begins(Begins::of_its_first(&frame, false, None)), None, "it goes on after an interrupt");
    }

    #[test]
    fn a_writer_of_a_lock_of_preempt_rt_waits_for_readers_though_their_words_differ() {
        let read = SleepingCode::Takes(LockKind::KernelSleepingReadWrite, true);
        let write = SleepingCode::Takes(LockKind::KernelSleepingReadWrite, false);
        let owner = |event: Event| match event.address {
            WORD => Event { address: WORD + 32, ..event },
            _ => event,
        };
        let events = [takes(0, 10, 20, read), takes(1, 30, 70, write).map(owner)].concat();
        let all = told(events.into_iter().chain([gives_back(0, 60), gives_back(1, 90)]), [0]);
        assert_eq!(holds(&all), [(0, 10, 20, 60), (1, 30, 70, 90)]);
        let waits = super::super::holds::waits(&all.holds[&WORD].1);
        assert_eq!((waits[0].thread, waits[0].waits_for, waits[0].time), (1, 0, 40));
    }

    #[test]
    fn a_semaphore_is_given_back_once_by_each_call_whoever_took_it() {
        let down = SleepingCode::Takes(LockKind::KernelSemaphore, false);
        let plain = |event: Event| Event { changes: false, ..event };
        let up = |task, at, address, begins| Event {
            is_store: true,
            begins,
            ..event(task, at, SleepingCode::Posts, address)
        };
        let begins = Some(Begins { slot: Some(0x70_0000), place: 9 });
        // Two have it; one that has it not gives it back, and touches the list of waiters twice.
        let events = [takes(0, 10, 20, down), takes(1, 12, 22, down)].concat().into_iter().map(plain);
        let ups = [up(2, 50, WORD + 12, begins), up(2, 51, WORD + 4, None), up(2, 52, WORD, None)];
        assert_eq!(holds(&told(events.clone().chain(ups), [0])).len(), 1);
        let again = ups.into_iter().chain([up(2, 60, WORD, begins)]);
        assert_eq!(holds(&told(events.chain(again), [0])).len(), 2);
    }
}
