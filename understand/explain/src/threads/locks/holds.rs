//! Times in which threads had a lock, and who waited for whom meanwhile.

use super::super::report::{LockSection, LockWait};
use crate::naming::namer::Namer;
use lineup_model::access::{ProcessId, ThreadId};
use std::collections::BTreeMap;

/// Holds looked through for one that overlaps: of a reader-writer lock several may.
const NEAR_HOLDS: usize = 64;

/// Holds kept at most.
pub(super) const MOST_HOLDS: usize = 1 << 20;

/// A lock by its process and the address of its word.
pub(super) type Word = (ProcessId, u64);

/// The known ends of a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Course {
    /// The thread took a lock, and it was given back.
    Lock,
    /// The thread took a semaphore, and gave it back.
    Semaphore,
    /// The thread took a semaphore and did not give it back: others may have done so. It ends as it begins.
    OnlyTaken,
    /// The thread gave a semaphore back that it had not taken, at one time.
    OnlyGiven,
}

/// A time in which a thread had a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hold {
    pub(super) course: Course,
    pub(super) thread: ThreadId,
    /// Others may have had it as well.
    pub(super) is_shared: bool,
    pub(super) asked_at: u64,
    pub(super) got_at: u64,
    pub(super) given_back_at: u64,
    /// The last time that was read before it was given back: it was, no earlier.
    pub(super) no_earlier: u64,
    /// The code that asked, by the last access before it.
    pub(super) place: u64,
}

impl Hold {
    /// A thread that got a lock when it asked, alone, and gave it back at a time that was read.
    pub(super) fn new(course: Course, thread: ThreadId, got_at: u64, given_back_at: u64) -> Hold {
        Hold {
            course,
            thread,
            is_shared: false,
            asked_at: got_at,
            got_at,
            given_back_at,
            no_earlier: given_back_at,
            place: 0,
        }
    }

    /// The time for which the thread had it.
    pub(super) fn lasted(&self) -> u64 {
        self.given_back_at.saturating_sub(self.got_at)
    }

    /// Whether it counts as a hold.
    pub(super) fn is_taken(&self) -> bool {
        self.course != Course::OnlyGiven
    }

    /// The time for which the thread asked for it.
    pub(super) fn waited(&self) -> u64 {
        self.got_at.saturating_sub(self.asked_at)
    }

    /// Whether this hold began late because of another. A thread that got the lock when it asked waited for nobody,
    /// even if the other's end is estimated to be later. A semaphore is waited for until somebody gives it back; its
    /// limit of holders is not known.
    fn waits_for(&self, other: &Hold) -> bool {
        if other.thread == self.thread || self.asked_at >= other.given_back_at || self.waited() == 0 {
            return false;
        }
        match self.course {
            Course::Lock => !(other.is_shared && self.is_shared),
            Course::Semaphore | Course::OnlyTaken => {
                other.course != Course::OnlyTaken && other.given_back_at <= self.got_at
            }
            Course::OnlyGiven => false,
        }
    }
}

/// A plain store that gives a lock back has a time only by the accesses around it. If the next thread has the lock
/// before that time, and no recorded time contradicts it, the lock was given back by then. `holds` are in the order in
/// which threads got the lock.
pub(super) fn end_before_the_next(holds: &mut [Hold]) {
    for index in 1..holds.len() {
        let (before, from_next) = holds.split_at_mut(index);
        let (Some(hold), Some(next)) = (before.last_mut(), from_next.first()) else { return };
        let is_one_at_a_time = hold.course == Course::Lock && !(hold.is_shared && next.is_shared);
        if is_one_at_a_time && hold.thread != next.thread && next.got_at >= hold.no_earlier {
            hold.given_back_at = hold.given_back_at.min(next.got_at);
        }
    }
}

/// The hold of another thread at the time a lock was asked for, when there was one that kept the lock from this one.
/// `holds` are in the order in which threads got the lock.
fn waited_for<'h>(holds: &'h [Hold], asking: &Hold) -> Option<&'h Hold> {
    let until = if asking.course == Course::Lock { asking.asked_at } else { asking.got_at };
    let before = holds.partition_point(|other| other.got_at <= until);
    let near = holds[..before].iter().rev().take(NEAR_HOLDS);
    near.filter(|other| asking.waits_for(other)).max_by_key(|other| other.given_back_at)
}

pub(super) fn waits(holds: &[Hold]) -> Vec<LockWait> {
    let mut all: BTreeMap<(u32, u32), (u64, u64, u64)> = BTreeMap::new();
    for hold in holds {
        let Some(other) = waited_for(holds, hold) else { continue };
        let (times, time, longest) = all.entry((hold.thread.0, other.thread.0)).or_default();
        (*times, *time, *longest) = (*times + 1, *time + hold.waited(), hold.waited().max(*longest));
    }
    let wait = |((thread, waits_for), (times, time, longest_time))| LockWait {
        thread,
        waits_for,
        times,
        time,
        longest_time,
    };
    all.into_iter().map(wait).collect()
}

