//! Heads of lists that code reads as entries.
//!
//! `list_for_each_entry_safe` takes the object around the next link before it looks whether that is the list's head.
//! So it reads the head through a pointer to an entry that is not there. Such a pointer leads only to the link. The
//! entry would lie across the object that has the head, or where its slab cache has no objects.

use super::list_links::{LinkAt, TouchedParts};
use super::sightings::{Starts, Strength, TypeSighting};
use super::slabs::SlabCache;
use crate::types::catalog::{Catalog, Ty};
use foldhash::{HashMap, HashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Takes the objects out that are heads read as entries; each with the link that it is.
pub(crate) fn take_heads(
    catalog: &mut Catalog<'_>,
    starts: &mut Starts,
    caches: &Caches,
) -> HashMap<(u64, Ty), LinkAt> {
    let mut heads = HashMap::default();
    let largest = starts.values().flatten().filter_map(|seen| catalog.size_bytes(seen.ty)).max().unwrap_or(0);
    for (start, all) in starts.iter() {
        for seen in all {
            let Some(link) = seen.touched.only_link() else { continue };
            let is_misplaced = caches.forbid(seen.ty, *start)
                && !is_part_of_seen(catalog, starts, largest, (*start, seen.ty));
            if is_misplaced || has_other_owner(catalog, starts, largest, (*start, seen.ty), link) {
                heads.insert((*start, seen.ty), link);
            }
        }
    }
    for (start, all) in starts.iter_mut() {
        all.retain(|seen| !heads.contains_key(&(*start, seen.ty)));
    }
    heads
}

/// Objects, seen through several members, that begin before an address and may reach it.
fn around(starts: &Starts, largest: u64, address: u64) -> impl Iterator<Item = (u64, Ty)> {
    let from = address.saturating_sub(largest);
    let is_object =
        |seen: &&TypeSighting| seen.strength == Strength::Accessed && seen.touched == TouchedParts::Members;
    let all = starts.range(from..=address).rev();
    all.flat_map(move |(start, all)| all.iter().filter(is_object).map(|seen| (*start, seen.ty)))
}

fn is_part_of_seen(catalog: &mut Catalog<'_>, starts: &Starts, largest: u64, (start, ty): (u64, Ty)) -> bool {
    around(starts, largest, start)
        .any(|(outer, other)| other != ty && catalog.holds(other, start - outer, ty))
}

/// Whether an object has such a link at the head's place, and neither it nor the supposed entry is part of the other.
fn has_other_owner(
    catalog: &mut Catalog<'_>,
    starts: &Starts,
    largest: u64,
    (start, ty): (u64, Ty),
    link: LinkAt,
) -> bool {
    let Some(head) = start.checked_add(link.offset) else { return false };
    around(starts, largest, head).any(|(outer, other)| {
        let is_part = |catalog: &mut Catalog<'_>| match start.checked_sub(outer) {
            Some(into) => catalog.holds(other, into, ty),
            None => catalog.holds(ty, outer - start, other),
        };
        (outer, other) != (start, ty) && catalog.holds(other, head - outer, link.ty) && !is_part(catalog)
    })
}

/// The slab caches of types, from the objects seen.
#[derive(Default, Debug)]
pub(crate) struct Caches {
    of_types: BTreeMap<Ty, CacheWithSlabs>,
}

#[derive(Debug)]
struct CacheWithSlabs {
    cache: SlabCache,
    /// Slabs that hold objects of the type.
    slabs: HashSet<u64>,
}

impl Caches {
    /// The caches that objects seen through several members show.
    pub(crate) fn of(catalog: &Catalog<'_>, starts: &Starts) -> Self {
        let mut by_type: BTreeMap<Ty, BTreeSet<u64>> = BTreeMap::new();
        for (start, all) in starts {
            for seen in all.iter().filter(|seen| seen.touched == TouchedParts::Members) {
                by_type.entry(seen.ty).or_default().insert(*start);
            }
        }
        let with_cache = |(ty, starts): (Ty, BTreeSet<u64>)| {
            let cache = SlabCache::of_objects(catalog.size_bytes(ty)?, &starts)?;
            let slabs =
                starts.iter().filter(|start| cache.allows(**start)).map(|start| cache.slab_of(*start));
            Some((ty, CacheWithSlabs { cache, slabs: slabs.collect() }))
        };
        Caches { of_types: by_type.into_iter().filter_map(with_cache).collect() }
    }

    /// Whether a type's cache has no object there.
    fn forbid(&self, ty: Ty, start: u64) -> bool {
        self.of_types.get(&ty).is_some_and(|with| !with.cache.allows(start))
    }

    /// The objects around others that no access showed: a slab holds objects of one type only, and the place in it
    /// shows which of them an object is part of. Each with the sighting of its part.
    pub(crate) fn outer_objects(
        &self,
        catalog: &mut Catalog<'_>,
        starts: &Starts,
    ) -> Vec<(u64, Ty, TypeSighting)> {
        let mut found: BTreeMap<(u64, Ty), TypeSighting> = BTreeMap::new();
        for (start, all) in starts {
            for seen in all {
                for (outer, with) in self.of_types.iter().filter(|(outer, _)| **outer != seen.ty) {
                    let into = with
                        .cache
                        .offset_in_object(*start)
                        .filter(|_| with.slabs.contains(&with.cache.slab_of(*start)));
                    let Some(into) = into.filter(|into| catalog.holds(*outer, *into, seen.ty)) else {
                        continue;
                    };
                    let begin = start - into;
                    let is_seen =
                        starts.get(&begin).is_some_and(|all| all.iter().any(|seen| seen.ty == *outer));
                    if !is_seen {
                        found.entry((begin, *outer)).or_insert_with(|| seen.of_type(*outer));
                    }
                }
            }
        }
        found.into_iter().map(|((start, ty), seen)| (start, ty, seen)).collect()
    }
}
