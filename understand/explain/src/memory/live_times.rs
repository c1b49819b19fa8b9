//! When an object held values of its type that were read later.
//!
//! Memory that a program hands out itself changes hands without a word: a pool's list of free blocks is read when a
//! block is handed out and written when it comes back. In between, the block holds something else. So an object is
//! taken to be there from when its bytes are written through its type until they are last read through it.

use lineup_model::access::ProcessId;

/// A place in the order of accesses: when the call began, and the number of the access in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Moment {
    /// When the call began, in the recording's order of events.
    pub call: u64,
    /// Number of the access in the call.
    pub access: u32,
    /// The process that made it.
    pub process: ProcessId,
}

/// Before everything.
const BEGINNING: Moment = Moment { call: 0, access: 0, process: ProcessId(0) };

/// After everything.
const END: Moment = Moment { call: u64::MAX, access: u32::MAX, process: ProcessId(u32::MAX) };

/// The largest number of times kept per object. Earlier times are then unknown.
const MAX_TIMES: usize = 256;

/// The largest number of separate runs of written bytes kept per object. Those of a larger array count as one.
const MAX_RUNS: usize = 64;

/// When an object was there.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct LiveTimes {
    /// First and last moment, sorted, apart from each other.
    times: Vec<(Moment, Moment)>,
    /// Bytes written through the type, sorted in no way and apart from each other.
    written: Vec<Written>,
}

/// Bytes that were written and not written again since.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Written {
    /// Offset of the first.
    start: u64,
    /// Offset after the last.
    end: u64,
    at: Moment,
    /// True when they were read since.
    is_read: bool,
}

impl LiveTimes {
    /// Notes that bytes of the object were read through its type: they were there since they were written.
    pub(crate) fn read(&mut self, offset: u64, size_bytes: u64, at: Moment) {
        let end = offset.saturating_add(size_bytes);
        let mut covered = 0;
        let mut since = at;
        for written in &mut self.written {
            let common = end.min(written.end).saturating_sub(offset.max(written.start));
            if common > 0 {
                covered += common;
                since = since.min(written.at);
                written.is_read = true;
            }
        }
        let since = if covered < size_bytes { BEGINNING } else { since };
        self.add(since, at);
    }

    /// Notes that bytes of the object were written through its type.
    pub(crate) fn write(&mut self, offset: u64, size_bytes: u64, at: Moment) {
        let (start, end) = (offset, offset.saturating_add(size_bytes));
        let rest = |written: &Written| {
            let (before, after) = (written.end.min(start), written.start.max(end));
            [Written { end: before, ..*written }, Written { start: after, ..*written }]
                .into_iter()
                .filter(|rest| rest.start < rest.end)
        };
        self.written = self.written.iter().flat_map(rest).collect();
        self.written.push(Written { start, end, at, is_read: false });
        if self.written.len() > MAX_RUNS {
            let all = self.written.drain(..).reduce(|a, b| Written {
                start: a.start.min(b.start),
                end: a.end.max(b.end),
                at: a.at.min(b.at),
                is_read: a.is_read || b.is_read,
            });
            self.written.extend(all);
        }
        self.add(at, at);
    }

    /// After the last access: bytes that were written and not read through the type may still be read otherwise.
    pub(crate) fn settle(&mut self) {
        let unread: Vec<Moment> =
            self.written.drain(..).filter(|written| !written.is_read).map(|written| written.at).collect();
        unread.into_iter().for_each(|at| self.add(at, END));
    }

    /// Adds the times of a part of the object.
    pub(crate) fn absorb(&mut self, part: &LiveTimes) {
        part.times.iter().for_each(|(from, to)| self.add(*from, *to));
    }

    fn add(&mut self, mut from: Moment, mut to: Moment) {
        let after = self.times.partition_point(|(_, end)| *end < from);
        let overlapping =
            self.times.get(after..).unwrap_or_default().iter().take_while(|(start, _)| *start <= to);
        let count = overlapping.count();
        for (start, end) in self.times.drain(after..after + count) {
            (from, to) = (from.min(start), to.max(end));
        }
        self.times.insert(after, (from, to));
        if self.times.len() > MAX_TIMES {
            self.times.remove(0);
        }
    }

    /// True when the object was there.
    pub(crate) fn contains(&self, at: Moment) -> bool {
        let after = self.times.partition_point(|(_, end)| *end < at);
        self.times.get(after).is_some_and(|(start, _)| *start <= at)
    }

    /// True when both were there at some moment.
    pub(crate) fn overlaps(&self, other: &LiveTimes) -> bool {
        let mut others = other.times.iter().peekable();
        for (start, end) in &self.times {
            while others.next_if(|(_, other_end)| other_end < start).is_some() {}
            if others.peek().is_some_and(|(other_start, _)| other_start <= end) {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(call: u64) -> Moment {
        Moment { call, ..BEGINNING }
    }

    #[test]
    fn a_link_of_a_free_block_is_there_from_when_it_is_written_to_when_it_is_read() {
        let mut link = LiveTimes::default();
        link.write(0, 8, at(1));
        link.read(0, 8, at(3));
        link.write(0, 8, at(7));
        link.read(0, 8, at(8));
        let there: Vec<u64> = (0..10).filter(|call| link.contains(at(*call))).collect();
        assert_eq!(there, [1, 2, 3, 7, 8]);
    }

    #[test]
    fn a_header_that_is_only_written_is_there_for_whoever_reads_its_bytes() {
        let mut header = LiveTimes::default();
        header.write(0, 2, at(3));
        header.write(2, 2, at(4));
        header.settle();
        assert!(!header.contains(at(2)) && header.contains(at(5)));
    }

    #[test]
    fn what_is_read_unwritten_was_there_before() {
        let mut object = LiveTimes::default();
        object.write(0, 4, at(4));
        object.read(4, 4, at(6));
        assert!((0..=6).all(|call| object.contains(at(call))));
        assert!(!object.contains(at(7)));
    }

    #[test]
    fn times_that_meet_become_one_and_times_apart_do_not_overlap() {
        let (mut one, mut other) = (LiveTimes::default(), LiveTimes::default());
        for start in [10, 30] {
            one.write(0, 8, at(start));
            one.read(0, 8, at(start + 5));
            other.write(0, 8, at(start + 10));
            other.read(0, 8, at(start + 15));
        }
        assert!(!one.overlaps(&other) && !other.overlaps(&one));
        one.write(8, 8, at(12));
        one.read(8, 8, at(22));
        assert!(one.overlaps(&other) && other.overlaps(&one));
        assert_eq!(one.times, [(at(10), at(22)), (at(30), at(35))]);
    }

    #[test]
    fn a_large_array_that_is_written_element_by_element_is_one_run() {
        let mut array = LiveTimes::default();
        (0..10_000).for_each(|index| array.write(index * 4, 4, at(1)));
        assert!(array.written.len() <= MAX_RUNS);
        array.read(0, 4, at(9));
        assert!(array.contains(at(5)));
    }

    #[test]
    fn the_first_times_are_given_up_when_there_are_too_many() {
        let mut object = LiveTimes::default();
        (0..1000).for_each(|call| object.write(0, 8, at(call)));
        assert_eq!(object.times.len(), MAX_TIMES);
        assert!(!object.contains(at(1)) && object.contains(at(999)));
    }
}
