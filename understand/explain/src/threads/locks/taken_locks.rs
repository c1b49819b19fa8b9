//! Locks: waits of threads for each other, their times, data next to the lock's word, and data needed while it is held.
//!
//! A lock is known by the code that takes it (`lock_code`), and its word by the first atomic access there. Times are
//! those that calls carry: natively they are exact at atomic instructions and around system calls, in a kernel at every
//! access. C++'s `std::mutex` is a mutex of the C library. A loop that a program spins in is recognised by its accesses
//! (`spin_words`). The success of an attempt to take a lock is not seen: an attempt counts only if the thread gives the
//! lock back later.

use super::super::report::{LockPlaces, LockReport, LockWithin, Needed, Of, Waits};
use super::holds::{Course, Hold, MOST_HOLDS, Word, end_before_the_next, sections, waits};
use super::lock_code::{Code, IsShared, LockKind, code_at};
use super::lock_names::{name_in_kernel, without_its_inside};
use super::sleeping_locks::Sleeping;
use super::spin_words::Spins;
use crate::code::instruction::Atomic;
use crate::naming::namer::Namer;
use crate::threads::access_times::{is_store_of, no_earlier, times};
use lineup_model::access::{Access, AccessKind, Call, ProcessId, ThreadId};
use lineup_model::region::RegionId;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Data on a lock's line that is listed at most.
const MOST_DATA: usize = 20;
/// Locks for which other places are tried at most, those with most waits for lines: each goes through all accesses
/// twice.
const MOST_PLACED: usize = 20;

/// A lock that a thread has.
struct ThreadLock {
    word: u64,
    kind: LockKind,
    is_shared: IsShared,
    /// The number of interrupts under way when it was taken. Accesses of further interrupts are not made under the
    /// lock.
    depth: u32,
    asked_at: u64,
    got_at: u64,
    place: u64,
    /// Something else was accessed meanwhile.
    is_used: bool,
}

impl ThreadLock {
    /// Whether an address is one of the lock's own bytes.
    fn is_own(&self, address: u64) -> bool {
        address.wrapping_sub(self.word) < self.kind.own_bytes()
    }
}

/// A lock that a thread asks for: the word once that is known.
struct Ask {
    since: u64,
    word: Option<u64>,
    until: u64,
    place: u64,
    kind: LockKind,
    is_shared: IsShared,
    /// The number of the function that asked. Accesses of other functions until it continues belong to the asking.
    home: Option<u32>,
}

/// A thread's locks and requests. An interrupt asks for locks of its own.
#[derive(Default)]
struct Doing {
    /// The call, or the window of a whole system, that it was last seen in.
    of: Option<(RegionId, u64)>,
    has: Vec<ThreadLock>,
    asks: BTreeMap<u32, Ask>,
    last: BTreeMap<u32, u64>,
}

impl Doing {
    /// Whether a function runs because another that asks for a lock called it.
    fn is_called_by_asking(&self, depth: u32, function: u32) -> bool {
        let home = self.asks.get(&depth).and_then(|ask| ask.home);
        home.is_some_and(|home| home != function)
    }

    /// Code that belongs to no function of a name accesses something: of the C library's semaphores such code waits,
    /// and gets them.
    fn go_on_asking(&mut self, seen: &LockAccess<'_>, atomic: Option<Atomic>) {
        let ask = self.asks.get_mut(&seen.call.depth);
        if let Some(ask) = ask.filter(|ask| ask.kind == LockKind::CLibrarySemaphore) {
            ask.until = seen.at;
            if seen.is_store() && atomic.is_some() {
                ask.word.get_or_insert(seen.access.address);
            }
        }
    }

    /// Whether a thread waits in a loop of its own until the word at an address changes.
    fn is_spinning_on(&self, depth: u32, address: u64) -> bool {
        let ask = self.asks.get(&depth).filter(|ask| ask.kind == LockKind::SpinLoop);
        ask.is_some_and(|ask| ask.word == Some(address))
    }
}

/// An access with its context.
#[derive(Clone, Copy)]
struct LockAccess<'c> {
    call: &'c Call,
    access: &'c Access,
    at: u64,
    no_earlier: u64,
    /// The call's access before.
    before: Option<&'c Access>,
}

