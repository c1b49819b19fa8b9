//! The lifetimes of objects: when memory was given out and given back.

use lineup_model::access::{MemoryEvent, MemoryEventKind};
use std::collections::HashMap;

/// One lifetime of some memory: between allocation and release, or between two unmappings.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Lifetime(u64);

/// A heap block while it was allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// Its first byte.
    pub start: u64,
    /// After its last byte.
    pub end: u64,
    /// When it was given out.
    born: u64,
    /// When it was given back.
    died: u64,
}

/// The lifetimes of all memory that the recording tells of.
#[derive(Default, Debug)]
pub struct ObjectLifetimes {
    /// Sorted by start.
    blocks: Vec<Block>,
    /// The greatest end among the blocks up to this one.
    reach: Vec<u64>,
    unmapped: Vec<(u64, u64, u64)>,
}

impl ObjectLifetimes {
    /// Builds lifetimes from events in any order.
    pub fn new(events: &[MemoryEvent]) -> Self {
        let mut ordered: Vec<&MemoryEvent> = events.iter().collect();
        ordered.sort_by_key(|event| event.at);
        let mut open: HashMap<u64, Block> = HashMap::new();
        let mut lifetimes = ObjectLifetimes::default();
        for event in ordered {
            let end = event.address.saturating_add(event.size_bytes.unwrap_or(0));
            match event.kind {
                MemoryEventKind::Allocated => {
                    let block = Block { start: event.address, end, born: event.at, died: u64::MAX };
                    if let Some(old) = open.insert(event.address, block) {
                        lifetimes.blocks.push(Block { died: event.at, ..old });
                    }
                }
                MemoryEventKind::Freed => match open.remove(&event.address) {
                    Some(block) => lifetimes.blocks.push(Block { died: event.at, ..block }),
                    None if end > event.address => {
                        lifetimes.blocks.push(Block { start: event.address, end, born: 0, died: event.at });
                    }
                    None => lifetimes.unmapped.push((event.address, event.address + 1, event.at)),
                },
                MemoryEventKind::Unmapped => lifetimes.unmapped.push((event.address, end, event.at)),
            }
        }
        lifetimes.blocks.extend(open.into_values());
        lifetimes.blocks.sort_by_key(|block| (block.start, block.born));
        let mut furthest = 0;
        lifetimes.reach = lifetimes
            .blocks
            .iter()
            .map(|block| {
                furthest = furthest.max(block.end);
                furthest
            })
            .collect();
        lifetimes
    }

    /// The lifetime that an address was in at a time, with its heap block when it is in one. A block given
    /// out later counts when no earlier one is alive: the call that began at `at` may have allocated it.
    pub fn at(&self, address: u64, at: u64) -> (Lifetime, Option<Block>) {
        let after = self.blocks.partition_point(|block| block.start <= address);
        let mut best: Option<(usize, Block)> = None;
        for index in (0..after).rev() {
            let (Some(block), Some(reach)) = (self.blocks.get(index), self.reach.get(index)) else { break };
            if *reach <= address {
                break;
            }
            let is_earlier = best.is_none_or(|(_, best)| block.born < best.born);
            if address < block.end && at < block.died && is_earlier {
                best = Some((index, *block));
            }
        }
        match best {
            Some((index, block)) => (Lifetime(index as u64), Some(block)),
            None => (Lifetime(u64::MAX - self.times_unmapped(address, at)), None),
        }
    }

    fn times_unmapped(&self, address: u64, at: u64) -> u64 {
        let before = self
            .unmapped
            .iter()
            .filter(|(start, end, when)| *when <= at && (*start..*end).contains(&address));
        before.count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::access::{ProcessId, ThreadId};

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
        let (first, block) = lifetimes.at(0x110, 3);
        assert_eq!(block.map(|block| block.end), Some(0x120));
        let (second, block) = lifetimes.at(0x108, 7);
        assert_eq!(block.map(|block| block.end), Some(0x110));
        assert_ne!(first, second);
        assert_eq!(lifetimes.at(0x118, 7).1, None);
    }

    #[test]
    fn a_block_allocated_during_a_call_belongs_to_the_call() {
        let lifetimes = ObjectLifetimes::new(&[event(9, MemoryEventKind::Allocated, 0x100, Some(32))]);
        assert!(lifetimes.at(0x104, 8).1.is_some());
    }

    #[test]
    fn unmapping_ends_a_life_outside_the_heap() {
        let lifetimes = ObjectLifetimes::new(&[event(5, MemoryEventKind::Unmapped, 0x1000, Some(0x1000))]);
        assert_ne!(lifetimes.at(0x1008, 4).0, lifetimes.at(0x1008, 6).0);
        assert_eq!(lifetimes.at(0x3008, 4).0, lifetimes.at(0x3008, 6).0);
    }
}
