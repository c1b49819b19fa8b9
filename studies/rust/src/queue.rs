//! Events in order of time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens, and to whom.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A packet arrives at a node.
    Arrive { packet: u32, node: u16 },
    /// A node wakes up and forgets what it counted.
    Rest { node: u16 },
}

/// A queue of events. Events of the same time come in the order in which they were put.
#[derive(Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<(u64, u64, Event)>>,
    put: u64,
}

impl Queue {
    /// Puts an event at a time.
    pub fn put(&mut self, at: u64, event: Event) {
        self.put += 1;
        self.heap.push(Reverse((at, self.put, event)));
    }

    /// Takes the next event and its time. Region.
    #[inline(never)]
    pub fn take(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|Reverse((at, _, event))| (at, event))
    }
}
