//! The lifetimes of objects: when memory was given out and given back.

use crate::memory::by_address::{ByAddress, Ranged};
use lineup_model::access::{MemoryEvent, MemoryEventKind, ProcessId};
use lineup_model::process::{Origin, Process};
use std::collections::{BTreeMap, HashMap};

/// One lifetime of some memory: between allocation and release, or between two unmappings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Lifetime(u64);

/// A heap block while it was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Block {
    /// Its first byte.
    pub start: u64,
    /// After its last byte.
    pub end: u64,
    /// When it was given out.
    born: u64,
    /// When it was given back.
    died: u64,
}

/// The lifetimes of all memory in the recording. Processes give out the same addresses, each its own memory.
#[derive(Default, Debug)]
pub(crate) struct ObjectLifetimes {
    processes: HashMap<ProcessId, ProcessLifetimes>,
    /// The parent of each forked process, with the time.
    forks: HashMap<ProcessId, (ProcessId, u64)>,
}

/// The memory events of one process.
#[derive(Default, Debug)]
struct ProcessLifetimes {
    /// Equal ones in the order in which they were given back.
    blocks: ByAddress<Life>,
    /// When memory was unmapped; equal ranges in order of time.
    unmapped: ByAddress<u64>,
}

/// When a block was given out and given back.
#[derive(Clone, Copy, Debug)]
struct Life {
    born: u64,
    died: u64,
}

impl ObjectLifetimes {
    /// Builds lifetimes from events in any order.
    pub(crate) fn new(events: &[MemoryEvent]) -> Self {
        let mut ordered: BTreeMap<ProcessId, Vec<&MemoryEvent>> = BTreeMap::new();
        events.iter().for_each(|event| ordered.entry(event.process).or_default().push(event));
        let processes = ordered.into_iter().map(|(process, mut events)| {
            events.sort_by_key(|event| event.at);
            (process, ProcessLifetimes::new(&events))
        });
        ObjectLifetimes { processes: processes.collect(), forks: HashMap::new() }
    }

    /// Learns which processes were forked off by which.
    pub(crate) fn see_processes(&mut self, processes: &[Process]) {
        let forked = processes.iter().filter_map(|process| match process.origin {
            Origin::Forked(from) => Some((process.id, (from, process.began_at))),
            Origin::Started | Origin::Executed(_) => None,
        });
        self.forks.extend(forked);
    }

    /// The lifetime that an address was in at a time in a process, by that process's events, with its heap block when
    /// it is in one. A block given out later counts when no earlier one is alive: the call that began at `at` may have
    /// allocated it.
    pub(crate) fn at(&self, process: ProcessId, address: u64, at: u64) -> (Lifetime, Option<Block>) {
        let lifetime = |number: u32| Lifetime(u64::from(process.0) << 32 | u64::from(number));
        let Some(own) = self.processes.get(&process) else { return (lifetime(u32::MAX), None) };
        match own.block_at(address, at) {
            Some((index, block)) => (lifetime(index), Some(block)),
            None => (lifetime(u32::MAX - own.times_unmapped(address, at)), None),
        }
    }

    /// The source of a process's memory at an address: the process that it was forked off by, with the time. `None`
    /// when it was not forked off, or when it gave that memory back since.
    pub(crate) fn inherited(&self, process: ProcessId, address: u64, at: u64) -> Option<(ProcessId, u64)> {
        let is_gone = self.processes.get(&process).is_some_and(|own| own.ended_before(address, at));
        // A forked process began later than its parent, so there is no cycle.
        self.forks.get(&process).copied().filter(|(from, _)| !is_gone && *from < process)
    }
}

impl ProcessLifetimes {
    fn new(ordered: &[&MemoryEvent]) -> Self {
        let mut open: HashMap<u64, Block> = HashMap::new();
        let (mut blocks, mut unmapped) = (Vec::new(), Vec::new());
        for event in ordered {
            let end = event.address.saturating_add(event.size_bytes.unwrap_or(0));
            match event.kind {
                MemoryEventKind::Allocated => {
                    let block = Block { start: event.address, end, born: event.at, died: u64::MAX };
                    if let Some(old) = open.insert(event.address, block) {
                        blocks.push(Block { died: event.at, ..old });
                    }
                }
                MemoryEventKind::Freed => match open.remove(&event.address) {
                    Some(block) => blocks.push(Block { died: event.at, ..block }),
                    None if end > event.address => {
                        blocks.push(Block { start: event.address, end, born: 0, died: event.at });
                    }
                    None => unmapped.push((event.address, event.address + 1, event.at)),
                },
                MemoryEventKind::Unmapped => unmapped.push((event.address, end, event.at)),
                MemoryEventKind::Private | MemoryEventKind::Shared => {}
            }
        }
        blocks.extend(open.into_values());
        blocks.sort_by_key(|block| block.died);
        let life = |block: Block| {
            let value = Life { born: block.born, died: block.died };
            Ranged { start: block.start, end: block.end, value }
        };
        let unmap = |(start, end, at): (u64, u64, u64)| Ranged { start, end, value: at };
        ProcessLifetimes {
            blocks: ByAddress::new(blocks.into_iter().map(life).collect()),
            unmapped: ByAddress::new(unmapped.into_iter().map(unmap).collect()),
        }
    }