impl LockAccess<'_> {
    fn is_store(&self) -> bool {
        self.access.kind == AccessKind::Store
    }

    /// Whether it is the store of an instruction that loads the same bytes.
    fn is_update(&self) -> bool {
        self.before.is_some_and(|before| is_store_of(before, self.access))
    }

    /// Whether a store outside lock functions gives this lock back.
    fn gives_back(&self, held: &ThreadLock, atomic: Option<Atomic>) -> bool {
        let is_end = match atomic {
            _ if held.kind.ends_with_a_small_store() => self.access.size_bytes < 4,
            None => held.kind == LockKind::SpinLoop && !self.is_update(),
            Some(atomic) => held.kind == LockKind::SpinLoop && atomic == Atomic::Swaps,
        };
        held.word == self.access.address && is_end
    }
}

/// The facts about an instruction.
#[derive(Clone, Copy)]
struct InstructionFacts {
    code: Code,
    atomic: Option<Atomic>,
    /// The number of the function that it is in.
    function: u32,
    /// It belongs to a lock by the functions that are inlined there.
    is_inlined: bool,
}

/// All locks that were taken.
pub(in crate::threads) struct Locks {
    of: Of,
    /// Words that threads were seen to wait for in loops of their own.
    spins: Spins,
    /// Locks of a kernel's tasks.
    sleeping: Sleeping,
    codes: HashMap<u64, InstructionFacts>,
    functions: HashMap<String, u32>,
    doing: HashMap<(ProcessId, ThreadId), Doing>,
    /// By number.
    words: Vec<(Word, LockKind)>,
    numbers: HashMap<Word, u32>,
    holds: BTreeMap<Word, Vec<Hold>>,
    count: usize,
    /// Accesses inside, on the lock's line of 64 bytes but not the lock's own: pc, address and size.
    beside: BTreeMap<Word, BTreeSet<(u64, u64, u32)>>,
}

/// The name of something, and the variable that it is in, if it is in one of another name.
type NameWithin = (String, Option<String>);

/// The caller's facts about lines.
pub(in crate::threads) struct Lines<'l> {
    /// The name of an accessed address of a process.
    pub(in crate::threads) name: &'l dyn Fn(&mut Namer<'_>, ProcessId, u64) -> String,
    /// The same by the innermost object of a named type.
    pub(in crate::threads) object: &'l dyn Fn(&mut Namer<'_>, ProcessId, u64) -> NameWithin,
    /// Waits for the line of an address.
    pub(in crate::threads) waits: &'l dyn Fn(ProcessId, u64) -> Waits,
    /// Data that threads waited for while they had the lock with this number.
    pub(in crate::threads) needed: &'l dyn Fn(&mut Namer<'_>, u32) -> Vec<Needed>,
    /// The place, in an object, of the lock with this word and number.
    pub(in crate::threads) within: &'l dyn Fn(ProcessId, u64, u32) -> Option<LockWithin>,
    /// Waits of threads if the lock lay elsewhere, by its word, the number of its own bytes and its number.
    pub(in crate::threads) places: &'l dyn Fn(&mut Namer<'_>, Word, u64, u32) -> Option<LockPlaces>,
}

impl Locks {
    /// None yet.
    pub(in crate::threads) fn new(of: Of) -> Locks {
        Locks {
            of,
            spins: Spins::default(),
            sleeping: Sleeping::default(),
            codes: HashMap::new(),
            functions: HashMap::new(),
            doing: HashMap::new(),
            words: Vec::new(),
            numbers: HashMap::new(),
            holds: BTreeMap::new(),
            count: 0,
            beside: BTreeMap::new(),
        }
    }

    /// Before [`Locks::see`]: learns the words that loops wait for.
    pub(in crate::threads) fn observe(&mut self, call: &Call, task: Option<u32>, namer: &Namer<'_>) {
        self.spins.observe(call, namer);
        if self.of == Of::Cpus
            && let Some((times, _)) = times(&call.times, &call.accesses)
        {
            self.sleeping.observe(call, &times, task, namer);
        }
    }

    /// Between [`Locks::observe`] and [`Locks::see`].
    pub(in crate::threads) fn settle(&mut self) {
        self.sleeping.settle();
        for (word, (kind, holds)) in std::mem::take(&mut self.sleeping.holds) {
            let word = (ProcessId(0), word);
            self.number(word, kind);
            self.holds.insert(word, holds);
        }
    }

    /// A lock's number.
    fn number(&mut self, word: Word, kind: LockKind) -> u32 {
        let words = &mut self.words;
        *self.numbers.entry(word).or_insert_with(|| {
            words.push((word, kind));
            words.len() as u32 - 1
        })
    }

