//! The places of objects: learned from every access that names one, used for accesses that do not.

use super::lifetimes::{Block, Lifetime};
use super::list_heads::{Caches, take_heads};
use super::list_links::{LinkAt, TouchedParts};
use super::live_times::{LiveTimes, Moment};
use super::sightings::{Sighting, Starts, Strength, TypeSighting};
use crate::code::abstract_value::Origin;
use crate::types::catalog::{Catalog, Ty};
use crate::types::congruence::gcd;
use foldhash::HashMap;
use lineup_model::access::AccessKind;
use std::collections::BTreeMap;
use std::ops::Range;

/// An object at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Object {
    /// Its first byte.
    pub start: u64,
    /// After its last byte.
    pub end: u64,
    /// Its type.
    pub ty: Ty,
    /// The reliability of its sighting.
    pub strength: Strength,
    count: u64,
    /// True when another type lived here at another time, so that only the times count at which it was there.
    is_windowed: bool,
    /// True when another type was seen here at the same time.
    is_contested: bool,
    /// True when its bytes were written as something else while it was not there: the program hands out the memory.
    is_reused: bool,
}

/// Moments at which an object was written as something else that are kept.
const MAX_OVERWRITTEN: usize = 32;

/// The heap block that an address is in, if any, and its lifetime.
pub(crate) type Home = (Lifetime, Option<Block>);

/// The objects of a recording. Filled by the first pass, settled, then asked by the second.
#[derive(Default, Debug)]
pub(crate) struct Objects {
    seen: HashMap<Lifetime, Starts>,
    blocks: HashMap<Lifetime, Block>,
    settled: HashMap<Lifetime, Settled>,
    buffers: HashMap<Lifetime, (Ty, Origin)>,
}

#[derive(Default, Debug)]
struct Settled {
    layers: Vec<BTreeMap<u64, Object>>,
    /// Heads of lists that code reads as entries.
    heads: HashMap<(u64, Ty), LinkAt>,
    /// When objects were there that were accessed through their type.
    live: HashMap<(u64, Ty), LiveTimes>,
    /// Elements that fill a block: type, first byte, size.
    elements: Option<(Ty, u64, u64)>,
}

impl Objects {
    /// Notes that an object of type `ty` started at `start`.
    pub(crate) fn see(&mut self, home: Home, start: u64, ty: Ty, sighting: Sighting, at: Moment) {
        if let Some(block) = home.1 {
            self.blocks.insert(home.0, block);
        }
        let here = self.seen.entry(home.0).or_default().entry(start).or_default();
        let known = here.iter().position(|seen| seen.ty == ty).unwrap_or_else(|| {
            here.push(TypeSighting {
                ty,
                strength: Strength::PointedTo,
                touched: TouchedParts::default(),
                count: 0,
                live: LiveTimes::default(),
                overwritten: Vec::new(),
            });
            here.len() - 1
        });
        let Some(seen) = here.get_mut(known) else { return };
        seen.count += 1;
        match sighting {
            Sighting::Pointer => {}
            Sighting::Argument => seen.strength = seen.strength.max(Strength::Given),
            Sighting::Access { kind, offset, size_bytes, link } => {
                seen.strength = Strength::Accessed;
                seen.touched.add(link);
                match kind {
                    AccessKind::Load => seen.live.read(offset, size_bytes, at),
                    AccessKind::Store => seen.live.write(offset, size_bytes, at),
                }
            }
        }
    }

    /// Notes that a pointer to a scalar wrote bytes. If `is_member` finds such a scalar among a type's members at an
    /// offset, the write does not contradict an object that is known there.
    pub(crate) fn see_scalar(
        &mut self,
        home: Home,
        bytes: Range<u64>,
        at: Moment,
        mut is_member: impl FnMut(Ty, u64) -> bool,
    ) {
        let Some(starts) = self.seen.get_mut(&home.0) else { return };
        let Some((start, all)) = starts.range_mut(..=bytes.start).next_back() else { return };
        for seen in all.iter_mut().filter(|seen| seen.overwritten.len() < MAX_OVERWRITTEN) {
            let is_new = seen.overwritten.last().is_none_or(|last| last.call != at.call);
            if is_new && !is_member(seen.ty, bytes.start - start) {
                seen.overwritten.push(at);
            }
        }
    }