    fn block_at(&self, address: u64, at: u64) -> Option<(u32, Block)> {
        let living = self.blocks.holding(address).filter_map(|(first, group)| {
            let dead = group.partition_point(|block| block.value.died <= at);
            Some((first + dead, group.get(dead)?))
        });
        let (index, block) = living.min_by_key(|(_, block)| block.value.born)?;
        let Ranged { start, end, value: Life { born, died } } = *block;
        Some((u32::try_from(index).ok()?, Block { start, end, born, died }))
    }

    /// True when memory at an address ended a life before a time.
    fn ended_before(&self, address: u64, at: u64) -> bool {
        let mut first_lives = self.blocks.holding(address).filter_map(|(_, group)| group.first());
        first_lives.any(|block| block.value.died <= at) || self.times_unmapped(address, at) > 0
    }

    fn times_unmapped(&self, address: u64, at: u64) -> u32 {
        let before = self.unmapped.holding(address);
        before.map(|(_, group)| group.partition_point(|one| one.value <= at) as u32).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::access::ThreadId;

    const FIRST: ProcessId = ProcessId(0);

    fn event(at: u64, kind: MemoryEventKind, address: u64, size: Option<u64>) -> MemoryEvent {
        MemoryEvent { at, process: ProcessId(0), thread: ThreadId(0), kind, address, size_bytes: size }
    }

    #[test]
    fn memory_given_out_again_has_another_life() {
        use MemoryEventKind::*;
        let lifetimes = ObjectLifetimes::new(&[
            event(1, Allocated, 0x100, Some(32)),
            event(5, Freed, 0x100, None),
            event(6, Allocated, 0x100, Some(16)),
        ]);
        let (first, block) = lifetimes.at(FIRST, 0x110, 3);
        assert_eq!(block.map(|block| block.end), Some(0x120));
        let (second, block) = lifetimes.at(FIRST, 0x108, 7);
        assert_eq!(block.map(|block| block.end), Some(0x110));
        assert_ne!(first, second);
        assert_eq!(lifetimes.at(FIRST, 0x118, 7).1, None);
    }

    #[test]
    fn a_block_allocated_during_a_call_belongs_to_the_call() {
        let lifetimes = ObjectLifetimes::new(&[event(9, MemoryEventKind::Allocated, 0x100, Some(32))]);
        assert!(lifetimes.at(FIRST, 0x104, 8).1.is_some());
    }

    #[test]
    fn unmapping_ends_a_life_outside_the_heap() {
        let lifetimes = ObjectLifetimes::new(&[event(5, MemoryEventKind::Unmapped, 0x1000, Some(0x1000))]);
        assert_ne!(lifetimes.at(FIRST, 0x1008, 4).0, lifetimes.at(FIRST, 0x1008, 6).0);
        assert_eq!(lifetimes.at(FIRST, 0x3008, 4).0, lifetimes.at(FIRST, 0x3008, 6).0);
    }

    #[test]
    fn forked_processes_give_out_the_same_addresses_each_its_own_and_inherit_what_was_there() {
        use MemoryEventKind::*;
        let of = |process: u32, event: MemoryEvent| MemoryEvent { process: ProcessId(process), ..event };
        let mut lifetimes = ObjectLifetimes::new(&[
            event(1, Allocated, 0x900, Some(16)),
            of(1, event(11, Allocated, 0x100, Some(32))),
            of(2, event(12, Allocated, 0x100, Some(64))),
            of(2, event(14, Freed, 0x900, None)),
        ]);
        let forked = |id: u32, began_at: u64| Process {
            id: ProcessId(id),
            origin: Origin::Forked(FIRST),
            system_id: 100 + id,
            began_at,
            program: "/bin/x".into(),
        };
        lifetimes.see_processes(&[forked(1, 9), forked(2, 10)]);
        let (one, two) = (lifetimes.at(ProcessId(1), 0x110, 13), lifetimes.at(ProcessId(2), 0x110, 13));
        assert_ne!(one.0, two.0);
        assert_eq!((one.1.unwrap().end, two.1.unwrap().end), (0x120, 0x140));
        assert_eq!(lifetimes.inherited(ProcessId(1), 0x900, 13), Some((FIRST, 9)));
        assert_eq!(lifetimes.inherited(ProcessId(2), 0x900, 13), Some((FIRST, 10)));
        assert!(lifetimes.at(FIRST, 0x904, 10).1.is_some());
        // It gave the memory back: new contents there are its own.
        assert_eq!(lifetimes.inherited(ProcessId(2), 0x900, 15), None);
        assert_eq!(lifetimes.inherited(FIRST, 0x900, 15), None);
    }
}