    /// Goes through a call's accesses with their times; gives for each the number of the lock that the thread has taken
    /// last and has, when there is one.
    pub(in crate::threads) fn see(
        &mut self,
        call: &Call,
        times: &[u64],
        task: Option<u32>,
        namer: &Namer<'_>,
    ) -> Vec<Option<u32>> {
        let thread = (call.process, call.thread);
        let mut doing = self.doing.remove(&thread).unwrap_or_default();
        // Accesses since the thread's previous call are unknown. But the pieces of a window follow each other, and so
        // do adjacent windows.
        let goes_on = doing.of.is_some_and(|(region, sequence)| {
            let is_beside = call.sequence.wrapping_sub(sequence) <= 1;
            self.of == Of::Cpus && region == call.region && is_beside
        });
        if !goes_on {
            self.lose(thread, std::mem::take(&mut doing).has);
        }
        doing.of = Some((call.region, call.sequence));
        let mut before: Option<&Access> = None;
        let mut under = Vec::with_capacity(call.accesses.len());
        let no_earlier = no_earlier(&call.times, call.accesses.len());
        for ((access, at), no_earlier) in call.accesses.iter().zip(times).zip(no_earlier) {
            self.see_access(&LockAccess { call, access, at: *at, no_earlier, before }, &mut doing, namer);
            let innermost = doing.has.iter().rfind(|held| held.depth == call.depth);
            let data = innermost.filter(|held| !held.is_own(access.address));
            let spinning = data.and_then(|held| self.numbers.get(&(call.process, held.word))).copied();
            under.push(spinning.or_else(|| self.under_sleeping(call, access, task?, *at)));
            before = Some(access);
        }
        self.doing.insert(thread, doing);
        under
    }

    /// The number of the lock that a task took last and sleeps for, unless the access is to the lock itself.
    fn under_sleeping(&mut self, call: &Call, access: &Access, task: u32, at: u64) -> Option<u32> {
        let word = (call.process, self.sleeping.under(task, at)?);
        let number = *self.numbers.get(&word)?;
        let (_, kind) = *self.words.get(number as usize)?;
        let is_own = access.address.wrapping_sub(word.1) < kind.own_bytes();
        if is_own || self.sleeping.code_at(access.pc).is_some() {
            return None;
        }
        if access.address / 64 == word.1 / 64 {
            self.note(word, access);
        }
        Some(number)
    }

    fn known(&mut self, pc: u64, namer: &Namer<'_>) -> InstructionFacts {
        let functions = &mut self.functions;
        *self.codes.entry(pc).or_insert_with(|| {
            let (name, inlined) = (namer.function_at(pc).0, namer.inlined_at(pc));
            let code = code_at(&name, &inlined);
            let is_inlined = code_at(&name, &[]) == Code::Other;
            let next = functions.len() as u32;
            let function = *functions.entry(name).or_insert(next);
            InstructionFacts { code, atomic: namer.atomic_at(pc), function, is_inlined }
        })
    }

    fn see_access(&mut self, seen: &LockAccess<'_>, doing: &mut Doing, namer: &Namer<'_>) {
        let LockAccess { call, access, .. } = *seen;
        let known = self.known(access.pc, namer);
        match known.code {
            Code::Takes(kind, is_shared) => self.ask(seen, (kind, is_shared), &known, doing),
            Code::Other
                if self.spins.takes((call.process, access.address), access.pc)
                    && self.sleeping.code_at(access.pc).is_none() =>
            {
                self.ask(seen, (LockKind::SpinLoop, false), &known, doing);
            }
            Code::GivesBack => {
                self.end_asking(call, doing);
                if seen.is_store() {
                    self.give_back(seen, doing);
                }
            }
            Code::Posts => {
                self.end_asking(call, doing);
                if seen.is_store() && known.atomic.is_some() {
                    self.post(seen, doing);
                }
            }
            Code::Inside => doing.go_on_asking(seen, known.atomic),
            Code::Other if doing.is_called_by_asking(call.depth, known.function) => {}
            Code::Other if !seen.is_store() && doing.is_spinning_on(call.depth, access.address) => {}
            Code::Other => {
                self.end_asking(call, doing);
                doing.last.insert(call.depth, access.pc);
                if seen.is_store() && doing.has.iter().any(|held| seen.gives_back(held, known.atomic)) {
                    self.give_back(seen, doing);
                }
                doing.has.iter_mut().for_each(|held| held.is_used |= !held.is_own(access.address));
                self.note_beside(call, doing, access);
            }
        }
    }

