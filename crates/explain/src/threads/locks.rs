//! Mutexes and spin locks of the C library: who waited for whom, how long, and what lies beside the lock's word.
//!
//! A lock is known by the code that takes it, and its word by the first atomic access there. Times are those that calls carry:
//! they are exact at atomic instructions and around system calls. C++'s `std::mutex` is such a mutex; locks that are taken by
//! other code, such as Rust's and those that a program has written itself, are not known here.

use super::report::{LockReport, LockSection, LockWait};
use crate::namer::Namer;
use lineup_model::access::{Access, AccessKind, Call, ProcessId, ThreadId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Bytes of the C library's mutex: what lies there is the lock's own.
const MUTEX_BYTES: u64 = 40;
/// Holds kept at most.
const MOST_HOLDS: usize = 1 << 20;
/// Data on a lock's line that is listed at most.
const MOST_DATA: usize = 20;

/// What code does with locks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Code {
    Takes,
    GivesBack,
    /// On behalf of either.
    Inside,
    Other,
}

fn code_of(function: &str) -> Code {
    let name = function.trim_start_matches('_').trim_start_matches("GI_").trim_start_matches('_');
    let is = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
    if is(&["pthread_mutex_lock", "pthread_mutex_cond_lock", "pthread_spin_lock", "pthread_mutex_timedlock"])
    {
        Code::Takes
    } else if is(&["pthread_mutex_unlock", "pthread_spin_unlock"]) {
        Code::GivesBack
    } else if is(&["lll_lock_w", "lll_mutex_lock", "futex_", "(no symbol)"]) {
        Code::Inside
    } else {
        Code::Other
    }
}

/// A lock by its process and the address of its word.
type Word = (ProcessId, u64);

/// A time in which a thread had a lock.
#[derive(Clone, Copy, Debug)]
struct Hold {
    thread: ThreadId,
    asked_at: u64,
    got_at: u64,
    given_back_at: u64,
    /// The code that asked, by the last access before it.
    place: u64,
}

/// What a thread is doing with a lock.
#[derive(Default)]
struct Doing {
    /// Locks that it has: when it asked, when it got it, and where.
    has: BTreeMap<u64, (u64, u64, u64)>,
    /// It asks for a lock: since when, the word once that is known, until when, and where.
    asks: Option<(u64, Option<u64>, u64, u64)>,
    last: u64,
}

/// All locks that were taken.
#[derive(Default, Debug)]
pub(super) struct Locks {
    codes: HashMap<u64, Code>,
    holds: BTreeMap<Word, Vec<Hold>>,
    count: usize,
    /// Accesses inside, on the lock's line of 64 bytes but not the lock's own: pc, address and size.
    beside: BTreeMap<Word, BTreeSet<(u64, u64, u32)>>,
}

impl Locks {
    /// Goes through a call's accesses with their times.
    pub(super) fn see(&mut self, call: &Call, times: &[u64], namer: &Namer<'_>) {
        let mut doing = Doing::default();
        let mut before: Option<&Access> = None;
        for (access, at) in call.accesses.iter().zip(times) {
            let code =
                *self.codes.entry(access.pc).or_insert_with(|| code_of(&namer.function_at(access.pc).0));
            let is_update = access.kind == AccessKind::Store
                && before.is_some_and(|load| (load.pc, load.address) == (access.pc, access.address));
            match code {
                Code::Takes => {
                    let place = doing.last;
                    let (_, word, until, _) = doing.asks.get_or_insert((*at, None, *at, place));
                    if is_update {
                        word.get_or_insert(access.address);
                        *until = *at;
                    }
                }
                Code::GivesBack => {
                    doing.end_asking();
                    if access.kind == AccessKind::Store {
                        self.give_back((call.process, call.thread), &mut doing, access.address, *at);
                    }
                }
                Code::Inside => {}
                Code::Other => {
                    doing.end_asking();
                    doing.last = access.pc;
                    self.note_beside(call.process, &doing, access);
                }
            }
            before = Some(access);
        }
    }

    fn give_back(&mut self, (process, thread): (ProcessId, ThreadId), doing: &mut Doing, word: u64, at: u64) {
        let Some((asked_at, got_at, place)) = doing.has.remove(&word) else { return };
        if self.count < MOST_HOLDS {
            self.count += 1;
            let hold = Hold { thread, asked_at, got_at, given_back_at: at, place };
            self.holds.entry((process, word)).or_default().push(hold);
        }
    }

    fn note_beside(&mut self, process: ProcessId, doing: &Doing, access: &Access) {
        for word in doing.has.keys() {
            let is_own = (*word..word + MUTEX_BYTES).contains(&access.address);
            if access.address / 64 != word / 64 || is_own {
                continue;
            }
            let all = self.beside.entry((process, *word)).or_default();
            if all.len() < MOST_DATA {
                all.insert((access.pc, access.address, access.size_bytes));
            }
        }
    }

