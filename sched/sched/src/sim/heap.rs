//! A binary heap from which any member can be removed.
//!
//! Keys lie next to their members, so that keeping order touches this heap's memory only and never that of
//! the tasks it orders. Nothing is allocated once the heap has had its greatest size.

/// A key and the member it belongs to. Equal keys are ordered by member, so that order is total.
pub(super) type Keyed = (u64, u32);

/// The heap: least key first.
#[derive(Default)]
pub(super) struct Heap {
    /// The least key, so that asking for it does not leave the line that the heap itself is on.
    first_key: u64,
    slots: Vec<Keyed>,
}

impl Heap {
    pub(super) fn first(&self) -> Option<Keyed> {
        self.slots.first().copied()
    }

    pub(super) fn first_key(&self) -> Option<u64> {
        (!self.slots.is_empty()).then_some(self.first_key)
    }

    /// The member at `place`, counted from the least; beyond the first, places are in heap order.
    pub(super) fn at(&self, place: usize) -> Option<u32> {
        self.slots.get(place).map(|slot| slot.1)
    }

    pub(super) fn insert(&mut self, key: u64, member: u32) {
        let place = self.slots.len();
        self.slots.push((key, member));
        self.rise(place);
        self.first_key = self.slots[0].0;
    }

    /// Removes `member`, which must be in this heap. The first is found at once, another by a search, as only
    /// balancing takes others.
    pub(super) fn remove(&mut self, member: u32) {
        let Some(place) = self.slots.iter().position(|slot| slot.1 == member) else { return };
        self.slots.swap_remove(place);
        if place < self.slots.len() {
            let place = self.rise(place);
            self.sink(place);
            self.first_key = self.slots[0].0;
        }
    }

    fn rise(&mut self, mut place: usize) -> usize {
        let slot = self.slots[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if self.slots[above] <= slot {
                break;
            }
            self.slots[place] = self.slots[above];
            place = above;
        }
        self.slots[place] = slot;
        place
    }

    fn sink(&mut self, mut place: usize) {
        let slot = self.slots[place];
        loop {
            let left = 2 * place + 1;
            let Some(left_key) = self.slots.get(left) else { break };
            let least = match self.slots.get(left + 1) {
                Some(right_key) if right_key < left_key => left + 1,
                _ => left,
            };
            if slot <= self.slots[least] {
                break;
            }
            self.slots[place] = self.slots[least];
            place = least;
        }
        self.slots[place] = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_an_ordered_set(steps in proptest::collection::vec((0_u32..24, 0_u64..16), 0..200)) {
            let mut heap = Heap::default();
            let mut keys = [None; 24];
            let mut set = std::collections::BTreeSet::new();
            for (member, key) in steps {
                if let Some(key) = keys[member as usize].take() {
                    heap.remove(member);
                    set.remove(&(key, member));
                } else {
                    heap.insert(key, member);
                    keys[member as usize] = Some(key);
                    set.insert((key, member));
                }
                prop_assert_eq!(heap.first(), set.first().copied());
                prop_assert_eq!(heap.first_key(), set.first().map(|slot| slot.0));
                let mut members: Vec<_> = (0..).map_while(|place| heap.at(place)).collect();
                members.sort_unstable();
                let mut expected: Vec<_> = set.iter().map(|slot| slot.1).collect();
                expected.sort_unstable();
                prop_assert_eq!(members, expected);
            }
        }
    }
}
