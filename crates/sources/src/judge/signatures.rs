//! Functions that units declare with different types.

use super::Judge;
use crate::facts::{Reach, Shape, Slot};

impl Judge<'_> {
    /// What one unit says that a function gives or takes another unit makes or uses: where the types differ, that is a
    /// cast.
    pub(super) fn signatures(&mut self) {
        let facts = self.facts;
        let slots: Vec<&Slot> = facts.signatures.iter().collect();
        let same = |a: &&Slot, b: &&Slot| (&a.function, a.parameter) == (&b.function, b.parameter);
        for declared in slots.chunk_by(|a, b| same(a, b)) {
            let mut kinds: Vec<&Slot> = Vec::new();
            for slot in declared {
                if !kinds.iter().any(|kind| kind.shape == slot.shape) {
                    kinds.push(slot);
                }
            }
            for (index, one) in kinds.iter().enumerate() {
                for two in &kinds[index + 1..] {
                    if !are_of_two_programs(declared, one, two) {
                        self.declared_as_both(one, two);
                    }
                }
            }
        }
    }

    fn declared_as_both(&mut self, one: &Slot, two: &Slot) {
        match (&one.shape, &two.shape) {
            (Shape::Record(record), Shape::Record(other)) => {
                self.used_as_record(record, Reach::Start, other, false, &one.at);
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

/// Whether two functions share a name, each with a body for one of the types: no program has both.
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