    /// What is known of each lock; `name` says what lies at an address that an instruction accesses.
    pub(super) fn report(
        self,
        namer: &mut Namer<'_>,
        mut name: impl FnMut(&mut Namer<'_>, ProcessId, u64) -> String,
    ) -> Vec<LockReport> {
        let mut all = Vec::new();
        for ((process, word), mut holds) in self.holds {
            holds.sort_by_key(|hold| hold.got_at);
            let beside = self.beside.get(&(process, word)).into_iter().flatten();
            let beside: BTreeSet<String> =
                beside.map(|(_, address, _)| name(namer, process, *address)).collect();
            all.push(LockReport {
                name: name(namer, process, word),
                address: word,
                taken: holds.len() as u64,
                held_cycles: holds.iter().map(|hold| hold.given_back_at.saturating_sub(hold.got_at)).sum(),
                longest_held_cycles: holds
                    .iter()
                    .map(|hold| hold.given_back_at.saturating_sub(hold.got_at))
                    .max()
                    .unwrap_or(0),
                waits: waits(&holds),
                sections: sections(&holds, namer),
                data_on_its_line: beside.into_iter().collect(),
            });
        }
        all.sort_by_key(|lock| std::cmp::Reverse((lock.waited_cycles(), lock.taken)));
        all
    }
}

impl Doing {
    fn end_asking(&mut self) {
        if let Some((since, Some(word), until, place)) = self.asks.take() {
            self.has.insert(word, (since, until, place));
        }
    }
}

/// The hold of another thread at the time a lock was asked for, when there was one. `holds` are in the order in which threads
/// got the lock: as one thread has it at a time, only the last before that time may be.
fn waited_for<'h>(holds: &'h [Hold], asking: &Hold) -> Option<&'h Hold> {
    let before = holds.partition_point(|other| other.got_at <= asking.asked_at);
    let last = holds.get(before.checked_sub(1)?)?;
    (last.thread != asking.thread && asking.asked_at < last.given_back_at).then_some(last)
}

fn waits(holds: &[Hold]) -> Vec<LockWait> {
    let mut all: BTreeMap<(u32, u32), (u64, u64, u64)> = BTreeMap::new();
    for hold in holds {
        let Some(other) = waited_for(holds, hold) else { continue };
        let (times, cycles, longest) = all.entry((hold.thread.0, other.thread.0)).or_default();
        let waited = hold.got_at.saturating_sub(hold.asked_at);
        (*times, *cycles, *longest) = (*times + 1, *cycles + waited, waited.max(*longest));
    }
    let wait = |((thread, waits_for), (times, cycles, longest_cycles))| LockWait {
        thread,
        waits_for,
        times,
        cycles,
        longest_cycles,
    };
    all.into_iter().map(wait).collect()
}

/// Code that takes the lock, that first for which others waited longest.
fn sections(holds: &[Hold], namer: &Namer<'_>) -> Vec<LockSection> {
    let mut all: BTreeMap<(String, Option<String>), LockSection> = BTreeMap::new();
    let mut section = |hold: &Hold, add: &dyn Fn(&mut LockSection)| {
        let (function, place) = (namer.function_at(hold.place).0, namer.place_of(hold.place));
        let key = (function.clone(), place.clone());
        add(all.entry(key).or_insert_with(|| LockSection { function, place, ..LockSection::default() }));
    };
    for hold in holds {
        section(hold, &|section| {
            section.taken += 1;
            section.held_cycles += hold.given_back_at.saturating_sub(hold.got_at);
        });
        if let Some(other) = waited_for(holds, hold) {
            section(other, &|section| {
                section.others_waited_cycles += hold.got_at.saturating_sub(hold.asked_at);
            });
        }
    }
    let mut all: Vec<LockSection> = all.into_values().collect();
    all.sort_by_key(|section| std::cmp::Reverse((section.others_waited_cycles, section.held_cycles)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_known_by_the_names_that_the_library_gives_it() {
        for (name, code) in [
            ("___pthread_mutex_lock", Code::Takes),
            ("__GI___pthread_mutex_unlock_usercnt", Code::GivesBack),
            ("pthread_spin_lock", Code::Takes),
            ("__lll_lock_wait", Code::Inside),
            ("pthread_mutex_init", Code::Other),
            ("work", Code::Other),
        ] {
            assert_eq!(code_of(name), code, "{name}");
        }
    }

    #[test]
    fn a_thread_waits_for_the_one_that_has_the_lock_when_it_asks() {
        let hold = |thread, asked_at, got_at, given_back_at| Hold {
            thread: ThreadId(thread),
            asked_at,
            got_at,
            given_back_at,
            place: 0,
        };
        // Thread 1 asks while 0 has it; 0 asks again when nobody has it.
        let holds = [hold(0, 0, 1, 100), hold(1, 50, 120, 130), hold(0, 200, 201, 210)];
        let wait = LockWait { thread: 1, waits_for: 0, times: 1, cycles: 70, longest_cycles: 70 };
        assert_eq!(waits(&holds), [wait]);
    }
}
