//! Locks: who waited for whom, how long, what lies beside the lock's word, and what is needed while it is held.
//!
//! A lock is known by the code that takes it ([`code`]), and its word by the first atomic access there. Times are those that
//! calls carry: natively they are exact at atomic instructions and around system calls, in a kernel at every access. C++'s
//! `std::mutex` is a mutex of the C library; locks that are taken by other code, such as Rust's and those that a program
//! has written itself, are not known here.

mod code;
mod holds;

use super::report::{LockReport, Needed, Of, Waits};
use crate::namer::Namer;
pub use code::LockKind;
use code::{Code, IsShared, code_of};
use holds::{Hold, sections, waits};
use lineup_model::access::{Access, AccessKind, Call, ProcessId, ThreadId};
use lineup_model::region::RegionId;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Holds kept at most.
const MOST_HOLDS: usize = 1 << 20;
/// Data on a lock's line that is listed at most.
const MOST_DATA: usize = 20;

/// A lock by its process and the address of its word.
type Word = (ProcessId, u64);

/// A lock that a thread has.
struct Held {
    word: u64,
    kind: LockKind,
    is_shared: IsShared,
    /// How many interrupts were under way when it was taken: what is done in others on top is not done with the lock.
    depth: u32,
    asked_at: u64,
    got_at: u64,
    place: u64,
}

impl Held {
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
}

/// What a thread is doing with locks. An interrupt asks for locks of its own.
#[derive(Default)]
struct Doing {
    /// Of which call, or which window of a whole system.
    of: Option<(RegionId, u64)>,
    has: Vec<Held>,
    asks: BTreeMap<u32, Ask>,
    last: BTreeMap<u32, u64>,
}

/// What is known of an instruction.
#[derive(Clone, Copy)]
struct Known {
    code: Code,
    is_atomic: bool,
}

/// All locks that were taken.
pub(super) struct Locks {
    of: Of,
    codes: HashMap<u64, Known>,
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

/// What the caller knows of lines.
pub(super) struct Lines<'l> {
    /// What lies at an address of a process that some access went to.
    pub(super) name: &'l dyn Fn(&mut Namer<'_>, ProcessId, u64) -> String,
    /// The same by the innermost object of a named type.
    pub(super) object: &'l dyn Fn(&mut Namer<'_>, ProcessId, u64) -> NameWithin,
    /// Waits for the line of an address.
    pub(super) waits: &'l dyn Fn(ProcessId, u64) -> Waits,
    /// What threads waited for while they had the lock of a number.
    pub(super) needed: &'l dyn Fn(&mut Namer<'_>, u32) -> Vec<Needed>,
}

impl Locks {
    /// None yet.
    pub(super) fn new(of: Of) -> Locks {
        Locks {
            of,
            codes: HashMap::new(),
            doing: HashMap::new(),
            words: Vec::new(),
            numbers: HashMap::new(),
            holds: BTreeMap::new(),
            count: 0,
            beside: BTreeMap::new(),
        }
    }

    /// Goes through a call's accesses with their times; gives for each the number of the lock that the thread has taken last
    /// and has, when there is one.
    pub(super) fn see(&mut self, call: &Call, times: &[u64], namer: &Namer<'_>) -> Vec<Option<u32>> {
        let thread = (call.process, call.thread);
        let mut doing = self.doing.remove(&thread).unwrap_or_default();
        // What happened since the thread's call before is not known, but the pieces of a window follow each other, and so do
        // windows that lie beside each other.
        let goes_on = doing.of.is_some_and(|(region, sequence)| {
            let is_beside = call.sequence.wrapping_sub(sequence) <= 1;
            self.of == Of::Cpus && region == call.region && is_beside
        });
        if !goes_on {
            doing = Doing::default();
        }
        doing.of = Some((call.region, call.sequence));
        let mut before: Option<&Access> = None;
        let mut under = Vec::with_capacity(call.accesses.len());
        for (access, at) in call.accesses.iter().zip(times) {
            self.see_access(call, (access, *at), before, &mut doing, namer);
            let innermost = doing.has.iter().rfind(|held| held.depth == call.depth);
            let data = innermost.filter(|held| !held.is_own(access.address));
            under.push(data.and_then(|held| self.numbers.get(&(call.process, held.word))).copied());
            before = Some(access);
        }
        self.doing.insert(thread, doing);
        under
    }

