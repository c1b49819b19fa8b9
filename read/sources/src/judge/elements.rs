//! Elements of arrays that are reached by sizes of their type.

use super::Judge;
use super::number_places::Places;
use crate::facts::{Act, Facts, Origin, Reach, Shape, Step, StepSize, Value, Where};
use crate::relation::lies_in;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

/// Finds the records whose sizes are in the variables, members and arguments by which pointers are moved.
pub(crate) fn settle_steps(facts: &mut Facts) {
    let places = Places::of(facts);
    let (mut steps, mut flows) = (BTreeSet::new(), Vec::new());
    for step in &facts.steps {
        match &step.by {
            StepSize::Of(_) => _ = steps.insert(step.clone()),
            StepSize::In(place) => {
                for record in places.collected(place, true).whole {
                    steps.insert(Step { by: StepSize::Of(record.clone()), ..step.clone() });
                    let element = Value::origin(Origin::Element(record.clone()));
                    flows.extend(step.to.iter().map(|to| (element.clone(), to.clone())));
                }
            }
        }
    }
    facts.steps = steps;
    facts.flows.extend(flows);
}

impl Judge<'_> {
    /// `(char *)all + 8`, moved on by sizes of the objects: the same member of another object.
    pub(super) fn steps(&mut self) {
        let facts = self.facts;
        for step in &facts.steps {
            let StepSize::Of(record) = &step.by else { continue };
            let is_there = |value: &Value| {
                let objects = self.points_to.objects(value).each;
                objects.iter().any(|(origin, reach, _)| {
                    *reach == Reach::Fixed && matches!(origin, Origin::Object(of) if of == record)
                })
            };
            if step.from.iter().any(is_there) {
                let reason = "a member of its objects is reached at a fixed offset";
                self.find(record, Verdict::Refuse, UseKind::Offset, &step.at, reason);
            }
        }
    }

    /// `*(int *)(base + i * sizeof(struct t) + 8)`. From the start of an element on there may be something else.
    pub(super) fn element(&mut self, record: &Name, act: &Act, at: &Where) {
        match act {
            Act::As(Shape::Record(other), _) if record != other && lies_in(self.facts, other, record) => {
                self.used_as_record(record, Reach::Fixed, other, false, at);
            }
            Act::As(shape @ (Shape::Scalar(_) | Shape::Pointer), spelling) => {
                self.used_as_value(record, Reach::Fixed, shape, spelling, false, at);
            }
            Act::Bytes | Act::Part => self.object(record, Reach::Fixed, act, at),
            _ => {}
        }
    }
}
