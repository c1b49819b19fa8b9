//! `container_of`: objects that are reached through a pointer to one of their members.
//!
//! Lists, trees and hooks of intrusive containers lie in the middle of objects. Code holds a pointer to the member and
//! accesses data at fixed distances around it; debug info often omits the pointer to the object. Then the distances
//! identify the type: it has such a member, and at each of these distances from it a scalar of just the size that is
//! accessed. Types that the function has pointers to come first. If several types fit, or none, the accesses get no
//! name.

use crate::code::abstract_value::Pointer;
use crate::code::access_sites::{AccessTarget, Site};
use crate::types::catalog::{Catalog, Ty};
use crate::types::congruence::Congruence;
use foldhash::HashMap;
use lineup_model::types::{TypeId, TypeKind, Types};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Members in members that are looked into.
const MOST_NESTED: usize = 8;

/// Scalars that have to fit where the function has no pointer to the type.
const LEAST_FITTING: usize = 2;

/// A type that has a member of another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Holder {
    /// The type.
    pub(crate) ty: Ty,
    /// The member's offset in it.
    pub(crate) offset: u64,
}

/// The types of an image that have certain members: worked out when an image is first needed.
#[derive(Default, Debug)]
pub(crate) struct Holders {
    of_images: HashMap<usize, HashMap<Ty, Rc<[Holder]>>>,
}

impl Holders {
    /// The types of an image that have a member of a type.
    fn of(&mut self, catalog: &mut Catalog<'_>, image: usize, member: Ty) -> Rc<[Holder]> {
        let all = self.of_images.entry(image).or_insert_with(|| holders(catalog, image));
        all.get(&member).cloned().unwrap_or_else(|| Rc::from([]))
    }
}

fn holders(catalog: &mut Catalog<'_>, image: usize) -> HashMap<Ty, Rc<[Holder]>> {
    let Some(types) = catalog.types_of(image) else { return HashMap::default() };
    let mut all: HashMap<Ty, BTreeSet<Holder>> = HashMap::default();
    for (id, ty) in types.iter() {
        if !matches!(ty.kind, TypeKind::Aggregate(_)) || ty.size_bytes.is_none() {
            continue;
        }
        let Some(own) = catalog.intern(image, id) else { continue };
        for (member, offset) in members(types, id) {
            if let Some(member) = catalog.intern(image, member).filter(|member| *member != own) {
                all.entry(member).or_default().insert(Holder { ty: own, offset });
            }
        }
    }
    all.into_iter().map(|(member, holders)| (member, holders.into_iter().collect())).collect()
}

/// The aggregates that an aggregate has as members, and those in them, with their offsets.
fn members(types: &Types, id: TypeId) -> Vec<(TypeId, u64)> {
    let mut all = Vec::new();
    let mut open = vec![(id, 0, MOST_NESTED)];
    while let Some((id, base, depth)) = open.pop() {
        let Some((_, aggregate)) = types.aggregate(id) else { continue };
        for member in aggregate.members.iter().filter(|member| member.bit_size.is_none()) {
            let (Some(offset), Some((inner, _))) = (member.offset_bytes(), types.aggregate(member.ty)) else {
                continue;
            };
            let at = base + offset;
            all.push((inner, at));
            if depth > 0 {
                open.push((inner, at, depth - 1));
            }
        }
    }
    all
}

/// The innermost aggregate that a type has as a member at an offset.
pub(crate) fn member_at(catalog: &mut Catalog<'_>, ty: Ty, offset: u64) -> Option<Ty> {
    let (types, described) = catalog.table(ty)?;
    let found = members(types, described.id).into_iter().filter(|(_, at)| *at == offset);
    let innermost = found.min_by_key(|(id, _)| types.size_bytes(*id))?;
    catalog.intern(described.image, innermost.0)
}

/// An access outside the object that the code has a pointer to.
#[derive(Clone, Copy, Debug)]
struct Outside {
    pc: u64,
    /// The operand's number in its instruction.
    operand: usize,
    /// The pointer, and the distance of the access from the start of its target.
    pointer: Pointer,
    distance: i64,
    size_bytes: u64,
}

