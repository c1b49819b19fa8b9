//! A binary heap from which any member can be removed.
//!
//! The place of each member is kept by the caller, one number per member, so that removing costs no search
//! and nothing is allocated once the heap has had its greatest size.

/// The place of a member that is in no heap.
pub(super) const NOWHERE: u32 = u32::MAX;

/// A key and the member it belongs to. Equal keys are ordered by member, so that order is total.
pub(super) type Keyed = (u64, u32);

/// The heap: least key first.
#[derive(Default)]
pub(super) struct Heap {
    slots: Vec<Keyed>,
}

impl Heap {
    pub(super) fn first(&self) -> Option<Keyed> {
        self.slots.first().copied()
    }

    /// The member at `place`, counted from the least; beyond the first, places are in heap order.
    pub(super) fn at(&self, place: usize) -> Option<u32> {
        self.slots.get(place).map(|slot| slot.1)
    }

    pub(super) fn insert(&mut self, key: u64, member: u32, places: &mut [u32]) {
        let place = self.slots.len();
        self.slots.push((key, member));
        places[member as usize] = place as u32;
        self.rise(place, places);
    }

    /// Removes `member`, which must be in this heap.
    pub(super) fn remove(&mut self, member: u32, places: &mut [u32]) {
        let place = std::mem::replace(&mut places[member as usize], NOWHERE) as usize;
        self.slots.swap_remove(place);
        if let Some(moved) = self.slots.get(place) {
            places[moved.1 as usize] = place as u32;
            let place = self.rise(place, places);
            self.sink(place, places);
        }
    }

    fn rise(&mut self, mut place: usize, places: &mut [u32]) -> usize {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.slots[above] <= self.slots[place] {
                break;
            }
            self.swap(above, place, places);
            place = above;
        }
        place
    }

    fn sink(&mut self, mut place: usize, places: &mut [u32]) {
        loop {
            let left = 2 * place + 1;
            let Some(left_key) = self.slots.get(left) else { break };
            let least = match self.slots.get(left + 1) {
                Some(right_key) if right_key < left_key => left + 1,
                _ => left,
            };
            if self.slots[place] <= self.slots[least] {
                break;
            }
            self.swap(place, least, places);
            place = least;
        }
    }

    fn swap(&mut self, a: usize, b: usize, places: &mut [u32]) {
        self.slots.swap(a, b);
        places[self.slots[a].1 as usize] = a as u32;
        places[self.slots[b].1 as usize] = b as u32;
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
            let mut places = vec![NOWHERE; 24];
            let mut keys = [0; 24];
            let mut set = std::collections::BTreeSet::new();
            for (member, key) in steps {
                if places[member as usize] == NOWHERE {
                    heap.insert(key, member, &mut places);
                    keys[member as usize] = key;
                    set.insert((key, member));
                } else {
                    heap.remove(member, &mut places);
                    set.remove(&(keys[member as usize], member));
                }
                prop_assert_eq!(heap.first(), set.first().copied());
                let mut members: Vec<_> = (0..).map_while(|place| heap.at(place)).collect();
                members.sort_unstable();
                let mut expected: Vec<_> = set.iter().map(|slot| slot.1).collect();
                expected.sort_unstable();
                prop_assert_eq!(members, expected);
            }
        }
    }
}
