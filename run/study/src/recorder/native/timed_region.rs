//! The times of a region's calls, read from the memory that is shared with the engine.

use crate::recorder::native::shared_memory::Memory;
use lineup_recording::native::{chunk, timed};
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;

/// The times of one region's calls, in cycles of the processor's counter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TimedRegion {
    /// Its name.
    pub name: String,
    /// Calls by cycles, as a trace's histogram counts them.
    pub buckets: Vec<u64>,
    /// Cycles of all calls.
    pub sum: u64,
    /// Cycles of the longest.
    pub most: u64,
    /// Calls that were left by an exception or a jump, or had not ended when the program did: they have no time.
    pub left: u64,
    /// Calls inside a call of the same region: they are part of its time.
    pub inner: u64,
    /// Calls that ended with a jump to another function: their time is up to there.
    pub jumped: u64,
    /// Calls that took longer than any before them on their thread, in order.
    pub marks: Vec<Mark>,
    /// Sampled calls, before which an intervention may have been made. Only `left` counts them too.
    pub drawn: u64,
    /// Cycles of the interventions before them.
    pub spent: u64,
}

/// A call that took longer than any before it on its thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    /// When it began, by the counter.
    pub begun_at: u64,
    /// Its duration in cycles.
    pub cycles: u64,
    /// The processor that it ended on, when that reports its number.
    pub processor: Option<u32>,
}

impl TimedRegion {
    /// These calls and others of the same region.
    pub(super) fn and(mut self, other: TimedRegion) -> TimedRegion {
        self.buckets.resize(self.buckets.len().max(other.buckets.len()), 0);
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(sum, count)| *sum += count);
        self.sum = self.sum.saturating_add(other.sum);
        self.most = self.most.max(other.most);
        self.left += other.left;
        self.inner += other.inner;
        self.jumped += other.jumped;
        self.marks.extend(other.marks);
        self.marks.sort_by_key(|mark| mark.begun_at);
        self.drawn += other.drawn;
        self.spent = self.spent.saturating_add(other.spent);
        self
    }
}

/// One region's words, of all threads of a process.
pub(super) fn sums(memory: &Memory, region: usize) -> TimedRegion {
    let mut sum = TimedRegion { buckets: vec![0; timed::BUCKETS], ..TimedRegion::default() };
    let field = |table: &[u64], number: usize| table.get(number).copied().unwrap_or_default();
    for number in 0..chunk::COUNT {
        let table = memory.times(number, region);
        if table.iter().all(|word| *word == 0) {
            continue;
        }
        for (count, bucket) in sum.buckets.iter_mut().zip(timed::FIRST_BUCKET..) {
            *count += field(&table, bucket);
        }
        sum.sum = sum.sum.saturating_add(field(&table, timed::SUM));
        sum.most = sum.most.max(field(&table, timed::MOST));
        sum.left += field(&table, timed::LEFT) + field(&table, timed::OPEN);
        sum.inner += field(&table, timed::INNER);
        sum.jumped += field(&table, timed::JUMPED);
        sum.drawn += field(&table, timed::DRAWN);
        sum.spent = sum.spent.saturating_add(field(&table, timed::SPENT));
        sum.marks.extend(latest(field(&table, timed::MARKS)).map(|mark| {
            let word = |number| field(&table, timed::FIRST_MARK + timed::MARK_WORDS * mark + number);
            // The system keeps the processor's number in the lower twelve bits.
            let processor = Some(word(2)).filter(|word| *word != u64::MAX).map(|word| word as u32 & 0xfff);
            Mark { begun_at: word(0), cycles: word(1), processor }
        }));
        // Marks that turned out to be inside another call were taken out.
        sum.marks.retain(|mark| mark.begun_at != 0);
    }
    sum.marks.sort_by_key(|mark| mark.begun_at);
    sum
}

/// The places of marks that are there.
fn latest(made: u64) -> Range<usize> {
    0..usize::try_from(made).unwrap_or(usize::MAX).min(timed::MOST_MARKS)
}

/// The summary's notes, in words.
pub(super) fn said(memory: &Memory) -> Vec<String> {
    let control = memory.control();
    let count = |word: &AtomicU64, what: &str| {
        Some(word.load(Acquire)).filter(|count| *count > 0).map(|count| format!("{what}: {count}"))
    };
    let forked = count(&control.forked, "processes that were forked off, whose calls are not timed");
    let passed =
        count(&control.passed_over, "threads whose calls are not timed, since there were too many at a time");
    forked.into_iter().chain(passed).chain(memory.notes()).collect()
}
