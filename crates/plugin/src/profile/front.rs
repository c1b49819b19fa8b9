//! What callbacks do themselves: counting, and noting for the model what may change its caches.

use super::Run;
use super::events::Batch;
use super::model::Counts;
use crate::describe::Description;
use lineup_cache::{CacheLevel, CacheSpec, Lines, MostRecent};

/// What is needed of a run: where its code lies.
#[derive(Clone, Copy)]
struct Known {
    /// Of a block's first run: how often the block was executed.
    executions: u64,
    /// Of a block's first run: the only line of the whole block, as [`Lines::only`] tells it.
    only_line: u64,
    lines: Lines,
    ends_block: bool,
}

/// One thread's counts that need no model, and its events under way.
pub(super) struct Front {
    pub(super) batch: Batch,
    /// A level left out always hits.
    l1i: Option<MostRecent>,
    l1d: Option<MostRecent>,
    /// The runs known so far.
    runs: Vec<Known>,
    /// Loads and stores of the same runs' instructions, in turn; see [`Run::counters`].
    accesses: Vec<u64>,
}

impl Front {
    pub(super) fn new(specs: &[CacheSpec]) -> Front {
        let recent = |level| specs.iter().rfind(|spec| spec.level() == level).map(MostRecent::new);
        Front {
            batch: Batch::new(),
            l1i: recent(CacheLevel::L1i),
            l1d: recent(CacheLevel::L1d),
            runs: Vec::new(),
            accesses: Vec::new(),
        }
    }

    /// Takes in runs made since the last time.
    pub(super) fn learn(&mut self, runs: &[Run]) {
        let lines = |run: &Run| match &self.l1i {
            Some(l1i) => l1i.lines(run.pc, u64::from(run.size_bytes)),
            None => Lines::NONE,
        };
        for block in runs.chunk_by(|run, _| !run.ends_block) {
            let whole = block.iter().map(lines).reduce(Lines::with).unwrap_or(Lines::NONE);
            self.runs.extend(block.iter().map(|run| Known {
                executions: 0,
                only_line: whole.only(),
                lines: lines(run),
                ends_block: run.ends_block,
            }));
        }
        self.accesses.resize(runs.last().map_or(self.accesses.len(), |run| run.counters_end() as usize), 0);
        self.batch.new_runs.extend(runs);
    }

    /// How many runs it knows.
    pub(super) fn known_runs(&self) -> usize {
        self.runs.len()
    }

    /// Enters the block that begins with a run, if that changes nothing in the cache; else false, and nothing done.
    #[inline]
    pub(super) fn enter_again(&mut self, run: u32) -> bool {
        let (Some(block), Some(l1i)) = (self.runs.get_mut(run as usize), &self.l1i) else { return false };
        let changes_nothing = l1i.is_most_recent(block.only_line);
        block.executions += u64::from(changes_nothing);
        changes_nothing
    }

    /// Enters the block that begins with a run; false, and nothing done, when the run is unknown or the batch full.
    pub(super) fn enter(&mut self, run: u32) -> bool {
        let Some(block) = self.runs.get_mut(run as usize) else { return false };
        let Some(l1i) = &mut self.l1i else {
            block.executions += 1;
            return true;
        };
        if !self.batch.has_room_for_block() {
            return false;
        }
        block.executions += 1;
        for (number, run) in (run..).zip(&self.runs[run as usize..]) {
            if !l1i.passes_over(run.lines) {
                l1i.use_lines(run.lines);
                self.batch.fetch(number);
            }
            if run.ends_block {
                break;
            }
        }
        true
    }

    /// Accesses data from the instruction with these counters, if that changes nothing in the cache; else false, and
    /// nothing done.
    #[inline]
    pub(super) fn access_again(&mut self, counter: u32, address: u64, what: &Description) -> bool {
        let counter = counter + u32::from(what.is_store);
        let (Some(count), Some(l1d)) = (self.accesses.get_mut(counter as usize), &self.l1d) else {
            return false;
        };
        let changes_nothing = l1d.passes_over(l1d.lines(address, u64::from(what.size_bytes())));
        if changes_nothing {
            *count += 1;
        }
        changes_nothing
    }

    /// Accesses data from the instruction with these counters; false, and nothing done, when they are unknown, the batch
    /// is full, or the address is a wide one.
    pub(super) fn access(&mut self, counter: u32, address: u64, what: &Description) -> bool {
        let counter = counter + u32::from(what.is_store);
        let Some(count) = self.accesses.get_mut(counter as usize) else { return false };
        if let Some(l1d) = &mut self.l1d {
            if !self.batch.access(counter, address, what) {
                return false;
            }
            l1d.use_lines(l1d.lines(address, u64::from(what.size_bytes())));
        }
        *count += 1;
        true
    }

    /// As [`Self::access`], whatever the address.
    pub(super) fn access_wide(&mut self, counter: u32, address: u64, what: &Description) -> bool {
        let counter = counter + u32::from(what.is_store);
        let Some(count) = self.accesses.get_mut(counter as usize) else { return false };
        let Some(l1d) = &mut self.l1d else { return false };
        let is_noted = self.batch.access_wide(counter, address, what);
        if is_noted {
            l1d.use_lines(l1d.lines(address, u64::from(what.size_bytes())));
            *count += 1;
        }
        is_noted
    }

    /// The model's counts with its own.
    pub(super) fn complete(self, counts: Counts) -> Counts {
        let executions = self.runs.iter().map(|run| run.executions).collect();
        Counts { executions, accesses: self.accesses, ..counts }
    }
}
