//! The events to come, in order of time.
//!
//! A ring of slots of about an eighth of a millisecond each holds the events of the next second, unsorted. A slot is
//! sorted when its time comes. A heap holds the events added to it after that, and another heap the few events further
//! off. With a hundred thousand tasks asleep a new event costs an append, where one heap of them all would touch memory
//! at every level.

use super::state::Event;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A slot is 2¹⁷ nanoseconds long.
const SLOT_BITS: u32 = 17;
/// Slots in the ring.
const SLOTS: u64 = 1 << 13;

pub(super) struct Events {
    /// The slot that `due` and `late` serve.
    present: u64,
    /// Events of the present slot, last first.
    due: Vec<Event>,
    /// Events added to the present slot since.
    late: BinaryHeap<Reverse<Event>>,
    ring: Vec<Vec<Event>>,
    /// Memory of past slots, reused for later ones: the hot memory stays as small as the queue.
    spare: Vec<Vec<Event>>,
    /// Events in the ring.
    in_ring: usize,
    far: BinaryHeap<Reverse<Event>>,
}

impl Events {
    pub(super) fn new() -> Self {
        Self {
            present: 0,
            due: Vec::new(),
            late: BinaryHeap::new(),
            ring: (0..SLOTS).map(|_| Vec::new()).collect(),
            spare: Vec::new(),
            in_ring: 0,
            far: BinaryHeap::new(),
        }
    }

    pub(super) fn push(&mut self, event: Event) {
        let slot = event.at_ns >> SLOT_BITS;
        if slot <= self.present {
            self.late.push(Reverse(event));
        } else if slot - self.present < SLOTS {
            let events = &mut self.ring[(slot % SLOTS) as usize];
            if events.capacity() == 0 {
                *events = self.spare.pop().unwrap_or_default();
            }
            events.push(event);
            self.in_ring += 1;
        } else {
            self.far.push(Reverse(event));
        }
    }

    /// When the first event is due.
    pub(super) fn first_ns(&mut self) -> Option<u64> {
        while self.due.is_empty() && self.late.is_empty() {
            if self.in_ring == 0 {
                let first = self.far.peek()?.0.at_ns;
                self.present = first >> SLOT_BITS;
            } else {
                self.present += 1;
            }
            self.reach_present();
        }
        if self.late_is_first() {
            self.late.peek().map(|event| event.0.at_ns)
        } else {
            self.due.last().map(|event| event.at_ns)
        }
    }

    /// Events queued for the present slot before it began.
    pub(super) fn due(&self) -> &[Event] {
        &self.due
    }

    /// The slot that the next event is in.
    pub(super) fn present(&self) -> u64 {
        self.present
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.first_ns()?;
        if self.late_is_first() { self.late.pop().map(|event| event.0) } else { self.due.pop() }
    }

    fn late_is_first(&self) -> bool {
        match (self.late.peek(), self.due.last()) {
            (Some(Reverse(late)), Some(due)) => late < due,
            (late, _) => late.is_some(),
        }
    }

    /// Makes the events of the present slot due, and takes in those that are no longer far.
    fn reach_present(&mut self) {
        let slot = std::mem::take(&mut self.ring[(self.present % SLOTS) as usize]);
        self.in_ring -= slot.len();
        let past = std::mem::replace(&mut self.due, slot);
        if past.capacity() > 0 {
            self.spare.push(past);
        }
        self.due.sort_unstable_by(|a, b| b.cmp(a));
        while let Some(Reverse(event)) = self.far.peek().copied() {
            if (event.at_ns >> SLOT_BITS).saturating_sub(self.present) >= SLOTS {
                break;
            }
            self.far.pop();
            self.push(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::state::SimEvent;
    use super::*;
    use proptest::prelude::*;

    /// Spans from a nanosecond to a quarter of an hour.
    fn spans() -> impl Strategy<Value = u64> {
        (0_u32..40, any::<u64>()).prop_map(|(bits, value)| value >> 24 >> (39 - bits))
    }

    proptest! {
        #[test]
        fn events_come_in_order_of_time_then_of_making(
            steps in proptest::collection::vec((spans(), 0_usize..3), 0..300),
        ) {
            let mut events = Events::new();
            let mut plain = BinaryHeap::new();
            let mut now_ns = 0;
            for (order, (span_ns, pops)) in steps.into_iter().enumerate() {
                let what = SimEvent::Wake { task: 0 };
                let event = Event { at_ns: now_ns + span_ns, order: order as u64, what };
                events.push(event);
                plain.push(Reverse(event));
                for _ in 0..pops {
                    let expected = plain.pop().map(|event| event.0);
                    prop_assert_eq!(events.first_ns(), expected.map(|event| event.at_ns));
                    let popped = events.pop();
                    prop_assert!(popped == expected);
                    now_ns = popped.map_or(now_ns, |event| event.at_ns);
                }
            }
        }
    }
}
