//! The relations of two records.

use crate::facts::{Facts, Member, RecordFact, Shape};
use crate::tree::Name;
use std::cell::RefCell;
use std::collections::HashMap;

/// The reason for which an object of one record can meaningfully be used as another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Relation {
    /// They are the same, one is a base class or a union around the other, or one is not known.
    Harmless,
    /// The other is the record's first member, or the first member of that.
    FirstMember,
    /// The record is the other's first member.
    IsFirstOf,
    /// Both begin with members of equal types: this many of each.
    Common(usize, usize),
    /// Both begin with an object of one record, perhaps inside their first members: all that hold it first.
    SharedStart(Vec<Name>),
    /// Nothing.
    None,
}

/// The relations of pairs of records, each computed once: the same types meet in thousands of places.
#[derive(Debug)]
pub(crate) struct Relations<'f> {
    facts: &'f Facts,
    known: RefCell<HashMap<(Name, Name), Relation, foldhash::fast::RandomState>>,
}

impl<'f> Relations<'f> {
    pub(crate) fn new(facts: &'f Facts) -> Self {
        Relations { facts, known: RefCell::default() }
    }

    /// The relation of `record` to `other`.
    pub(crate) fn of(&self, record: &Name, other: &Name) -> Relation {
        let mut known = self.known.borrow_mut();
        let of = || relation(self.facts, record, other);
        known.entry((record.clone(), other.clone())).or_insert_with(of).clone()
    }

    /// True when an object of one may be used as the other.
    pub(crate) fn may_stand_for(&self, record: &Name, wanted: &Name) -> bool {
        record == wanted || !matches!(self.of(record, wanted), Relation::None | Relation::Common(..))
    }
}

/// The nesting of first members that is looked at.
const DEPTH: u32 = 16;

/// The relation of `record` to `other`.
fn relation(facts: &Facts, record: &Name, other: &Name) -> Relation {
    let (Some(one), Some(two)) = (facts.records.get(record), facts.records.get(other)) else {
        return Relation::Harmless;
    };
    let is_known = |record: &RecordFact| !record.members.is_empty() || !record.bases.is_empty();
    if record == other || !is_known(one) || !is_known(two) {
        return Relation::Harmless;
    }
    if derives(facts, record, other) || derives(facts, other, record) {
        return Relation::Harmless;
    }
    if holds(one, other) || holds(two, record) {
        return Relation::Harmless;
    }
    if begins_with(facts, record, other, 0) {
        return Relation::FirstMember;
    }
    if begins_with(facts, other, record, 0) {
        return Relation::IsFirstOf;
    }
    match common_types(facts, one, two) {
        (0, _) | (_, 0) => shared_start(facts, record, other).map_or(Relation::None, Relation::SharedStart),
        (own, others) => Relation::Common(own, others),
    }
}

/// The records around the object that both begin with, on either side; `None` when they share no such object.
fn shared_start(facts: &Facts, one: &Name, two: &Name) -> Option<Vec<Name>> {
    let (one, two) = (starts(facts, one), starts(facts, two));
    let (at, other_at) = one
        .iter()
        .enumerate()
        .skip(1)
        .find_map(|(at, record)| Some((at, two.iter().skip(1).position(|other| other == record)? + 1)))?;
    Some(one[..at].iter().chain(&two[..other_at]).cloned().collect())
}

/// The record, the record that is its first member, the first member of that, and so on.
fn starts(facts: &Facts, record: &Name) -> Vec<Name> {
    let mut all = vec![record.clone()];
    let is_first = |found: &&RecordFact| !found.is_union && found.bases.is_empty();
    while let Some(found) = all.last().and_then(|last| facts.records.get(last)).filter(is_first) {
        let first = found.members.first().filter(|first| !first.is_array && first.offset_bits == 0);
        match first.and_then(|first| first.record.clone()) {
            Some(inner) if all.len() < DEPTH as usize => all.push(inner),
            _ => break,
        }
    }
    all
}

/// A class that has the other among its base classes.
pub(crate) fn derives(facts: &Facts, record: &Name, base: &Name) -> bool {
    is_base(facts, record, base, 0)
}

/// True when an object of the record may be a member of `outer`, or lie in such a member.
pub(crate) fn lies_in(facts: &Facts, record: &Name, outer: &Name) -> bool {
    is_inside(facts, record, outer, 0)
}

fn is_inside(facts: &Facts, record: &Name, outer: &Name, depth: u32) -> bool {
    let Some(found) = facts.records.get(outer).filter(|_| depth < DEPTH) else { return false };
    let inside = found.members.iter().filter_map(|member| member.record.as_ref()).chain(&found.bases);
    inside.into_iter().any(|inner| inner == record || is_inside(facts, record, inner, depth + 1))
}

