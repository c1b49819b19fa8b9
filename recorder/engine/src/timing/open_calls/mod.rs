//! Timing calls: a thread's open calls of one region, when they are more than one, or when one was left.
//!
//! The code of entries and ends deals with one open call at a time by itself. It hands the rest over to this file: a
//! call inside a call, and calls that ended neither by a return nor by a jump: an exception, `longjmp`, or another
//! stack that the thread went on with. A call is known only by the place of its return address:
//!
//! * An entry at or above an open call, or an end above it, shows that the call is gone: it was left.
//! * Below an open call nothing shows whether that is gone. So a call there is timed and counted, and remembered with
//!   the open one. If that returns, the call was inside it, and is counted as such after all; if that was left, the
//!   call stands.
//! * A call that seemed to be left may still end: the thread was on another stack meanwhile. For some time it is
//!   remembered, and counted as ended then.
//!
//! Recursion is the rule and calls that were left are the exception. So a thread remembers calls only a few levels
//! deep, and none after many true inner calls, until a call is left again. Others are counted as inside.

use lineup_recording::native::timed;

/// The most open calls that are distinguished below the innermost.
const MOST_BELOW: usize = 7;
/// Calls of one open call that are listed singly.
const LISTED: usize = 16;
/// The most remembered calls that seemed to be left, and the number of events for which they are remembered.
const REMEMBERED: usize = 64;
const REMEMBERED_FOR: u64 = 1000;
/// The number of inner calls from which on a thread is assumed to recurse.
const BELIEVED_AFTER: u64 = 1 << 16;

/// State of a region that the code of entries and ends uses: words of the thread's slots.
pub(crate) mod slot {
    /// Place of the innermost open call's return address, or 0.
    pub(crate) const AT: usize = 0;
    /// When it began.
    pub(crate) const BEGUN: usize = 1;
    /// Cycles of the last call.
    pub(crate) const CYCLES: usize = 2;
    /// Bits of [`super::state`]; 0 when the code needs no help.
    pub(crate) const STATE: usize = 3;
    /// Words of a region.
    pub(crate) const WORDS: usize = 4;
}

/// Reasons why the code of entries and ends needs help.
pub(crate) mod state {
    /// There are open calls below the innermost, or remembered calls.
    pub(crate) const NESTED: u64 = 1;
    /// Calls are remembered that seemed to be left.
    pub(crate) const REMEMBERS: u64 = 2;
    /// Calls below the innermost open one are counted as inside it, with nothing else done.
    pub(crate) const COUNTS_ONLY: u64 = 4;
    /// The innermost open call may be inside another.
    pub(crate) const INSIDE: u64 = 8;
}

/// The region's words of a thread's table, see [`timed`].
pub(crate) type Words = [u64; timed::WORDS];
/// The region's words of a thread's slots.
pub(crate) type Slot = [u64; slot::WORDS];

/// The buckets, sum and jumps of remembered calls.
struct RememberedCalls {
    calls: u64,
    sum: u64,
    jumped: u64,
    listed: [u16; LISTED],
    buckets: [u32; timed::BUCKETS],
}

/// An open call.
struct Open {
    at: u64,
    begun: u64,
    /// The calls that ended below it; they are inside it if it returns.
    kept: RememberedCalls,
}

/// A call that seemed to be left.
#[derive(Clone, Copy, Default)]
struct Remembered {
    at: u64,
    begun: u64,
    /// The event at which it seemed so.
    since: u64,
}

/// A thread's open calls of one region. All zeros means no call.
pub(crate) struct OpenCalls {
    /// The calls from the outermost on; the innermost of `count` is in the slot, with its extra data here.
    open: [Open; MOST_BELOW + 1],
    count: usize,
    remembered: [Remembered; REMEMBERED],
    events: u64,
    /// Inner calls since one was left.
    inner: u64,
}

/// The end of a call.
#[derive(Clone, Copy)]
pub(crate) struct CallExit {
    /// Place of its return address.
    pub(crate) at: u64,
    /// The counter, as the code read it.
    pub(crate) now: u64,
    /// Whether it ended with a jump to another function.
    pub(crate) jumps: bool,
}

impl OpenCalls {
    /// A call begins that the code could not handle. It is timed when it is the innermost afterwards: then the code
    /// notes its beginning.
    pub(crate) fn enter(&mut self, slot: &mut Slot, words: &mut Words, at: u64) {
        self.take_up(slot);
        self.leave_until(slot, words, |open| open > at, at);
        self.remembered.iter_mut().filter(|one| one.at == at).for_each(|one| one.at = 0);
        let is_believed = self.inner >= BELIEVED_AFTER && self.count > 0;
        if self.count > MOST_BELOW || is_believed {
            words[timed::INNER] += 1;
        } else {
            self.open[self.count].at = at;
            self.count += 1;
            words[timed::OPEN] += 1;
            (slot[slot::AT], slot[slot::BEGUN]) = (at, 0);
        }
        self.say(slot);
    }

