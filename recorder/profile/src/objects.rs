//! The small objects in use, and the places that they would have in pools without headers.

use foldhash::HashMap;
use lineup_recording::HeapObject;

/// Pools have objects of at most this size.
pub(crate) const MOST_BYTES: u64 = 1024;
/// Sizes of objects in pools are multiples of this: `malloc` promises such addresses.
const STEP_BYTES: u64 = 16;
const CLASSES: usize = (MOST_BYTES / STEP_BYTES) as usize + 1;

/// Objects that are kept at a time at most, in memory of 36 bytes each.
const MOST_OBJECTS: usize = 1 << 24;

/// The places of a pool: the one given back last is the first that is taken.
#[derive(Default)]
struct Slots {
    next: u32,
    free: Vec<u32>,
}

impl Slots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.next = self.next.saturating_add(1);
            self.next - 1
        })
    }
}

/// The objects, by number.
pub(crate) struct Objects {
    all: Vec<HeapObject>,
    unused: Vec<u32>,
    by_size: Vec<Slots>,
    /// Pools by the place of the code that allocates and the class of size.
    pools: HashMap<(u32, u8), u32>,
    by_site: Vec<Slots>,
    /// Objects without a number, since too many have one.
    pub(crate) left_out: u64,
}

impl Default for Objects {
    fn default() -> Self {
        Objects {
            all: Vec::new(),
            unused: Vec::new(),
            by_size: (0..CLASSES).map(|_| Slots::default()).collect(),
            pools: HashMap::default(),
            by_site: Vec::new(),
            left_out: 0,
        }
    }
}

/// The class of an object's size.
fn class(size_bytes: u32) -> usize {
    (u64::from(size_bytes).div_ceil(STEP_BYTES) as usize).min(CLASSES - 1)
}

impl Objects {
    /// Takes an object in; its places in pools are found here. `place` is that of the code that allocates it. Returns
    /// one more than its number, or 0 for one that is not kept.
    pub(crate) fn add(&mut self, object: HeapObject, place: u32) -> u32 {
        if self.all.len() - self.unused.len() >= MOST_OBJECTS {
            self.left_out += 1;
            return 0;
        }
        let class = class(object.size_bytes);
        let next = self.by_site.len() as u32;
        let site_pool = *self.pools.entry((place, class as u8)).or_insert(next);
        if site_pool == next {
            self.by_site.push(Slots::default());
        }
        let object = HeapObject {
            slot_by_size: self.by_size[class].take(),
            site_pool,
            slot_by_site: self.by_site[site_pool as usize].take(),
            ..object
        };
        match self.unused.pop() {
            Some(number) => {
                self.all[number as usize] = object;
                number + 1
            }
            None => {
                self.all.push(object);
                self.all.len() as u32
            }
        }
    }

    /// An object was given back; it is named by what [`Self::add`] returned.
    pub(crate) fn remove(&mut self, named: u32) {
        let Some(number) = named.checked_sub(1) else { return };
        let object = self.all[number as usize];
        self.by_size[class(object.size_bytes)].free.push(object.slot_by_size);
        self.by_site[object.site_pool as usize].free.push(object.slot_by_site);
        self.unused.push(number);
    }

    /// An object, named by what [`Self::add`] returned.
    pub(crate) fn get(&self, named: u32) -> Option<HeapObject> {
        self.all.get((named as usize).checked_sub(1)?).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_object_takes_the_place_that_was_given_back_last_in_both_kinds_of_pools() {
        let mut objects = Objects::default();
        let of = |size_bytes| HeapObject { size_bytes, ..HeapObject::default() };
        // Two places of the code, one size; a second size at the first place.
        let all: Vec<u32> =
            [(24, 1), (32, 2), (17, 1), (48, 1)].map(|(size, place)| objects.add(of(size), place)).to_vec();
        let places = |objects: &Objects, named: u32| {
            let own = objects.get(named).expect("an object");
            (own.slot_by_size, own.site_pool, own.slot_by_site)
        };
        let seen: Vec<_> = all.iter().map(|named| places(&objects, *named)).collect();
        assert_eq!(seen, [(0, 0, 0), (1, 1, 0), (2, 0, 1), (0, 2, 0)]);
        objects.remove(all[0]);
        objects.remove(all[1]);
        let again = objects.add(of(32), 1);
        assert_eq!(places(&objects, again), (1, 0, 0));
        assert_eq!(objects.get(0), None);
    }
}