fn is_base(facts: &Facts, record: &Name, base: &Name, depth: u32) -> bool {
    let Some(found) = facts.records.get(record).filter(|_| depth < DEPTH) else { return false };
    found.bases.iter().any(|known| known == base || is_base(facts, known, base, depth + 1))
}

/// A union that has the record among its members.
fn holds(union: &RecordFact, record: &Name) -> bool {
    union.is_union && union.members.iter().any(|member| member.record.as_ref() == Some(record))
}

/// The record's first member is such an object, or begins with one.
pub(crate) fn begins_with(facts: &Facts, record: &Name, first: &Name, depth: u32) -> bool {
    let Some(found) = facts.records.get(record).filter(|_| depth < DEPTH) else { return false };
    let members: &[Member] = match found.is_union {
        true => &found.members,
        false => &found.members[..found.members.len().min(1)],
    };
    let inner = |member: &Member| member.record.as_ref().filter(|_| !member.is_open_array).cloned();
    members
        .iter()
        .filter_map(inner)
        .any(|member| member == *first || begins_with(facts, &member, first, depth + 1))
}

/// The number of leading members of each that have equal types; those of anonymous structs and unions count in their
/// place.
fn common_types(facts: &Facts, one: &RecordFact, two: &RecordFact) -> (usize, usize) {
    let pairs = one.members.iter().zip(&two.members);
    let plain = pairs.take_while(|(a, b)| a.ty == b.ty && a.offset_bits == b.offset_bits).count();
    if plain > 0 {
        let is_meant =
            plain == one.members.len() || plain == two.members.len() || common_members(one, two) > 0;
        return if is_meant { (plain, plain) } else { (0, 0) };
    }
    let (own, other) = (leading(facts, one), leading(facts, two));
    let common = own.iter().zip(&other).take_while(|(a, b)| (&a.1, a.2) == (&b.1, b.2)).count();
    common.checked_sub(1).map_or((0, 0), |last| (own[last].0 + 1, other[last].0 + 1))
}

/// The members at the start: which of the record's own each belongs to, its type, and where it begins.
fn leading(facts: &Facts, record: &RecordFact) -> Vec<(usize, Name, u64)> {
    let mut all = Vec::new();
    for (index, member) in record.members.iter().enumerate() {
        let mut inside = Vec::new();
        flatten(facts, member, 0, &mut inside);
        all.extend(inside.into_iter().map(|(ty, bits)| (index, ty, bits)));
        // Only the first alternative of a union was followed: the members after it form no run any more.
        if member.name.is_empty() {
            break;
        }
    }
    all
}

fn flatten(facts: &Facts, member: &Member, depth: u32, all: &mut Vec<(Name, u64)>) {
    let inner = member.record.as_ref().filter(|_| member.name.is_empty() && depth < DEPTH);
    let Some(inner) = inner.and_then(|record| facts.records.get(record)) else {
        return all.push((member.ty.clone(), member.offset_bits));
    };
    let members = if inner.is_union { &inner.members[..inner.members.len().min(1)] } else { &inner.members };
    for below in members {
        let placed = Member { offset_bits: member.offset_bits + below.offset_bits, ..below.clone() };
        flatten(facts, &placed, depth + 1, all);
    }
}

/// Leading members of equal names and types.
pub(crate) fn common_members(one: &RecordFact, two: &RecordFact) -> usize {
    let pairs = one.members.iter().zip(&two.members);
    pairs.take_while(|(a, b)| !a.name.is_empty() && a.name == b.name && a.ty == b.ty).count()
}

/// The shape of the innermost value at the very start of an object of the record.
pub(crate) fn first_leaf(facts: &Facts, record: &Name) -> Option<Shape> {
    innermost_first(facts, record).map(|first| first.shape.clone()).filter(|shape| *shape != Shape::Other)
}

/// The type of the innermost value at the very start of an object of the record.
pub(crate) fn first_type(facts: &Facts, record: &Name) -> Option<Name> {
    innermost_first(facts, record).map(|first| first.ty.clone())
}

/// The first member, or that member's first one, down to one that is no record.
fn innermost_first<'f>(facts: &'f Facts, record: &Name) -> Option<&'f Member> {
    let mut first = facts.records.get(record)?.members.first()?;
    for _ in 0..DEPTH {
        let Shape::Record(inner) = &first.shape else { return Some(first) };
        first = facts.records.get(inner)?.members.first()?;
    }
    None
}

/// True when an object of the record begins with an array of characters.
pub(crate) fn begins_with_text(facts: &Facts, record: &Name) -> bool {
    let mut record = record.clone();
    for _ in 0..DEPTH {
        let first = facts.records.get(&record).and_then(|found| found.members.first());
        match first {
            Some(Member { record: Some(inner), is_array: false, .. }) => record = inner.clone(),
            first => return first.is_some_and(|first| first.is_array && first.is_raw),
        }
    }
    false
}
