//! Which objects lay where: learned from every access that names one, used for those that do not.

use crate::abstract_value::Origin;
use crate::catalog::{Catalog, Ty};
use crate::lifetimes::{Block, Lifetime};
use std::collections::{BTreeMap, HashMap};

/// How an object was seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Strength {
    /// A pointer of its type held its address.
    PointedTo,
    /// It was accessed through a pointer of its type.
    Accessed,
}

/// An object at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object {
    /// Its first byte.
    pub start: u64,
    /// After its last byte.
    pub end: u64,
    /// Its type.
    pub ty: Ty,
    /// How it was seen.
    pub strength: Strength,
    count: u64,
    first_at: u64,
    last_at: u64,
    /// True when another type lived here at another time, so that only the observed times count.
    is_windowed: bool,
    /// True when another type was seen here at the same time.
    is_contested: bool,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    ty: Ty,
    strength: Strength,
    count: u64,
    first_at: u64,
    last_at: u64,
}

/// What heap block, if any, an address is in, and in which lifetime.
pub type Home = (Lifetime, Option<Block>);

/// The objects of a recording. Filled by the first pass, settled, then asked by the second.
#[derive(Default, Debug)]
pub struct Objects {
    seen: HashMap<Lifetime, BTreeMap<u64, Vec<Seen>>>,
    blocks: HashMap<Lifetime, Block>,
    settled: HashMap<Lifetime, Settled>,
    buffers: HashMap<Lifetime, (Ty, Origin)>,
}

#[derive(Default, Debug)]
struct Settled {
    layers: Vec<BTreeMap<u64, Object>>,
    /// Elements that fill a block: type, first byte, size.
    elements: Option<(Ty, u64, u64)>,
}

impl Objects {
    /// Notes that an object of type `ty` started at `start`.
    pub fn see(&mut self, home: Home, start: u64, ty: Ty, strength: Strength, at: u64) {
        if let Some(block) = home.1 {
            self.blocks.insert(home.0, block);
        }
        let here = self.seen.entry(home.0).or_default().entry(start).or_default();
        match here.iter_mut().find(|seen| seen.ty == ty) {
            Some(seen) => {
                seen.strength = seen.strength.max(strength);
                seen.count += 1;
                seen.first_at = seen.first_at.min(at);
                seen.last_at = seen.last_at.max(at);
            }
            None => here.push(Seen { ty, strength, count: 1, first_at: at, last_at: at }),
        }
    }

    /// Notes that a heap block is an array of scalars.
    pub fn see_buffer(&mut self, home: Home, element: Ty, origin: Origin) {
        if home.1.is_some() {
            self.buffers.entry(home.0).or_insert((element, origin));
        }
    }

    /// The array of scalars that a heap block is.
    pub fn buffer(&self, lifetime: Lifetime) -> Option<(Ty, Origin)> {
        self.buffers.get(&lifetime).copied()
    }

    /// Decides between the types seen in the same bytes.
    pub fn settle(&mut self, catalog: &mut Catalog<'_>) {
        for (lifetime, starts) in std::mem::take(&mut self.seen) {
            let block = self.blocks.get(&lifetime).copied();
            let settled = settle_lifetime(catalog, block, &starts);
            self.settled.insert(lifetime, settled);
        }
    }

    /// The outermost object that holds an address at a time.
    pub fn at(&self, home: Home, address: u64, at: u64) -> Option<Object> {
        let settled = self.settled.get(&home.0)?;
        let covering = settled.layers.iter().filter_map(|layer| {
            let (_, object) = layer.range(..=address).next_back()?;
            (address < object.end).then_some(*object)
        });
        let mut any = false;
        for object in covering {
            any = true;
            let in_time = (object.first_at..=object.last_at).contains(&at);
            if !object.is_contested && (!object.is_windowed || in_time) {
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
            first_at: at,
            last_at: at,
            is_windowed: false,
            is_contested: false,
        })
    }
}

fn settle_lifetime(
    catalog: &mut Catalog<'_>,
    block: Option<Block>,
    starts: &BTreeMap<u64, Vec<Seen>>,
) -> Settled {
    let mut candidates: Vec<Object> = Vec::new();
    for (start, all) in starts {
        candidates.extend(all.iter().filter_map(|seen| candidate(catalog, block, *start, seen)));
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
    let mut settled = Settled::default();
    for object in candidates {
        place(catalog, &mut settled.layers, object);
    }
    settled.elements = block.and_then(|block| elements(catalog, block, &settled.layers));
    settled
}

fn candidate(catalog: &Catalog<'_>, block: Option<Block>, start: u64, seen: &Seen) -> Option<Object> {
    let size = catalog.size_bytes(seen.ty).filter(|size| *size > 0)?;
    let mut end = start.checked_add(size)?;
    if let Some(block) = block {
        if end > block.end && seen.strength == Strength::PointedTo {
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
        first_at: seen.first_at,
        last_at: seen.last_at,
        is_windowed: false,
        is_contested: false,
    })
}

/// Puts an object into the first layer where it fits, or drops it.
fn place(catalog: &mut Catalog<'_>, layers: &mut Vec<BTreeMap<u64, Object>>, mut object: Object) {
    for layer in layers.iter_mut() {
        let overlapping: Vec<Object> = layer
            .range(..object.end)
            .rev()
            .take_while(|(_, other)| other.end > object.start)
            .map(|(_, other)| *other)
            .collect();
        if overlapping.iter().any(|other| is_part(catalog, other, &object)) {
            return;
        }
        if overlapping.iter().all(|other| is_part(catalog, &object, other)) {
            for other in &overlapping {
                layer.remove(&other.start);
            }
            layer.insert(object.start, object);
            return;
        }
        let apart = |other: &Object| other.last_at < object.first_at || object.last_at < other.first_at;
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
    let size = catalog.size_bytes(first.ty)?;
    let alike = layer.values().all(|object| {
        object.ty == first.ty && (object.start - first.start).is_multiple_of(size) && !object.is_contested
    });
    let room = block.end - block.start;
    let fills = first.start == block.start && room.is_multiple_of(size) && room > size;
    (alike && (layer.len() > 1 || fills))
        .then(|| (first.ty, block.start + (first.start - block.start) % size, size))
}
