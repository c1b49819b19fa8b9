//! Functions that units declare with different types.

use super::Judge;
use crate::facts::{Reach, Shape, Slot, Where};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

impl Judge<'_> {
    /// One unit makes or uses a pointer that another unit declares as a function's parameter or result: where the types
    /// differ, that is a cast.
    pub(super) fn signatures(&mut self) {
        let facts = self.facts;
        // A function has its own name and those of its labels and aliases.
        let function = |slot: &'_ Slot| facts.linked_as.get(&slot.function).unwrap_or(&slot.function).clone();
        let mut declared: BTreeMap<(Name, Option<usize>), Vec<&Slot>> = BTreeMap::new();
        for slot in &facts.signatures {
            declared.entry((function(slot), slot.parameter)).or_default().push(slot);
        }
        for slots in declared.values() {
            let mut kinds: Vec<&Slot> = Vec::new();
            for slot in slots {
                if !kinds.iter().any(|kind| kind.shape == slot.shape) {
                    kinds.push(slot);
                }
            }
            for (index, one) in kinds.iter().enumerate() {
                for two in &kinds[index + 1..] {
                    if !are_of_two_programs(slots, one, two) {
                        self.declared_as_both(one, two);
                    }
                }
            }
        }
    }

    /// Code that looks up a function by its name declares its parameters and result with its own types.
    pub(super) fn looked_up(&mut self) {
        let facts = self.facts;
        for (name, by, at) in &facts.looked_up {
            let usr = format!("c:@F@{name}");
            for slot in facts.signatures.iter().filter(|slot| *slot.function == *usr) {
                if let Shape::Record(record) = &slot.shape {
                    let reason = format!("{name}(), which takes or gives it, is found by its name: {by}");
                    self.find(record, Verdict::Refuse, UseKind::Assembly, at, reason);
                }
            }
        }
    }

    /// Two units declare one object with records of their own: the targets of its pointers have two types as well.
    pub(super) fn declared_as_record(&mut self, record: &Name, other: &Name, at: &Where) {
        let facts = self.facts;
        let mut seen = BTreeSet::new();
        let mut work = vec![(record.clone(), other.clone())];
        while let Some((one, two)) = work.pop() {
            if one == two || !seen.insert((one.clone(), two.clone())) {
                continue;
            }
            self.used_as_record(&one, Reach::Start, &two, false, at);
            let (Some(own), Some(others)) = (facts.records.get(&one), facts.records.get(&two)) else {
                continue;
            };
            for member in &own.members {
                let other = others.members.iter().find(|other| other.offset_bits == member.offset_bits);
                let Some(other) = other else { continue };
                work.extend(member.points_to.clone().zip(other.points_to.clone()));
                for (slot, record) in &member.called_with {
                    let same = other.called_with.iter().filter(|(other, _)| other == slot);
                    work.extend(same.map(|(_, other)| (record.clone(), other.clone())));
                }
            }
        }
    }

    fn declared_as_both(&mut self, one: &Slot, two: &Slot) {
        match (&one.shape, &two.shape) {
            (Shape::Record(record), Shape::Record(other)) => {
                self.declared_as_record(record, other, &one.at);
            }
            (Shape::Record(record), shape) => {
                self.used_as_value(record, Reach::Start, shape, &two.spelling, false, &two.at);
            }
            (shape, Shape::Record(record)) => {
                self.used_as_value(record, Reach::Start, shape, &one.spelling, false, &one.at);
            }
            _ => {}
        }
    }
}

/// True when two functions share a name, each with a body for one of the types: no program has both.
fn are_of_two_programs(declared: &[&Slot], one: &Slot, two: &Slot) -> bool {
    let is_defined_as = |kind: &Slot| {
        declared.iter().any(|slot| slot.is_definition && slot.shape == kind.shape && !is_header(slot))
    };
    is_defined_as(one) && is_defined_as(two)
}

/// A body in a header is in each unit that reads it.
fn is_header(slot: &Slot) -> bool {
    let extension = slot.at.file.rsplit('.').next().unwrap_or_default();
    extension.starts_with('h')
}
