//! Data behind objects of a type: programs put headers in front of objects of all kinds, and reach the object behind
//! one through a pointer to the header.
//!
//! The code then gives only the header's type and the distance behind its end. Known memory gives the rest: if all
//! known objects behind a type's can be used as one type, the unknown ones have that type, too.

use crate::memory::live_times::Moment;
use crate::memory::objects::Object;
use crate::naming::name::{Evidence, Name, Named};
use crate::types::catalog::{Catalog, Ty};
use crate::types::congruence::Congruence;
use foldhash::HashMap;
use std::collections::BTreeMap;

/// Ends of objects of one type that are kept.
const MOST_ENDS: usize = 1 << 12;
/// Objects of a type behind which something is known, at least.
const LEAST_KNOWN: usize = 8;
/// The rate of exceptions: of this number of objects, one may be something else.
const ONE_IN: usize = 20;

/// The types of data behind objects.
#[derive(Default)]
pub(super) struct Behind {
    /// The ends of objects behind which something is accessed, by their type, with the time.
    ends: HashMap<Ty, BTreeMap<u64, Moment>>,
    /// The type of the data there.
    types: HashMap<Ty, Ty>,
}

/// Bytes from the end of an object to the accessed data behind it.
fn beyond(catalog: &Catalog<'_>, ty: Ty, distance: Congruence) -> Option<u64> {
    let distance = u64::try_from(distance.exact()?).ok()?;
    distance.checked_sub(catalog.size_bytes(ty).filter(|size| *size > 0)?)
}

impl Behind {
    /// First pass: something was accessed that is no part of an object of this type.
    pub(super) fn see(
        &mut self,
        catalog: &Catalog<'_>,
        ty: Ty,
        distance: Congruence,
        address: u64,
        at: Moment,
    ) {
        let Some(into) = beyond(catalog, ty, distance) else { return };
        let ends = self.ends.entry(ty).or_default();
        if ends.len() < MOST_ENDS
            && let Some(end) = address.checked_sub(into)
        {
            ends.entry(end).or_insert(at);
        }
    }

    /// Between the passes, when objects are settled. `object_at` finds the object at an address.
    pub(super) fn settle(
        &mut self,
        catalog: &Catalog<'_>,
        object_at: impl Fn(u64, Moment) -> Option<Object>,
    ) {
        for (ty, ends) in std::mem::take(&mut self.ends) {
            let known = ends.iter().filter_map(|(end, at)| Some((*end, object_at(*end, *at)?)));
            let mut counts: BTreeMap<Ty, usize> = BTreeMap::new();
            let mut all = 0;
            for (end, object) in known {
                all += 1;
                *counts.entry(object.ty).or_default() += usize::from(object.start == end);
            }
            if let Some(found) = common(catalog, &counts, all) {
                self.types.insert(ty, found);
            }
        }
    }

    /// Second pass: the name of the accessed data behind an object of this type, at an address if it is known.
    pub(super) fn name(
        &self,
        catalog: &Catalog<'_>,
        (owner, distance): (Ty, Congruence),
        address: Option<u64>,
        size_bytes: u64,
    ) -> Option<Named> {
        let (offset, ty) = (beyond(catalog, owner, distance)?, *self.types.get(&owner)?);
        let is_inside = offset.checked_add(size_bytes).is_some_and(|end| Some(end) <= catalog.size_bytes(ty));
        let base = address.and_then(|address| address.checked_sub(offset));
        let name = Name::Member { ty, base, offset, is_on_stack: false };
        is_inside.then(|| Named::new(name, Evidence::ObjectMap))
    }
}

/// The type that nearly all can be used as; of several the smallest.
fn common(catalog: &Catalog<'_>, counts: &BTreeMap<Ty, usize>, all: usize) -> Option<Ty> {
    let fits = |view: &&Ty| {
        let own = counts.iter().filter(|(ty, _)| *ty == *view || catalog.begins_with(**ty, **view));
        let own: usize = own.map(|(_, count)| count).sum();
        all >= LEAST_KNOWN && own * ONE_IN >= all * (ONE_IN - 1)
    };
    counts.keys().filter(fits).min_by_key(|ty| (catalog.size_bytes(**ty), **ty)).copied()
}
