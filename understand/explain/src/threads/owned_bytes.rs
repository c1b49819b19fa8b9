//! The bytes of shared objects that each thread uses, on shared lines or not.

use crate::naming::owner::{OwnerKey, Part};
use crate::types::catalog::Ty;
use lineup_model::access::{AccessKind, ProcessId, ThreadId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The largest number of kept bytes of objects. Later ones are ignored.
const MOST_PARTS: usize = 1 << 20;

/// The threads' uses of some bytes.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Uses {
    pub(crate) readers: BTreeSet<ThreadId>,
    pub(crate) writers: BTreeSet<ThreadId>,
    pub(crate) loads: u64,
    pub(crate) stores: u64,
}

/// By offset and size.
pub(crate) type ByBytes = BTreeMap<(u64, u64), Uses>;

impl Uses {
    fn add(&mut self, other: &Uses) {
        self.readers.extend(&other.readers);
        self.writers.extend(&other.writers);
        self.loads += other.loads;
        self.stores += other.stores;
    }
}

/// By process, object, offset and size.
#[derive(Default, Debug)]
pub(crate) struct Owned {
    parts: HashMap<(ProcessId, Ty, u64), ByBytes>,
    count: usize,
}

impl Owned {
    /// A thread accessed a part of an object.
    pub(crate) fn add(&mut self, (process, thread): (ProcessId, ThreadId), part: &Part, kind: AccessKind) {
        let OwnerKey::Object(ty, start) = part.owner else { return };
        let key = (part.offset, part.size_bytes);
        let of_object = self.parts.entry((process, ty, start)).or_default();
        if !of_object.contains_key(&key) {
            if self.count >= MOST_PARTS {
                return;
            }
            self.count += 1;
        }
        let uses = of_object.entry(key).or_default();
        if kind == AccessKind::Store {
            uses.writers.insert(thread);
            uses.stores += 1;
        } else {
            uses.readers.insert(thread);
            uses.loads += 1;
        }
    }

    /// By type, those of objects that several threads use and one writes.
    pub(crate) fn by_type(self) -> BTreeMap<Ty, ByBytes> {
        let mut all: BTreeMap<Ty, ByBytes> = BTreeMap::new();
        for ((_, ty, _), parts) in self.parts {
            let threads: BTreeSet<ThreadId> =
                parts.values().flat_map(|uses| uses.readers.union(&uses.writers)).copied().collect();
            if threads.len() < 2 || parts.values().all(|uses| uses.writers.is_empty()) {
                continue;
            }
            let of_type = all.entry(ty).or_default();
            for (bytes, uses) in parts {
                of_type.entry(bytes).or_default().add(&uses);
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_of_one_thread_each_say_nothing_of_others() {
        let mut owned = Owned::default();
        let mut add = |thread, ty, start, offset| {
            let part =
                Part { owner: OwnerKey::Object(Ty(ty), start), offset, size_bytes: 8, is_in_variable: false };
            owned.add((ProcessId(0), ThreadId(thread)), &part, AccessKind::Store);
        };
        // Two objects of the first type, each of one thread; one object of the second that two threads write.
        for (thread, ty, start, offset) in
            [(0, 1, 0x1000, 0), (1, 1, 0x2000, 8), (0, 2, 0x3000, 0), (1, 2, 0x3000, 8)]
        {
            add(thread, ty, start, offset);
        }
        let by_type = owned.by_type();
        assert_eq!(by_type.len(), 1);
        let writers: Vec<Vec<u32>> = by_type[&Ty(2)]
            .values()
            .map(|uses| uses.writers.iter().map(|thread| thread.0).collect())
            .collect();
        assert_eq!(writers, [[0], [1]]);
    }
}
