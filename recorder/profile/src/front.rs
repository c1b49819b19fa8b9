//! The callbacks' own work: counting, and noting for the model the events that may change its caches.

use crate::chains::SLOTS;
use crate::code::{Code, Run, SharedCode};
use crate::events::Batch;
use crate::handle::Handle;
use crate::model::Counts;
use crate::part::Part;
use lineup_cache::{CacheLevel, CacheSpec, Lines, MostRecent};

/// The kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind {
    /// The size is two to this power.
    pub size_shift: u8,
    /// It stores.
    pub is_store: bool,
    /// It counts: the first piece of an access that is cut into pieces does.
    pub counts: bool,
}

/// The front's data of a block.
#[derive(Clone, Copy)]
struct Block {
    /// The number of its executions, without those that its first chain counts.
    executions: u64,
    lines: Lines,
}

/// The front's data of a chain of accesses: little, since there are many.
#[derive(Clone, Copy)]
struct Chained {
    /// The number of times that all of it happened.
    count: u64,
    /// For the chain that begins a block: the block's first line.
    block_line: u64,
}

/// One thread's counts that need no model, and its events under way.
pub(crate) struct Front {
    pub(crate) batch: Batch,
    l1i: MostRecent,
    l1d: MostRecent,
    /// Addresses that accesses of chains are measured from.
    slots: [u64; SLOTS],
    /// Blocks, in the places of their first runs.
    blocks: Vec<Block>,
    chains: Vec<Chained>,
    /// Loads and stores of the same runs' instructions, in turn, except those in chains; see [`Run::counters`].
    accesses: Vec<u64>,
    /// The code known so far.
    code: Code,
    /// Events that change nothing are noted as well.
    notes_all: bool,
}

impl Front {
    pub(crate) fn new(specs: &[CacheSpec]) -> Front {
        Front {
            batch: Batch::new(),
            l1i: MostRecent::of_level(specs, CacheLevel::L1i),
            l1d: MostRecent::of_level(specs, CacheLevel::L1d),
            slots: [0; SLOTS],
            blocks: Vec::new(),
            chains: Vec::new(),
            accesses: Vec::new(),
            code: Code::default(),
            notes_all: false,
        }
    }

    /// Begins a batch, of which everything is noted when it is part of a window.
    pub(crate) fn begin_batch(&mut self, window: Option<Part>) {
        self.notes_all = window.is_some();
        self.batch.window = window;
    }

    /// Takes in code met since the last time.
    pub(crate) fn learn(&mut self, shared: &SharedCode) {
        let more = shared.after(&self.code);
        self.learn_runs(&more.runs);
        self.code.append(&more);
        self.batch.new_code.append(&more);
        for chain in &more.chains {
            let lines = chain.begins.map_or(Lines::NONE, |run| self.blocks[run as usize].lines);
            self.chains.push(Chained { count: 0, block_line: lines.first() });
        }
    }

    fn learn_runs(&mut self, runs: &[Run]) {
        let lines = |run: &Run| self.l1i.lines(run.pc, u64::from(run.size_bytes));
        for block in runs.chunk_by(|run, _| !run.ends_block) {
            let lines = block.iter().map(lines).reduce(Lines::with).unwrap_or(Lines::NONE);
            self.blocks.extend(block.iter().map(|_| Block { executions: 0, lines }));
        }
        self.accesses.resize(runs.last().map_or(self.accesses.len(), |run| run.counters_end() as usize), 0);
    }

    /// Enters the block that begins with a run; false, and nothing done, when it is unknown or the batch full.
    #[inline]
    pub(crate) fn enter(&mut self, run: u32) -> bool {
        let has_room = self.batch.has_room();
        let Some(block) = self.blocks.get_mut(run as usize).filter(|_| has_room) else { return false };
        block.executions += 1;
        if !self.l1i.uses_again(block.lines) || self.notes_all {
            self.batch.block(run);
        }
        true
    }