/// Names the accesses around members, in the sites of one function. `blocks` gives the block of the function that each
/// instruction is in, `pointees` the types that the function's variables point to.
pub(crate) fn resolve(
    (catalog, holders): (&mut Catalog<'_>, &mut Holders),
    image: usize,
    (pointees, blocks): (&BTreeSet<Ty>, &dyn Fn(u64) -> usize),
    sites: &mut HashMap<u64, Vec<Site>>,
) {
    let mut by_member: BTreeMap<Ty, Vec<Outside>> = BTreeMap::new();
    for (pc, all) in sites.iter() {
        for (operand, site) in all.iter().enumerate() {
            if let Some((member, distance)) = outside(catalog, site) {
                let AccessTarget::Object(pointer) = site.place else { continue };
                let size_bytes = u64::from(site.size_bytes);
                let found = Outside { pc: *pc, operand, pointer, distance, size_bytes };
                by_member.entry(member).or_default().push(found);
            }
        }
    }
    for (member, all) in by_member {
        let candidates = holders.of(catalog, image, member);
        for (group, holder) in by_holder(catalog, (&candidates, pointees), blocks, all) {
            for one in group {
                let at = holder.offset as i64 + one.distance;
                let whole = Pointer::new(holder.ty, Congruence::exactly(at), one.pointer.origin);
                if let Some(site) = sites.get_mut(&one.pc).and_then(|all| all.get_mut(one.operand)) {
                    site.place = AccessTarget::Object(whole);
                }
            }
        }
    }
}

/// The type of the object that a site's pointer points to, and how far from its start the site is, where that is
/// outside.
fn outside(catalog: &mut Catalog<'_>, site: &Site) -> Option<(Ty, i64)> {
    let AccessTarget::Object(pointer) = site.place else { return None };
    let distance = pointer.offset.exact()?;
    let size_bytes = u64::from(site.size_bytes);
    let is_outside = size_bytes > 0
        && catalog.is_aggregate(pointer.target)
        && catalog.spot(pointer.target, pointer.offset, size_bytes).is_none();
    is_outside.then_some((pointer.target, distance))
}

/// Accesses around one member with the type whose member it is: all of the function together where one type fits them,
/// else those of each block.
fn by_holder(
    catalog: &mut Catalog<'_>,
    (candidates, pointees): (&[Holder], &BTreeSet<Ty>),
    blocks: &dyn Fn(u64) -> usize,
    all: Vec<Outside>,
) -> Vec<(Vec<Outside>, Holder)> {
    if let Some(holder) = holder_of(catalog, candidates, pointees, &all) {
        return vec![(all, holder)];
    }
    let mut by_block: BTreeMap<usize, Vec<Outside>> = BTreeMap::new();
    for one in all {
        by_block.entry(blocks(one.pc)).or_default().push(one);
    }
    let with_holder = |group: Vec<Outside>| {
        let holder = holder_of(catalog, candidates, pointees, &group)?;
        Some((group, holder))
    };
    by_block.into_values().filter_map(with_holder).collect()
}

/// The one type that fits all of these accesses. If a type and its member's type both fit at that place, it is the
/// inner one.
fn holder_of(
    catalog: &mut Catalog<'_>,
    candidates: &[Holder],
    pointees: &BTreeSet<Ty>,
    all: &[Outside],
) -> Option<Holder> {
    let fitting: Vec<(Holder, usize)> =
        candidates.iter().filter_map(|holder| Some((*holder, fit(catalog, *holder, all)?))).collect();
    let known: Vec<Holder> = fitting
        .iter()
        .filter(|(holder, _)| pointees.contains(&holder.ty))
        .map(|(holder, _)| *holder)
        .collect();
    let certain = fitting.iter().filter(|(_, scalars)| *scalars >= LEAST_FITTING).map(|(holder, _)| *holder);
    let found = if known.is_empty() { certain.collect() } else { known };
    let smallest = *found.iter().min_by_key(|holder| (holder.offset, holder.ty))?;
    let is_same = |other: &Holder| {
        let apart = other.offset.checked_sub(smallest.offset);
        *other == smallest || apart.is_some_and(|apart| catalog.holds(other.ty, apart, smallest.ty))
    };
    found.iter().all(is_same).then_some(smallest)
}

/// The number of different scalars of a type that these accesses hit, when all of them fit it and at least one is a
/// scalar.
fn fit(catalog: &mut Catalog<'_>, holder: Holder, all: &[Outside]) -> Option<usize> {
    let mut scalars: BTreeSet<u64> = BTreeSet::new();
    for one in all {
        let at = holder.offset.checked_add_signed(one.distance)?;
        let field = catalog.field(holder.ty, at, one.size_bytes).filter(|field| field.members > 0)?;
        let leaf_bytes = field.leaf.and_then(|leaf| catalog.table(holder.ty)?.0.size_bytes(leaf));
        let is_scalar = field.members == 1 && (field.is_bit_field || leaf_bytes == Some(one.size_bytes));
        if is_scalar {
            scalars.insert(at);
        }
    }
    (!scalars.is_empty()).then_some(scalars.len())
}