    /// Notes that a heap block is an array of scalars.
    pub(crate) fn see_buffer(&mut self, home: Home, element: Ty, origin: Origin) {
        if home.1.is_some() {
            self.buffers.entry(home.0).or_insert((element, origin));
        }
    }

    /// The array of scalars that a heap block is.
    pub(crate) fn buffer(&self, lifetime: Lifetime) -> Option<(Ty, Origin)> {
        self.buffers.get(&lifetime).copied()
    }

    /// Decides between the types seen in the same bytes. A kernel's objects lie in slab caches.
    pub(crate) fn settle(&mut self, catalog: &mut Catalog<'_>, is_kernel: bool) {
        for (lifetime, mut starts) in std::mem::take(&mut self.seen) {
            let block = self.blocks.get(&lifetime).copied();
            let caches = if is_kernel { Caches::of(catalog, &starts) } else { Caches::default() };
            let heads = take_heads(catalog, &mut starts, &caches);
            for (start, _, seen) in caches.outer_objects(catalog, &starts) {
                starts.entry(start).or_default().push(seen);
            }
            let settled = Settled { heads, ..settle_lifetime(catalog, block, starts) };
            self.settled.insert(lifetime, settled);
        }
    }

    /// The link that a supposed object of a type is, if it is a list's head that code reads as an entry.
    pub(crate) fn head(&self, home: Home, start: u64, ty: Ty) -> Option<LinkAt> {
        self.settled.get(&home.0)?.heads.get(&(start, ty)).copied()
    }

    /// The outermost object that holds an address at a moment.
    pub(crate) fn at(&self, home: Home, address: u64, at: Moment) -> Option<Object> {
        let settled = self.settled.get(&home.0)?;
        let covering = settled.layers.iter().filter_map(|layer| {
            let (_, object) = layer.range(..=address).next_back()?;
            (address < object.end).then_some(*object)
        });
        let mut any = false;
        for object in covering {
            any = true;
            let is_there =
                || settled.live.get(&(object.start, object.ty)).is_some_and(|live| live.contains(at));
            if !object.is_contested && (!object.is_windowed || is_there()) {
                return Some(object);
            }
        }
        if any {
            return None;
        }
        let (ty, first, size) = settled.elements?;
        let block = home.1?;
        let start = address - (address.checked_sub(first)? % size);
        let end = start.checked_add(size).filter(|end| *end <= block.end)?;
        Some(Object {
            start,
            end,
            ty,
            strength: Strength::PointedTo,
            count: 0,
            is_windowed: false,
            is_contested: false,
            is_reused: false,
        })
    }

    /// True when the object was there at a moment: its bytes were read through its type later, before they were written
    /// through it. For an object that was not accessed through its type this is not known.
    pub(crate) fn is_live(&self, home: Home, object: &Object, at: Moment) -> bool {
        let live = self.settled.get(&home.0).and_then(|settled| settled.live.get(&(object.start, object.ty)));
        live.is_some_and(|live| live.contains(at))
    }

    /// The beginning of the next object behind an address.
    pub(crate) fn next_start(&self, home: Home, address: u64) -> Option<u64> {
        let after = address.checked_add(1)?;
        let layers = &self.settled.get(&home.0)?.layers;
        layers.iter().filter_map(|layer| layer.range(after..).next()).map(|(start, _)| *start).min()
    }

    /// True when the object was there at a moment, or its memory is not known to change hands.
    pub(crate) fn may_be_live(&self, home: Home, object: &Object, at: Moment) -> bool {
        !object.is_reused || self.is_live(home, object, at)
    }
}

fn settle_lifetime(catalog: &mut Catalog<'_>, block: Option<Block>, starts: Starts) -> Settled {
    let mut candidates: Vec<Object> = Vec::new();
    let mut settled = Settled::default();
    for (start, all) in starts {
        for mut seen in all {
            seen.live.settle();
            candidates.extend(candidate(catalog, block, start, &seen));
            if seen.strength == Strength::Accessed {
                settled.live.insert((start, seen.ty), seen.live);
            }
        }
    }
    candidates.sort_by_key(|object| {
        (
            std::cmp::Reverse(object.strength),
            std::cmp::Reverse(object.end - object.start),
            std::cmp::Reverse(object.count),
            object.start,
            object.ty,
        )
    });
    let Settled { layers, live, .. } = &mut settled;
    for object in candidates {
        place(catalog, layers, live, object);
    }
    settled.elements = block.and_then(|block| elements(catalog, block, &settled.layers));
    settled
}