    /// The innermost open call has ended. The code has counted it and taken it out of the slot.
    pub(crate) fn ended(&mut self, slot: &mut Slot, words: &mut Words, jumps: bool) {
        self.begin();
        // The code may have begun it alone.
        self.count = self.count.max(1);
        self.close(slot, words, (slot[slot::CYCLES], jumps));
        self.say(slot);
    }

    /// An end of a call that is not the innermost open one: one further below, one that seemed to be left, or one that
    /// is not distinguished. Returns the cycles of a sampled call.
    pub(crate) fn other_end(&mut self, slot: &mut Slot, words: &mut Words, ended: CallExit) -> Option<u64> {
        let CallExit { at, now, jumps } = ended;
        let mut drawn = None;
        self.take_up(slot);
        self.leave_until(slot, words, |open| open >= at, u64::MAX);
        if self.count > 0 && slot[slot::AT] == at {
            let cycles = now.wrapping_sub(slot[slot::BEGUN]);
            words[timed::OPEN] = words[timed::OPEN].saturating_sub(1);
            match words[timed::TRIAL] == at {
                true => drawn = Some(cycles),
                false => count(words, slot[slot::BEGUN], cycles, jumps),
            }
            self.close(slot, words, (cycles, jumps));
        } else if let Some(one) = self.remembered.iter_mut().find(|one| one.at == at) {
            let Remembered { begun, .. } = std::mem::take(one);
            let cycles = now.wrapping_sub(begun);
            words[timed::LEFT] = words[timed::LEFT].saturating_sub(1);
            count(words, begun, cycles, jumps);
            let around = self.open[..self.count].iter_mut().rev().find(|open| open.begun <= begun);
            around.into_iter().for_each(|open| open.kept.add(cycles, jumps));
        }
        self.say(slot);
        drawn
    }

    /// The thread has ended: another may use the memory.
    pub(crate) fn forget(&mut self) {
        self.drop_open();
        self.remembered = [Remembered::default(); REMEMBERED];
        self.inner = 0;
    }

    fn drop_open(&mut self) {
        self.open[..self.count].iter_mut().for_each(|open| open.kept.clear());
        self.count = 0;
    }

    /// An event: forgets the calls that were remembered for too long.
    fn begin(&mut self) {
        self.events += 1;
        let oldest = self.events.saturating_sub(REMEMBERED_FOR);
        self.remembered.iter_mut().filter(|one| one.since < oldest).for_each(|one| one.at = 0);
    }

    /// Sets the state that says what the code can handle alone from now on.
    fn say(&mut self, slot: &mut Slot) {
        let counts_only = self.count > MOST_BELOW || self.inner >= BELIEVED_AFTER;
        if counts_only {
            // An end at such a place may then be of another call.
            self.remembered.iter_mut().for_each(|one| one.at = 0);
        }
        let is_nested = self.count > 1 || self.open[..self.count].iter().any(|open| open.kept.calls > 0);
        let bit = |is_set: bool, bit: u64| if is_set { bit } else { 0 };
        slot[slot::STATE] = bit(is_nested, state::NESTED)
            | bit(self.remembered.iter().any(|one| one.at != 0), state::REMEMBERS)
            | bit(counts_only, state::COUNTS_ONLY)
            | bit(self.count > 1, state::INSIDE);
    }

    /// Takes over the call that the code has begun alone.
    fn take_up(&mut self, slot: &Slot) {
        self.begin();
        if slot[slot::AT] == 0 {
            return self.drop_open();
        }
        self.count = self.count.max(1);
        let innermost = &mut self.open[self.count - 1];
        (innermost.at, innermost.begun) = (slot[slot::AT], slot[slot::BEGUN]);
    }

    /// The open calls were left down to the first that is not gone. The one whose place a new call takes has not just
    /// gone to another stack.
    fn leave_until(
        &mut self,
        slot: &mut Slot,
        words: &mut Words,
        is_there: impl Fn(u64) -> bool,
        taken: u64,
    ) {
        while let Some(innermost) = self.count.checked_sub(1)
            && !is_there(self.open[innermost].at)
        {
            let Open { at, begun, .. } = self.open[innermost];
            words[timed::LEFT] += 1;
            words[timed::OPEN] = words[timed::OPEN].saturating_sub(1);
            if words[timed::TRIAL] == at {
                words[timed::TRIAL] = 0;
            }
            if at != taken {
                self.remember(at, begun);
            }
            self.inner = 0;
            // The calls that ended below it stand, unless it was inside the next one.
            let (below, own) = self.open.split_at_mut(innermost);
            if let Some(below) = below.last_mut() {
                below.kept.take_from(&own[0].kept);
            }
            own[0].kept.clear();
            self.count -= 1;
            self.show_innermost(slot);
        }
    }

