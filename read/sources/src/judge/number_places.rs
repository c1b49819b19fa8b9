//! Distances inside objects that are written as numbers, in tables, variables and arguments.

use super::Judge;
use super::direct_uses::keep;
use crate::facts::{Distance, Facts, Member, NumberPlace, Origin, PointerPlace, Reach, Source, Value, Where};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// The distances in one place, and in those that it is filled from.
#[derive(Default)]
pub(super) struct Distances<'f> {
    /// The members of which offsets are taken, with their records.
    pub(super) of: BTreeSet<(&'f Name, &'f Name)>,
    /// The records of which sizes are taken.
    pub(super) sizes: BTreeSet<&'f Name>,
    /// The records whose sizes the numbers are, and nothing else.
    pub(super) whole: BTreeSet<&'f Name>,
    /// Sizes of plain numbers.
    widths: BTreeSet<u64>,
    /// Numbers that are added up; true where sizes of records are among them.
    added: BTreeSet<u64>,
    adds_sizes: bool,
    /// Numbers; those that are given together with an object have its record.
    pub(super) written: BTreeMap<(u64, Option<&'f Name>), &'f Where>,
}

impl<'f> Distances<'f> {
    /// The records of which offsets are taken.
    pub(super) fn records(&self) -> BTreeSet<&'f Name> {
        self.of.iter().map(|(record, _)| *record).collect()
    }

    /// The numbers as they are written.
    pub(super) fn numbers(&self) -> BTreeSet<u64> {
        self.written.keys().map(|(number, _)| *number).collect()
    }
}

impl<'f> Judge<'f> {
    /// `{ offsetof(T, a), 8 }`, and `(char *)x + table[i]` where the table has numbers: they are offsets of members.
    pub(super) fn number_places(&mut self) {
        let facts = self.facts;
        let places = Places::of(facts);
        for place in places.distances.keys() {
            let found = places.collected(place, true);
            for record in found.records() {
                for (&(number, with), at) in &found.written {
                    if with.is_none_or(|with| with == record) {
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
                    Origin::Object(record) | Origin::Element(record) if reach == Reach::Start => Some(record),
                    _ => None,
                })
                .collect();
            let found = places.collected(place, true);
            let is_of_others = found.records().iter().any(|of| !records.contains(*of));
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
        self.summed(&places);
        self.number_uses(&places);
    }

    /// `offset += widths[i]` and `(char *)x + offset`, or `p += widths[i]`: members are found by the sizes of those
    /// before them.
    fn summed(&mut self, places: &Places<'f>) {
        let facts = self.facts;
        let moved = facts.moved_by.iter().map(|(value, place, at)| (value, place, at, false));
        let advanced = facts.advanced_by.iter().map(|(value, place, at)| (value, place, at, true));
        for (value, place, at, is_sum) in moved.chain(advanced) {
            let found = places.collected(place, true);
            let mut numbers = found.added.clone();
            if is_sum {
                numbers.extend(found.widths.iter().copied().chain(found.numbers()));
            }
            // The steps over whole objects are as large as these.
            let has_objects = found.adds_sizes || !found.sizes.is_empty() || !found.of.is_empty();
            if numbers.is_empty() || has_objects {
                continue;
            }
            if let Some(record) = self.only_object(value)
                && let Some(own) = self.own(&record).filter(|_| !self.measured.contains(&record))
                && let Some(number) = numbers.range(1..own.size_bytes).next()
            {
                let reason = format!("its members are reached by a sum of numbers, such as {number}");
                self.find(&record, Verdict::Refuse, UseKind::Offset, at, reason);
            }
        }
    }

    /// The record of the objects that a value leads to, where they are of one.
    fn only_object(&self, value: &Value) -> Option<Name> {
        let objects = self.points_to.objects(value);
        let mut records = objects.each.into_iter().filter_map(|(origin, reach, _)| match origin {
            Origin::Object(record) if reach == Reach::Start => Some(record),
            _ => None,
        });
        let first = records.next()?;
        (objects.many.is_empty() && records.all(|other| other == first)).then_some(first)
    }

    /// True for a place with a pointer that is moved on as well.
    pub(super) fn moves_on(&self, value: &Value) -> bool {
        match &value.source {
            Source::Place(place) => self.facts.moved_on.contains(place),
            _ => false,
        }
    }

    /// The member that begins at an offset, or is an array or an object with that offset in it.
    pub(super) fn member_at(&mut self, record: &Name, number: u64, what: &str, at: &Where) {
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

/// The distances in all places.
pub(super) struct Places<'f> {
    distances: BTreeMap<&'f NumberPlace, Vec<(&'f Distance, &'f Where)>>,
    /// The tables that have a place in them.
    tables: BTreeMap<&'f PointerPlace, Vec<&'f NumberPlace>>,
}

impl<'f> Places<'f> {
    pub(super) fn of(facts: &'f Facts) -> Places<'f> {
        let mut places = Places { distances: BTreeMap::new(), tables: BTreeMap::new() };
        for (place, distance, at) in &facts.distances {
            let known = places.distances.entry(place).or_default();
            if known.is_empty() {
                places.tables.entry(&place.place).or_default().push(place);
            }
            known.push((distance, at));
        }
        places
    }

    /// The distances in a place, and in the places that these come from. A member without a table stands for that of
    /// all tables.
    pub(super) fn collected(&self, place: &'f NumberPlace, through_parameters: bool) -> Distances<'f> {
        let mut found = Distances::default();
        let (mut seen, mut work) = (BTreeSet::new(), vec![(place, false)]);
        while let Some((place, is_added)) = work.pop() {
            let is_parameter = matches!(place.place, PointerPlace::Parameter(..));
            if (is_parameter && !through_parameters) || !seen.insert((place, is_added)) {
                continue;
            }
            if place.table.is_none() && matches!(place.place, PointerPlace::Member(..)) {
                let tables = self.tables.get(&place.place).into_iter().flatten();
                work.extend(tables.map(|table| (*table, is_added)));
            }
            for &(distance, at) in self.distances.get(place).into_iter().flatten() {
                match distance {
                    Distance::Of(record, member) => _ = found.of.insert((record, member)),
                    Distance::AddedSize(_) => found.adds_sizes = true,
                    Distance::Size(_) if is_added => found.adds_sizes = true,
                    Distance::Whole(record) => _ = found.whole.insert(record),
                    Distance::Size(record) => _ = found.sizes.insert(record),
                    Distance::Added(number) => _ = found.added.insert(*number),
                    Distance::Width(number) | Distance::Written(number, _) if is_added => {
                        _ = found.added.insert(*number);
                    }
                    Distance::Written(number, with) => {
                        _ = found.written.entry((*number, with.as_ref())).or_insert(at);
                    }
                    Distance::Width(width) => _ = found.widths.insert(*width),
                    Distance::From(other) => work.push((other, is_added)),
                    Distance::AddedFrom(other) => work.push((other, true)),
                }
            }
        }
        found
    }
}