/// Code that takes the lock, that first for which others waited longest.
pub(super) fn sections(holds: &[Hold], namer: &Namer<'_>) -> Vec<LockSection> {
    let mut all: BTreeMap<(String, Option<String>), LockSection> = BTreeMap::new();
    let mut section = |hold: &Hold, add: &dyn Fn(&mut LockSection)| {
        let (function, place) = (namer.function_at(hold.place).0, namer.place_of(hold.place));
        let key = (function.clone(), place.clone());
        add(all.entry(key).or_insert_with(|| LockSection { function, place, ..LockSection::default() }));
    };
    for hold in holds {
        section(hold, &|section| {
            section.taken += u64::from(hold.is_taken());
            section.held_time += hold.lasted();
        });
        if let Some(other) = waited_for(holds, hold) {
            section(other, &|section| section.others_waited_time += hold.waited());
        }
    }
    let mut all: Vec<LockSection> = all.into_values().collect();
    all.sort_by_key(|section| std::cmp::Reverse((section.others_waited_time, section.held_time)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hold(thread: u32, asked_at: u64, got_at: u64, given_back_at: u64) -> Hold {
        Hold { asked_at, ..Hold::new(Course::Lock, ThreadId(thread), got_at, given_back_at) }
    }

    #[test]
    fn a_hold_ends_before_the_next_unless_a_time_that_was_read_says_otherwise() {
        let ends = |no_earlier, is_shared| {
            let first = Hold { no_earlier, is_shared, ..hold(0, 0, 1, 100) };
            let mut holds = [first, Hold { is_shared, ..hold(1, 20, 60, 130) }];
            end_before_the_next(&mut holds);
            holds.map(|hold| hold.given_back_at)
        };
        assert_eq!(ends(50, false), [60, 130]);
        assert_eq!(ends(61, false), [100, 130], "it had it then");
        assert_eq!(ends(50, true), [100, 130], "readers have it together");
    }

    #[test]
    fn a_thread_waits_for_the_one_that_has_the_lock_when_it_asks() {
        // Thread 1 asks while 0 has it; 0 asks again when nobody has it.
        let holds = [hold(0, 0, 1, 100), hold(1, 50, 120, 130), hold(0, 200, 201, 210)];
        let wait = LockWait { thread: 1, waits_for: 0, times: 1, time: 70, longest_time: 70 };
        assert_eq!(waits(&holds), [wait]);
    }

    #[test]
    fn who_gets_a_lock_at_once_waits_for_nobody() {
        // The time of the plain store that gave it back is spread up to the next that was read, and so is too late.
        let first = Hold { no_earlier: 61, ..hold(0, 0, 1, 100) };
        let mut holds = [first, hold(1, 60, 60, 130)];
        end_before_the_next(&mut holds);
        assert_eq!(waits(&holds), []);
        assert_eq!(waits(&[first, hold(1, 60, 62, 130)]).len(), 1);
    }

    #[test]
    fn readers_do_not_wait_for_readers_and_a_writer_waits_for_the_last_of_them() {
        let reader = |hold| Hold { is_shared: true, ..hold };
        let holds = [
            reader(hold(0, 0, 1, 100)),
            reader(hold(1, 10, 11, 60)),
            hold(2, 20, 101, 110),
            reader(hold(1, 105, 111, 120)),
        ];
        let told: Vec<(u32, u32, u64)> =
            waits(&holds).iter().map(|wait| (wait.thread, wait.waits_for, wait.time)).collect();
        assert_eq!(told, [(1, 2, 6), (2, 0, 81)]);
    }

    #[test]
    fn a_semaphore_is_waited_for_until_another_thread_gives_it_back() {
        let of = |course, hold| Hold { course, ..hold };
        // Two may have it: 1 gets it at once together with 0, 2 waits until 0 gives it back, 1 gives nothing back.
        let holds = [
            of(Course::Semaphore, hold(0, 0, 1, 100)),
            of(Course::OnlyTaken, hold(1, 10, 11, 11)),
            of(Course::Semaphore, hold(2, 20, 101, 110)),
        ];
        let told = |holds: &[Hold]| -> Vec<(u32, u32, u64)> {
            waits(holds).iter().map(|wait| (wait.thread, wait.waits_for, wait.time)).collect()
        };
        assert_eq!(told(&holds), [(2, 0, 81)]);
        // A signal: who gives it never took it.
        let signal = [of(Course::OnlyGiven, hold(0, 50, 50, 50)), of(Course::OnlyTaken, hold(1, 5, 52, 52))];
        assert_eq!(told(&signal), [(1, 0, 47)]);
        assert_eq!(signal.iter().filter(|hold| hold.is_taken()).count(), 1);
    }
}