fn candidate(catalog: &Catalog<'_>, block: Option<Block>, start: u64, seen: &TypeSighting) -> Option<Object> {
    let size = catalog.size_bytes(seen.ty).filter(|size| *size > 0)?;
    let mut end = start.checked_add(size)?;
    if let Some(block) = block {
        if end > block.end && seen.strength != Strength::Accessed {
            return None;
        }
        if start == block.start && catalog.has_open_end(seen.ty) {
            end = end.max(block.end);
        }
    }
    Some(Object {
        start,
        end,
        ty: seen.ty,
        strength: seen.strength,
        count: seen.count,
        is_windowed: false,
        is_contested: false,
        is_reused: seen.overwritten.iter().any(|at| !seen.live.contains(*at)),
    })
}

/// Puts an object into the first layer where it fits, or drops it.
fn place(
    catalog: &mut Catalog<'_>,
    layers: &mut Vec<BTreeMap<u64, Object>>,
    live: &mut HashMap<(u64, Ty), LiveTimes>,
    mut object: Object,
) {
    for layer in layers.iter_mut() {
        let overlapping: Vec<Object> = layer
            .range(..object.end)
            .rev()
            .take_while(|(_, other)| other.end > object.start)
            .map(|(_, other)| *other)
            .collect();
        if let Some(outer) = overlapping.iter().find(|other| is_part(catalog, other, &object)) {
            absorb(live, outer, &object);
            return;
        }
        if overlapping.iter().all(|other| is_part(catalog, &object, other)) {
            for other in &overlapping {
                layer.remove(&other.start);
                absorb(live, &object, other);
            }
            layer.insert(object.start, object);
            return;
        }
        let times = |object: &Object| live.get(&(object.start, object.ty));
        let apart = |other: &Object| match (times(&object), times(other)) {
            (Some(own), Some(other)) => !own.overlaps(other),
            _ => false,
        };
        if !overlapping.iter().all(apart) {
            for other in overlapping.iter().filter(|other| contests(&object, other)) {
                if let Some(other) = layer.get_mut(&other.start) {
                    other.is_contested = true;
                }
            }
            return;
        }
        for other in &overlapping {
            if let Some(other) = layer.get_mut(&other.start) {
                other.is_windowed = true;
            }
        }
        object.is_windowed = true;
    }
    layers.push(BTreeMap::from([(object.start, object)]));
}

/// An object is there while a part of it is.
fn absorb(live: &mut HashMap<(u64, Ty), LiveTimes>, outer: &Object, inner: &Object) {
    let Some(part) = live.get(&(inner.start, inner.ty)).cloned() else { return };
    if let Some(whole) = live.get_mut(&(outer.start, outer.ty)) {
        whole.absorb(&part);
    }
}

/// One stray observation does not put many into doubt.
fn contests(newcomer: &Object, settled: &Object) -> bool {
    newcomer.strength == settled.strength && newcomer.count.saturating_mul(4) > settled.count
}

/// True when `inner` is `outer` itself seen differently, or lies in it as a member.
fn is_part(catalog: &mut Catalog<'_>, outer: &Object, inner: &Object) -> bool {
    let Some(distance) = inner.start.checked_sub(outer.start).filter(|_| inner.end <= outer.end) else {
        return false;
    };
    catalog.holds(outer.ty, distance, inner.ty) || (distance == 0 && catalog.begins_with(outer.ty, inner.ty))
}

/// Elements of one type that fill a block.
fn elements(catalog: &Catalog<'_>, block: Block, layers: &[BTreeMap<u64, Object>]) -> Option<(Ty, u64, u64)> {
    let [layer] = layers else { return None };
    let first = layer.values().next()?;
    let size = catalog.size_bytes(first.ty).filter(|size| *size > 0)?;
    let is_alike = |object: &Object| object.ty == first.ty && !object.is_contested;
    // Neighbours touch: objects that lie further apart are no array.
    let distance = layer.values().map(|object| object.start - first.start).fold(0, gcd);
    let room = block.end - block.start;
    let fills = first.start == block.start && room.is_multiple_of(size) && room > size;
    let is_array = if distance == 0 { fills } else { distance == size };
    (is_array && layer.values().all(is_alike))
        .then(|| (first.ty, block.start + (first.start - block.start) % size, size))
}