    /// Code that takes a lock accesses something.
    fn ask(
        &mut self,
        seen: &LockAccess<'_>,
        (kind, is_shared): (LockKind, IsShared),
        known: &InstructionFacts,
        doing: &mut Doing,
    ) {
        let LockAccess { call, access, at, .. } = *seen;
        let place = doing.last.get(&call.depth).copied().unwrap_or_default();
        let caller = || self.codes.get(&place).map(|known| known.function);
        let home = if known.is_inlined { Some(known.function) } else { caller() };
        let home = home.filter(|_| kind.is_of_rust());
        let new = Ask { since: at, word: None, until: at, place, kind, is_shared, home };
        let ask = doing.asks.entry(call.depth).or_insert(new);
        let changes = seen.is_update() && !kind.ends_with_a_small_store();
        if seen.is_store() && (known.atomic.is_some() || changes) {
            ask.word.get_or_insert(access.address);
        }
        // A thread that slept until the lock was free need not change its word.
        let is_inside = |word: u64| access.address.wrapping_sub(word) < kind.word_bytes();
        let may_sleep = !kind.ends_with_a_small_store() && kind != LockKind::SpinLoop;
        if may_sleep || seen.is_store() && ask.word.is_some_and(is_inside) {
            ask.until = at;
        }
    }

    /// Other code runs, so the thread has got the lock it asked for.
    fn end_asking(&mut self, call: &Call, doing: &mut Doing) {
        let Some(Ask { since, word: Some(word), until, place, kind, is_shared, .. }) =
            doing.asks.remove(&call.depth)
        else {
            return;
        };
        if kind == LockKind::SpinLoop {
            let has_it = doing.has.iter().any(|held| held.word == word);
            self.spins.took((call.process, word), call.thread, until);
            self.spins.doubt((call.process, word), has_it);
        }
        let before: Vec<ThreadLock> = doing.has.extract_if(.., |held| held.word == word).collect();
        self.lose((call.process, call.thread), before);
        doing.has.push(ThreadLock {
            word,
            kind,
            is_shared,
            depth: call.depth,
            asked_at: since,
            got_at: until,
            place,
            is_used: false,
        });
        self.number((call.process, word), kind);
    }

    fn give_back(&mut self, seen: &LockAccess<'_>, doing: &mut Doing) {
        let LockAccess { call, at, no_earlier, .. } = *seen;
        let word = seen.access.address;
        let Some(index) = doing.has.iter().rposition(|held| held.word == word) else { return };
        let ThreadLock { kind, is_shared, asked_at, got_at, place, is_used, .. } = doing.has.remove(index);
        if kind == LockKind::SpinLoop {
            self.spins.doubt((call.process, word), !is_used);
        }
        let course = if kind.is_semaphore() { Course::Semaphore } else { Course::Lock };
        let hold = Hold::new(course, call.thread, got_at, at);
        let hold = Hold { is_shared, asked_at, no_earlier, place, ..hold };
        self.keep((call.process, word), hold);
    }

    fn keep(&mut self, word: Word, hold: Hold) {
        if self.count < MOST_HOLDS {
            self.count += 1;
            self.holds.entry(word).or_default().push(hold);
        }
    }

    /// A semaphore is given back, by a thread that has it or by another.
    fn post(&mut self, seen: &LockAccess<'_>, doing: &mut Doing) {
        let LockAccess { call, at, .. } = *seen;
        let word = seen.access.address;
        if doing.has.iter().any(|held| held.word == word) {
            return self.give_back(seen, doing);
        }
        let place = doing.last.get(&call.depth).copied().unwrap_or_default();
        let hold = Hold { place, ..Hold::new(Course::OnlyGiven, call.thread, at, at) };
        self.keep((call.process, word), hold);
    }

    /// Ends holds that a thread was not seen to give back. Semaphores among them are known to have been waited for.
    fn lose(&mut self, (process, thread): (ProcessId, ThreadId), has: Vec<ThreadLock>) {
        for ThreadLock { word, is_shared, asked_at, got_at, place, .. } in
            has.into_iter().filter(|held| held.kind.is_semaphore())
        {
            let hold = Hold::new(Course::OnlyTaken, thread, got_at, got_at);
            let hold = Hold { is_shared, asked_at, place, ..hold };
            self.keep((process, word), hold);
        }
    }