    fn see_access(
        &mut self,
        call: &Call,
        (access, at): (&Access, u64),
        before: Option<&Access>,
        doing: &mut Doing,
        namer: &Namer<'_>,
    ) {
        let Known { code, is_atomic } = *self.codes.entry(access.pc).or_insert_with(|| Known {
            code: code_of(&namer.function_at(access.pc).0),
            is_atomic: namer.is_atomic(access.pc),
        });
        let is_store = access.kind == AccessKind::Store;
        let is_update =
            is_store && before.is_some_and(|load| (load.pc, load.address) == (access.pc, access.address));
        match code {
            Code::Takes(kind, is_shared) => {
                let place = doing.last.get(&call.depth).copied().unwrap_or_default();
                let new = Ask { since: at, word: None, until: at, place, kind, is_shared };
                let ask = doing.asks.entry(call.depth).or_insert(new);
                let changes = is_update && !kind.ends_with_a_small_store();
                if is_store && (is_atomic || changes) {
                    ask.word.get_or_insert(access.address);
                }
                // The C library counts its users behind the wait.
                let is_inside = |word: u64| access.address.wrapping_sub(word) < 4;
                if changes || is_store && ask.word.is_some_and(is_inside) {
                    ask.until = at;
                }
            }
            Code::GivesBack => {
                self.end_asking(call, doing);
                if is_store {
                    self.give_back(call, doing, access.address, at);
                }
            }
            Code::Inside => {}
            Code::Other => {
                self.end_asking(call, doing);
                doing.last.insert(call.depth, access.pc);
                let is_small = |held: &Held| {
                    held.word == access.address
                        && held.kind.ends_with_a_small_store()
                        && access.size_bytes < 4
                };
                if is_store && doing.has.iter().any(is_small) {
                    self.give_back(call, doing, access.address, at);
                }
                self.note_beside(call, doing, access);
            }
        }
    }

    /// What was asked for was got, since other code runs.
    fn end_asking(&mut self, call: &Call, doing: &mut Doing) {
        let Some(Ask { since, word: Some(word), until, place, kind, is_shared }) =
            doing.asks.remove(&call.depth)
        else {
            return;
        };
        doing.has.retain(|held| held.word != word);
        doing.has.push(Held {
            word,
            kind,
            is_shared,
            depth: call.depth,
            asked_at: since,
            got_at: until,
            place,
        });
        let words = &mut self.words;
        self.numbers.entry((call.process, word)).or_insert_with(|| {
            words.push(((call.process, word), kind));
            words.len() as u32 - 1
        });
    }

    fn give_back(&mut self, call: &Call, doing: &mut Doing, word: u64, at: u64) {
        let Some(index) = doing.has.iter().rposition(|held| held.word == word) else { return };
        let Held { is_shared, asked_at, got_at, place, .. } = doing.has.remove(index);
        if self.count < MOST_HOLDS {
            self.count += 1;
            let hold = Hold { thread: call.thread, is_shared, asked_at, got_at, given_back_at: at, place };
            self.holds.entry((call.process, word)).or_default().push(hold);
        }
    }

    fn note_beside(&mut self, call: &Call, doing: &Doing, access: &Access) {
        for held in doing.has.iter().filter(|held| held.depth == call.depth) {
            if access.address / 64 != held.word / 64 || held.is_own(access.address) {
                continue;
            }
            let all = self.beside.entry((call.process, held.word)).or_default();
            if all.len() < MOST_DATA {
                all.insert((access.pc, access.address, access.size_bytes));
            }
        }
    }

    /// What is known of each lock.
    pub(super) fn report(self, namer: &mut Namer<'_>, lines: &Lines<'_>) -> Vec<LockReport> {
        let mut all = Vec::new();
        for ((process, word), mut holds) in self.holds {
            let Some(number) = self.numbers.get(&(process, word)).copied() else { continue };
            let Some((_, kind)) = self.words.get(number as usize).copied() else { continue };
            holds.sort_by_key(|hold| hold.got_at);
            let beside = self.beside.get(&(process, word)).into_iter().flatten();
            let beside: BTreeSet<String> =
                beside.map(|(_, address, _)| (lines.name)(namer, process, *address)).collect();
            let needed = (lines.needed)(namer, number);
            let name = match kind {
                LockKind::CLibrary | LockKind::CLibraryReadWrite => (lines.name)(namer, process, word),
                LockKind::Kernel | LockKind::KernelReadWrite => {
                    let (name, variable) = (lines.object)(namer, process, word);
                    let variable = variable.map_or_else(String::new, |variable| format!(" of {variable}"));
                    format!("{}{variable}", without_its_inside(&name))
                }
            };
            all.push(LockReport {
                name,
                kind,
                address: word,
                taken: holds.len() as u64,
                held_time: holds.iter().map(Hold::lasted).sum(),
                longest_held_time: holds.iter().map(Hold::lasted).max().unwrap_or(0),
                waits: waits(&holds),
                sections: sections(&holds, namer),
                line_waits: (lines.waits)(process, word),
                data_on_its_line: beside.into_iter().collect(),
                needed_while_held: needed,
            });
        }
        all.sort_by_key(|lock| std::cmp::Reverse((lock.waited_time(), lock.line_waits.all(), lock.taken)));
        all
    }
}

/// The name of a kernel's lock, without those of the kernel's types inside it.
fn without_its_inside(word: &str) -> &str {
    let inside = [".rlock", ".raw_lock"].iter().filter_map(|inside| word.find(inside)).min();
    inside.map_or(word, |inside| &word[..inside])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernels_lock_is_named_by_the_member_that_it_is() {
        assert_eq!(without_its_inside("rq.__lock.raw_lock.val.counter"), "rq.__lock");
        assert_eq!(
            without_its_inside("dentry.d_lockref.lock.rlock.raw_lock.locked"),
            "dentry.d_lockref.lock"
        );
        assert_eq!(without_its_inside("(heap)"), "(heap)");
    }
}
