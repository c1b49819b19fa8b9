//! Distances inside objects that are written as numbers, in tables, variables and arguments.

use super::Judge;
use super::direct_uses::keep;
use crate::facts::{Distance, Member, NumberPlace, Origin, PointerPlace, Reach, Where};
use crate::tree::Name;
use crate::uses::UseKind;
use std::collections::{BTreeMap, BTreeSet};

/// The distances in one place, and in those that it is filled from.
#[derive(Default)]
struct Distances<'f> {
    /// The records of which offsets are taken.
    of: BTreeSet<&'f Name>,
    /// Numbers; those that are given together with an object have its record.
    written: BTreeMap<(u64, Option<&'f Name>), &'f Where>,
}

impl<'f> Judge<'f> {
    /// `{ offsetof(T, a), 8 }`, and `(char *)x + table[i]` where the table has numbers: they are offsets of members.
    pub(super) fn number_places(&mut self) {
        let facts = self.facts;
        let mut places: BTreeMap<&'f NumberPlace, Vec<(&'f Distance, &'f Where)>> = BTreeMap::new();
        let mut tables: BTreeMap<&'f PointerPlace, Vec<&'f NumberPlace>> = BTreeMap::new();
        for (place, distance, at) in &facts.distances {
            let known = places.entry(place).or_default();
            if known.is_empty() {
                tables.entry(&place.place).or_default().push(place);
            }
            known.push((distance, at));
        }
        for place in places.keys() {
            let found = collected(place, &places, &tables);
            for record in &found.of {
                for (&(number, with), at) in &found.written {
                    if with.is_none_or(|with| with == *record) {
                        let what = "offsets of other members go where this one is written as";
                        self.member_at(record, number, what, at);
                    }
                }
            }
        }
        for (value, place, _) in &facts.moved_by {
            let objects = self.points_to.objects(value);
            let records: BTreeSet<Name> = objects
                .each
                .into_iter()
                .filter_map(|(origin, reach, _)| match origin {
                    Origin::Object(record) if reach == Reach::Start => Some(record),
                    _ => None,
                })
                .collect();
            let found = collected(place, &places, &tables);
            let is_of_others = found.of.iter().any(|of| !records.contains(*of));
            for record in &records {
                for (&(number, with), at) in &found.written {
                    let is_meant = match with {
                        Some(with) => with == record,
                        None => records.len() == 1 && objects.many.is_empty() && !is_of_others,
                    };
                    if is_meant {
                        self.member_at(record, number, "a pointer to it is moved by", at);
                    }
                }
            }
        }
    }

    /// The member that begins at an offset, or is an array or an object with that offset in it.
    fn member_at(&mut self, record: &Name, number: u64, what: &str, at: &Where) {
        let Some(found) = self.own(record).filter(|found| !found.is_union) else { return };
        let is_there = |member: &&Member| {
            let start = member.offset_bits / 8;
            let is_inside = (start..start + member.size_bytes).contains(&number);
            number == start || (is_inside && (member.is_array || member.record.is_some()))
        };
        if found.members.iter().any(|member| is_there(&member)) {
            let reason = format!("{what} {number}");
            self.find(record, keep(found, number, Some(1)), UseKind::Offset, at, reason);
        }
    }
}

/// The distances in a place, and in the places that these come from. A member without a table stands for that of all
/// tables.
fn collected<'f>(
    place: &'f NumberPlace,
    places: &BTreeMap<&'f NumberPlace, Vec<(&'f Distance, &'f Where)>>,
    tables: &BTreeMap<&'f PointerPlace, Vec<&'f NumberPlace>>,
) -> Distances<'f> {
    let mut found = Distances::default();
    let (mut seen, mut work) = (BTreeSet::new(), vec![place]);
    while let Some(place) = work.pop() {
        if !seen.insert(place) {
            continue;
        }
        if place.table.is_none() && matches!(place.place, PointerPlace::Member(..)) {
            work.extend(tables.get(&place.place).into_iter().flatten());
        }
        for &(distance, at) in places.get(place).into_iter().flatten() {
            match distance {
                Distance::Of(record) => _ = found.of.insert(record),
                Distance::Written(number, with) => {
                    _ = found.written.entry((*number, with.as_ref())).or_insert(at);
                }
                Distance::From(other) => work.push(other),
            }
        }
    }
    found
}