    /// Accesses data from the instruction with these counters; false, and nothing done, when they are unknown or the
    /// batch is full.
    #[inline]
    pub(crate) fn access(&mut self, counter: u32, address: u64, what: Kind) -> bool {
        let (counter, has_room) = (counter + u32::from(what.is_store), self.batch.has_room());
        let Some(count) = self.accesses.get_mut(counter as usize).filter(|_| has_room) else { return false };
        *count += u64::from(what.counts);
        if !self.l1d.uses_again(self.l1d.lines(address, 1 << what.size_shift)) || self.notes_all {
            self.batch.access(counter, address, what.size_shift);
        }
        true
    }

    /// Takes in a chain whose first access is to `address`, and with `BEGINS` the block that it begins; false, and
    /// nothing done, when it is unknown or the batch full.
    #[inline(always)]
    pub(crate) fn chain<const BEGINS: bool>(&mut self, handle: Handle, address: u64) -> bool {
        let (number, has_room) = (handle.chain(), self.batch.has_room());
        let Some(chain) = self.chains.get_mut(number as usize).filter(|_| has_room) else { return false };
        chain.count += 1;
        let block_line = chain.block_line;
        self.slots[handle.slot() % SLOTS] = address;
        let is_fetched = !BEGINS
            || match handle.more_lines() {
                more @ 0..=1 => self.l1i.uses_again(Lines::starting(block_line, more)),
                _ => self.fetch_long_block(number),
            };
        let lines = handle.lines(&self.l1d, address);
        if handle.is_long() || lines.more() > 1 {
            self.note_long_chain(number, is_fetched);
            return true;
        }
        let is_there = self.l1d.uses_again(lines);
        if !(is_fetched && is_there) || self.notes_all {
            let all = self.notes_all;
            self.note_chain(handle, address, is_fetched && !all, is_there && !all);
        }
        true
    }

    /// Notes a chain around one address. Kept apart, so that the others need fewer registers.
    #[inline(never)]
    fn note_chain(&mut self, handle: Handle, address: u64, is_fetched: bool, is_there: bool) {
        let number = handle.chain();
        match handle.lone_size_shift() {
            _ if is_there => self.batch.chain(number, true, false),
            Some(size_shift) => self.batch.lone(number, !is_fetched, size_shift, address),
            None => {
                self.batch.chain(number, !is_fetched, true);
                self.batch.put(address);
            }
        }
    }

    /// Fetches a block of many lines; false when that may change something.
    #[inline(never)]
    fn fetch_long_block(&mut self, chain: u32) -> bool {
        let begun = self.code.chains[chain as usize].begins;
        begun.is_some_and(|run| self.l1i.uses_again(self.blocks[run as usize].lines))
    }

    /// Takes in the data of a chain that is measured from several addresses, or may not use all lines from its first to
    /// its last.
    #[inline(never)]
    fn note_long_chain(&mut self, number: u32, mut is_fetched: bool) {
        let chain = &self.code.chains[number as usize];
        let slots = self.code.slots_of(chain);
        let mut is_there = true;
        for link in self.code.links_of(chain) {
            let slot = usize::from(slots[usize::from(link.from)]) % SLOTS;
            let address = self.slots[slot].wrapping_add_signed(link.distance.into());
            is_there &= self.l1d.uses_again(self.l1d.lines(address, link.size_bytes()));
        }
        (is_there, is_fetched) = (is_there && !self.notes_all, is_fetched && !self.notes_all);
        if !(is_fetched && is_there) {
            self.batch.chain(number, !is_fetched, !is_there);
            if !is_there {
                slots.iter().for_each(|slot| self.batch.put(self.slots[usize::from(*slot) % SLOTS]));
            }
        }
    }

    /// The model's counts with its own.
    pub(crate) fn complete(mut self, counts: Counts) -> Counts {
        let mut executions: Vec<u64> = self.blocks.iter().map(|block| block.executions).collect();
        for (chain, Chained { count, .. }) in self.code.chains.iter().zip(&self.chains) {
            if let Some(run) = chain.begins {
                executions[run as usize] += count;
            }
            for link in self.code.links_of(chain) {
                self.accesses[link.counter as usize] += count;
            }
        }
        Counts { executions, accesses: self.accesses, ..counts }
    }
}