    fn note_beside(&mut self, call: &Call, doing: &Doing, access: &Access) {
        for held in doing.has.iter().filter(|held| held.depth == call.depth) {
            if access.address / 64 != held.word / 64 || held.is_own(access.address) {
                continue;
            }
            self.note((call.process, held.word), access);
        }
    }

    fn note(&mut self, word: Word, access: &Access) {
        let all = self.beside.entry(word).or_default();
        if all.len() < MOST_DATA {
            all.insert((access.pc, access.address, access.size_bytes));
        }
    }

    /// Words that are another lock's own. If the recording begins while a thread takes a lock, the first word that it
    /// changes may be a counter, not the word that others wait for.
    fn inside_others(&self) -> BTreeSet<Word> {
        let kind = |word: &Word| {
            let number = self.numbers.get(word).copied()?;
            self.words.get(number as usize).map(|(_, kind)| *kind)
        };
        let mut inside = BTreeSet::new();
        let mut last: Option<(Word, u64)> = None;
        for word in self.holds.keys() {
            let own_bytes = kind(word).map_or(0, LockKind::own_bytes);
            match last {
                Some(((process, before), bytes)) if process == word.0 && word.1 - before < bytes => {
                    inside.insert(*word);
                }
                _ => last = Some((*word, own_bytes)),
            }
        }
        inside
    }

    /// The report of each lock.
    pub(in crate::threads) fn report(mut self, namer: &mut Namer<'_>, lines: &Lines<'_>) -> Vec<LockReport> {
        for (thread, doing) in std::mem::take(&mut self.doing) {
            self.lose(thread, doing.has);
        }
        let mut all: Vec<(LockReport, (Word, u64, u32))> = Vec::new();
        let inside: BTreeSet<Word> = self.inside_others();
        for ((process, word), mut holds) in self.holds {
            if inside.contains(&(process, word)) {
                continue;
            }
            let Some(number) = self.numbers.get(&(process, word)).copied() else { continue };
            let Some((_, kind)) = self.words.get(number as usize).copied() else { continue };
            holds.sort_by_key(|hold| hold.got_at);
            end_before_the_next(&mut holds);
            if kind == LockKind::SpinLoop && !self.spins.is_lock((process, word), &holds) {
                continue;
            }
            let beside = self.beside.get(&(process, word)).into_iter().flatten();
            let beside: BTreeSet<String> =
                beside.map(|(_, address, _)| (lines.name)(namer, process, *address)).collect();
            let needed = (lines.needed)(namer, number);
            let name = match kind.is_of_kernel() {
                true => {
                    let (name, variable) = (lines.object)(namer, process, word);
                    name_in_kernel(kind, &name, variable.as_deref())
                }
                false => without_its_inside(&(lines.name)(namer, process, word)).to_owned(),
            };
            let report = LockReport {
                name,
                kind,
                address: word,
                taken: holds.iter().filter(|hold| hold.is_taken()).count() as u64,
                held_time: holds.iter().map(Hold::lasted).sum(),
                longest_held_time: holds.iter().map(Hold::lasted).max().unwrap_or(0),
                asked_time: holds.iter().map(Hold::waited).sum(),
                threads: holds.iter().map(|hold| hold.thread).collect::<BTreeSet<_>>().len() as u64,
                waits: waits(&holds),
                sections: sections(&holds, namer),
                line_waits: (lines.waits)(process, word),
                data_on_its_line: beside.into_iter().collect(),
                needed_while_held: needed,
                within: (lines.within)(process, word, number),
                places: None,
            };
            all.push((report, ((process, word), kind.own_bytes(), number)));
        }
        all.sort_by_key(|(lock, _)| std::cmp::Reverse(lock.line_waits.plus(lock.waits_while_held()).all()));
        for (lock, (word, own_bytes, number)) in all.iter_mut().take(MOST_PLACED) {
            lock.places = (lines.places)(namer, *word, *own_bytes, *number);
        }
        let mut all: Vec<LockReport> = all.into_iter().map(|(lock, _)| lock).collect();
        all.sort_by_key(|lock| std::cmp::Reverse((lock.waited_time(), lock.line_waits.all(), lock.taken)));
        all
    }
}
