//! Slab caches of a kernel, from the addresses of objects.
//!
//! A cache puts objects a stride apart, from the start of a slab on. A slab is one page or a power of two of them, and
//! begins at a multiple of its size. So an object's address shows whether a cache may have it there, and the stride
//! shows all places in a line where objects begin, whichever a run happened to use.

use std::collections::BTreeSet;

/// The layout of a cache's objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SlabCache {
    /// Bytes of a slab.
    pub slab_bytes: u64,
    /// Bytes from the start of an object to that of the next.
    pub stride_bytes: u64,
}

/// Bytes of slabs: up to eight pages.
const SLABS: [u64; 4] = [4096, 8192, 16384, 32768];

/// The sizes of caches for objects of any type.
const GENERAL: [u64; 13] = [8, 16, 32, 64, 96, 128, 192, 256, 512, 1024, 2048, 4096, 8192];

/// Alignments that caches have.
const ALIGNMENTS: [u64; 5] = [8, 16, 32, 64, 128];

/// Bytes that a cache may put behind an object: the pointer to the next free one.
const LINKS: [u64; 2] = [0, 8];

/// Fewer objects show no stride.
const LEAST_OBJECTS: usize = 6;

/// The share of objects, in tenths, that lie as the cache has them: others are variables, or lie in other objects.
const LEAST_TENTHS: usize = 9;

impl SlabCache {
    /// The cache of a type's objects that begin at these addresses. `None` if several fit, or none does.
    pub fn of_objects(size_bytes: u64, starts: &BTreeSet<u64>) -> Option<SlabCache> {
        if starts.len() < LEAST_OBJECTS || size_bytes == 0 {
            return None;
        }
        let allowed = |cache: &SlabCache| starts.iter().filter(|start| cache.allows(**start)).count();
        let all: Vec<(SlabCache, usize)> =
            candidates(size_bytes).into_iter().map(|cache| (cache, allowed(&cache))).collect();
        let most = all.iter().map(|(_, allowed)| *allowed).max()?;
        let fit: Vec<SlabCache> =
            all.into_iter().filter(|(_, allowed)| *allowed == most).map(|(cache, _)| cache).collect();
        let smallest = *fit.iter().min()?;
        let is_clear = fit.iter().all(|cache| cache.stride_bytes == smallest.stride_bytes);
        (is_clear && most * 10 >= starts.len() * LEAST_TENTHS).then_some(smallest)
    }

    /// Whether an object of the cache may begin here.
    pub fn allows(&self, start: u64) -> bool {
        let into = start % self.slab_bytes;
        into.is_multiple_of(self.stride_bytes) && into + self.stride_bytes <= self.slab_bytes
    }

    /// The slab that an address is in, by number.
    pub(crate) fn slab_of(&self, address: u64) -> u64 {
        address / self.slab_bytes
    }

    /// How far into an object, with its stride, an address lies; `None` behind the last object of a slab.
    pub(crate) fn offset_in_object(&self, address: u64) -> Option<u64> {
        let into = address % self.slab_bytes;
        let is_inside = into - into % self.stride_bytes + self.stride_bytes <= self.slab_bytes;
        is_inside.then_some(into % self.stride_bytes)
    }

    /// The places of objects' starts in a line: one for each object of a slab, from 0 to the bytes of a line.
    pub fn phases(&self, line_bytes: u64) -> Vec<u64> {
        let objects = self.slab_bytes / self.stride_bytes.max(1);
        (0..objects).map(|object| object * self.stride_bytes % line_bytes.max(1)).collect()
    }
}

fn candidates(size_bytes: u64) -> BTreeSet<SlabCache> {
    let own = LINKS.iter().flat_map(|link| {
        ALIGNMENTS
            .iter()
            .filter_map(move |align| size_bytes.checked_add(*link)?.checked_next_multiple_of(*align))
    });
    let strides = own.chain(GENERAL.into_iter().find(|size| *size >= size_bytes));
    let caches =
        strides.flat_map(|stride_bytes| SLABS.map(|slab_bytes| SlabCache { slab_bytes, stride_bytes }));
    caches.filter(|cache| cache.stride_bytes <= cache.slab_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Objects of one cache, in slabs far apart, each with the objects of these numbers.
    fn starts(cache: SlabCache, objects: &[u64]) -> BTreeSet<u64> {
        let slabs = [3u64, 17, 90];
        let in_slab = |slab: u64| {
            objects.iter().map(move |object| slab * cache.slab_bytes + object * cache.stride_bytes)
        };
        slabs.into_iter().flat_map(in_slab).collect()
    }

    #[test]
    fn the_stride_of_a_cache_is_found_whatever_its_alignment() {
        for (size_bytes, slab_bytes, stride_bytes) in [
            (776, 16384, 784),
            (776, 16384, 776),
            (64, 4096, 64),
            (200, 4096, 200),
            (200, 4096, 256),
            (88, 4096, 96),
            (232, 8192, 232),
        ] {
            let cache = SlabCache { slab_bytes, stride_bytes };
            let last = slab_bytes / stride_bytes - 1;
            let found = SlabCache::of_objects(size_bytes, &starts(cache, &[1, 2, 3, 7, last]));
            assert_eq!(found.map(|found| found.stride_bytes), Some(stride_bytes), "{size_bytes}");
        }
    }

    #[test]
    fn few_objects_and_first_objects_show_no_stride() {
        let cache = SlabCache { slab_bytes: 16384, stride_bytes: 784 };
        assert_eq!(SlabCache::of_objects(776, &starts(cache, &[5])), None);
        let firsts: BTreeSet<u64> = (0..20).map(|slab| slab * 16384).collect();
        assert_eq!(SlabCache::of_objects(776, &firsts), None);
        // Objects in other objects lie anywhere.
        let anywhere: BTreeSet<u64> = (0..40u64).map(|at| at * at * 1000 + at * 8).collect();
        assert_eq!(SlabCache::of_objects(776, &anywhere), None);
    }

    #[test]
    fn a_variable_among_the_objects_changes_nothing() {
        let cache = SlabCache { slab_bytes: 16384, stride_bytes: 784 };
        let mut all = starts(cache, &[1, 4, 6, 9, 12, 19]);
        all.insert(0x8_1234_5678);
        assert_eq!(SlabCache::of_objects(776, &all), Some(cache));
    }

    #[test]
    fn a_stride_that_is_no_multiple_of_a_line_gives_every_phase() {
        let cache = SlabCache { slab_bytes: 16384, stride_bytes: 784 };
        let phases: BTreeSet<u64> = cache.phases(64).into_iter().collect();
        assert_eq!(phases, BTreeSet::from([0, 16, 32, 48]));
        assert_eq!(cache.phases(64).len(), 20);
        assert_eq!(SlabCache { slab_bytes: 4096, stride_bytes: 64 }.phases(64), vec![0; 64]);
    }
}