    fn remember(&mut self, at: u64, begun: u64) {
        let since = self.events;
        if let Some(oldest) = self.remembered.iter_mut().min_by_key(|one| (one.at != 0, one.since)) {
            *oldest = Remembered { at, begun, since };
        }
    }

    /// The innermost open call has ended and is counted: the calls kept with it were inside it, and it may itself be
    /// inside the next.
    fn close(&mut self, slot: &mut Slot, words: &mut Words, (cycles, jumps): (u64, bool)) {
        let Some(innermost) = self.count.checked_sub(1) else { return };
        let (below, own) = self.open.split_at_mut(innermost);
        let kept = &mut own[0].kept;
        self.inner += kept.calls;
        kept.take_back(words, slot[slot::BEGUN]);
        kept.clear();
        if let Some(below) = below.last_mut() {
            below.kept.add(cycles, jumps);
        }
        self.count -= 1;
        self.show_innermost(slot);
    }

    fn show_innermost(&self, slot: &mut Slot) {
        let innermost = self.count.checked_sub(1).map(|innermost| &self.open[innermost]);
        slot[slot::AT] = innermost.map_or(0, |open| open.at);
        slot[slot::BEGUN] = innermost.map_or(0, |open| open.begun);
    }
}

impl RememberedCalls {
    fn add(&mut self, cycles: u64, jumps: bool) {
        let bucket = bucket(cycles);
        if let Some(listed) = self.listed.get_mut(self.calls as usize) {
            *listed = bucket as u16;
        }
        self.buckets[bucket] += 1;
        self.calls += 1;
        self.sum = self.sum.wrapping_add(cycles);
        self.jumped += u64::from(jumps);
    }

    /// Buckets with as many calls each, of which one may come more than once.
    fn each(&self, mut see: impl FnMut(usize, u32)) {
        match self.listed.get(..self.calls as usize) {
            Some(listed) => listed.iter().for_each(|bucket| see(usize::from(*bucket), 1)),
            None => self.buckets.iter().enumerate().for_each(|(bucket, calls)| see(bucket, *calls)),
        }
    }

    fn take_from(&mut self, other: &RememberedCalls) {
        let (from, count) = (self.calls as usize, other.calls as usize);
        if from + count <= LISTED {
            self.listed[from..from + count].copy_from_slice(&other.listed[..count]);
        }
        other.each(|bucket, calls| self.buckets[bucket] += calls);
        self.calls += other.calls;
        self.sum = self.sum.wrapping_add(other.sum);
        self.jumped += other.jumped;
    }

    /// The calls were inside one that began then.
    fn take_back(&self, words: &mut Words, begun: u64) {
        if self.calls == 0 {
            return;
        }
        self.each(|bucket, calls| {
            let word = &mut words[timed::FIRST_BUCKET + bucket];
            *word = word.saturating_sub(calls.into());
        });
        words[timed::SUM] = words[timed::SUM].wrapping_sub(self.sum);
        words[timed::JUMPED] = words[timed::JUMPED].saturating_sub(self.jumped);
        words[timed::INNER] += self.calls;
        let marks = &mut words[timed::FIRST_MARK..][..timed::MARK_WORDS * timed::MOST_MARKS];
        for mark in marks.chunks_exact_mut(timed::MARK_WORDS) {
            if mark[0] > begun {
                mark.fill(0);
            }
        }
    }

    fn clear(&mut self) {
        match self.listed.get(..self.calls as usize) {
            Some(listed) => listed.iter().for_each(|bucket| self.buckets[usize::from(*bucket)] = 0),
            None => self.buckets.fill(0),
        }
        (self.calls, self.sum, self.jumped) = (0, 0, 0);
    }
}

/// Counts a call as the code of ends does.
fn count(words: &mut Words, begun: u64, cycles: u64, jumps: bool) {
    words[timed::SUM] = words[timed::SUM].wrapping_add(cycles);
    if cycles > words[timed::MOST] {
        words[timed::MOST] = cycles;
        let place = words[timed::MARKS] as usize % timed::MOST_MARKS;
        let mark = &mut words[timed::FIRST_MARK + timed::MARK_WORDS * place..][..timed::MARK_WORDS];
        mark.copy_from_slice(&[begun, cycles, u64::MAX]);
        words[timed::MARKS] += 1;
    }
    words[timed::FIRST_BUCKET + bucket(cycles)] += 1;
    words[timed::JUMPED] += u64::from(jumps);
}

/// The bucket of a number of cycles: 32 to an octave.
fn bucket(cycles: u64) -> usize {
    match cycles.checked_ilog2() {
        Some(octave @ 5..) => ((cycles >> (octave - 5)) + (u64::from(octave - 5) << 5)) as usize,
        _ => cycles as usize,
    }
}

#[cfg(test)]
mod tests;
