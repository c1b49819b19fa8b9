//! The translated code, which gives the callbacks' numbers their meaning. Numbers are given in the order of making. So
//! a thread knows the code up to some number, and takes in the rest when it meets a higher one.

use crate::chains::{self, Chains};
use crate::lock::lock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

/// The part of a block that lies on one line. The parts of a block come in its order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) pc: u64,
    pub(crate) size_bytes: u32,
    pub(crate) instructions: u32,
    /// Index of its accesses' first counter: two for each instruction, its loads and its stores.
    pub(crate) counters: u32,
    pub(crate) ends_block: bool,
}

impl Run {
    pub(crate) fn counters_end(&self) -> u32 {
        self.counters + 2 * self.instructions
    }
}

/// Accesses that one callback takes in; see [`super::chains`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Chain {
    first_link: u32,
    links: u32,
    first_slot: u32,
    /// The number of addresses that its links are measured from.
    pub(crate) slots: u32,
    /// The first run of the block, when the chain's callback is the block's too.
    pub(crate) begins: Option<u32>,
}

/// One of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Link {
    pub(crate) counter: u32,
    /// From one of the chain's addresses, by its number.
    pub(crate) from: u8,
    pub(crate) distance: i32,
    pub(crate) size_shift: u8,
}

impl Link {
    pub(crate) fn size_bytes(&self) -> u64 {
        1 << self.size_shift
    }

    /// Address of the access, given the chain's addresses.
    #[inline]
    pub(crate) fn address(&self, addresses: &[u64]) -> u64 {
        addresses[usize::from(self.from)].wrapping_add_signed(self.distance.into())
    }
}

/// Runs and chains of some blocks.
#[derive(Clone, Default)]
pub(crate) struct Code {
    pub(crate) runs: Vec<Run>,
    pub(crate) chains: Vec<Chain>,
    pub(crate) links: Vec<Link>,
    slots: Vec<u8>,
    /// Lengths of all instructions, of two counters each. Only the code that all threads share has them.
    lengths: Vec<u8>,
}

/// The first numbers of a block's.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) run: u32,
    /// First counter of its first instruction; the next one's is two further.
    pub(crate) counters: u32,
    pub(crate) chain: u32,
}

impl Code {
    /// Adds a block, given the addresses and sizes of its instructions, cut into runs on one line.
    pub(crate) fn add(&mut self, line_bytes: u64, insns: &[(u64, u64)], chains: &Chains) -> Numbers {
        let Code { runs, .. } = self;
        let counters = runs.last().map_or(0, Run::counters_end);
        let block = Numbers { run: runs.len() as u32, counters, chain: self.chains.len() as u32 };
        self.lengths.extend(insns.iter().map(|(_, size)| *size as u8));
        for (counters, (pc, size)) in (counters..).step_by(2).zip(insns) {
            let line = pc / line_bytes;
            match runs.last_mut().filter(|run| !run.ends_block && run.pc / line_bytes == line) {
                Some(run) => {
                    run.size_bytes += *size as u32;
                    run.instructions += 1;
                }
                None => {
                    let size_bytes = *size as u32;
                    runs.push(Run { pc: *pc, size_bytes, instructions: 1, counters, ends_block: false });
                }
            }
        }
        runs.last_mut().into_iter().for_each(|run| run.ends_block = true);
        for (number, chain) in chains.all.iter().enumerate() {
            let begins = (number == 0 && chains.begin_block).then_some(block.run);
            self.add_chain(chain, begins, counters);
        }
        block
    }

    fn add_chain(&mut self, chain: &chains::Chain, begins: Option<u32>, counters: u32) {
        let (first_link, first_slot) = (self.links.len() as u32, self.slots.len());
        for link in &chain.links {
            let slots = &self.slots[first_slot..];
            let from = slots.iter().position(|slot| usize::from(*slot) == link.slot).unwrap_or_else(|| {
                self.slots.push(link.slot as u8);
                self.slots.len() - 1 - first_slot
            });
            self.links.push(Link {
                counter: counters + 2 * link.insn as u32 + u32::from(link.is_store),
                from: from as u8,
                distance: link.distance,
                size_shift: link.size_shift,
            });
        }
        let (links, slots) = (chain.links.len() as u32, (self.slots.len() - first_slot) as u32);
        self.chains.push(Chain { first_link, links, first_slot: first_slot as u32, slots, begins });
    }

    /// The addresses of all instructions, by half the number of their counters.
    pub(crate) fn instructions(&self) -> Vec<u64> {
        let mut all = Vec::with_capacity(self.lengths.len());
        for run in &self.runs {
            let mut pc = run.pc;
            let first = run.counters as usize / 2;
            for length in self.lengths.iter().skip(first).take(run.instructions as usize) {
                all.push(pc);
                pc += u64::from(*length);
            }
        }
        all
    }

    /// The accesses of a chain.
    pub(crate) fn links_of(&self, chain: &Chain) -> &[Link] {
        let first = chain.first_link as usize;
        &self.links[first..first + chain.links as usize]
    }

    /// The slots of the addresses that a chain's links are measured from; the first link's is the first.
    pub(crate) fn slots_of(&self, chain: &Chain) -> &[u8] {
        let first = chain.first_slot as usize;
        &self.slots[first..first + chain.slots as usize]
    }

    /// The code after another one, which is this one's beginning.
    fn after(&self, known: &Code) -> Code {
        Code {
            runs: self.runs[known.runs.len()..].to_vec(),
            chains: self.chains[known.chains.len()..].to_vec(),
            links: self.links[known.links.len()..].to_vec(),
            slots: self.slots[known.slots.len()..].to_vec(),
            lengths: Vec::new(),
        }
    }

    /// Adds the code that follows.
    pub(crate) fn append(&mut self, more: &Code) {
        self.runs.extend(&more.runs);
        self.chains.extend(&more.chains);
        self.links.extend(&more.links);
        self.slots.extend(&more.slots);
    }

    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.chains.clear();
        self.links.clear();
        self.slots.clear();
    }
}

/// All code, for all threads.
#[derive(Default)]
pub(crate) struct SharedCode {
    all: Mutex<Code>,
    /// The number of runs, to be seen without the lock.
    runs: AtomicUsize,
}

impl SharedCode {
    /// Adds a block.
    pub(crate) fn add(&self, line_bytes: u64, insns: &[(u64, u64)], chains: &Chains) -> Numbers {
        let mut all = self.whole();
        let block = all.add(line_bytes, insns, chains);
        self.runs.store(all.runs.len(), Ordering::Release);
        block
    }

    /// The code that a thread does not know yet.
    pub(crate) fn after(&self, known: &Code) -> Code {
        match self.runs.load(Ordering::Acquire) > known.runs.len() {
            true => self.whole().after(known),
            false => Code::default(),
        }
    }

    /// All of it. No code is added before the guard is dropped.
    pub(crate) fn whole(&self) -> MutexGuard<'_, Code> {
        lock(&self.all)
    }
}
