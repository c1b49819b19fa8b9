//! The flows of pointers from place to place.

use super::levels::at_level;
use super::numbers::Numbers;
use crate::facts::{Origin, PointerPlace, Reach, Source, Value};
use crate::tree::Name;
use std::collections::BTreeSet;

/// A flow from one place to another. A function is given by the number of its result's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlowEdge {
    pub(super) reach: Reach,
    /// Pointers stored less pointers read.
    pub(super) level: i8,
    pub(super) to: u32,
    /// Into a parameter of this function.
    pub(super) into: Option<u32>,
    /// Out of this function.
    pub(super) out_of: Option<u32>,
    /// By a call through a pointer: any function of the type may be meant.
    pub(super) is_any: bool,
    /// From a number to its address: the target is no object, but a number that leads to one.
    pub(super) is_number: bool,
    /// The type has too many functions to know which memory without a type goes to which.
    pub(super) is_crowded: bool,
}

impl FlowEdge {
    pub(super) fn plain(reach: Reach, to: u32) -> FlowEdge {
        FlowEdge {
            reach,
            level: 0,
            to,
            into: None,
            out_of: None,
            is_any: false,
            is_number: false,
            is_crowded: false,
        }
    }
}

/// An origin that arrives at a place first, without an earlier place.
pub(super) struct Start {
    pub(super) place: u32,
    pub(super) origin: Origin,
    pub(super) reach: Reach,
    /// The function whose parameter the place is, when a call gives it.
    pub(super) into: Option<u32>,
}

#[derive(Default)]
pub(super) struct FlowEdges {
    pub(super) places: Numbers<PointerPlace>,
    /// By the number of the place they start from.
    from: Vec<Vec<FlowEdge>>,
    pub(super) starts: Vec<Start>,
    /// Places of numbers whose address is taken.
    numbers: BTreeSet<PointerPlace>,
}

impl FlowEdges {
    /// No flows yet; the address of each of these places of numbers is taken.
    pub(super) fn without_flows(numbers: BTreeSet<PointerPlace>) -> FlowEdges {
        FlowEdges { numbers, ..FlowEdges::default() }
    }

    /// The ways that start from a place.
    pub(super) fn from(&self, place: u32) -> &[FlowEdge] {
        self.from.get(place as usize).map_or(&[], Vec::as_slice)
    }

    /// The places that any way starts from.
    pub(super) fn starting_places(&self) -> impl Iterator<Item = &PointerPlace> {
        let some = self.from.iter().zip(0..).filter(|(ways, _)| !ways.is_empty());
        some.map(|(_, place)| self.places.value(place))
    }

    /// Stands for a function.
    pub(super) fn function(&mut self, name: &Name) -> u32 {
        self.places.number(&PointerPlace::Return(name.clone()))
    }

    pub(super) fn push(&mut self, from: u32, way: FlowEdge) {
        let from = from as usize;
        if self.from.len() <= from {
            self.from.resize_with(from + 1, Vec::new);
        }
        self.from[from].push(way);
    }

    pub(super) fn add(&mut self, value: &Value, to: &PointerPlace, into: Option<u32>) {
        let to = self.places.number(to);
        match &value.source {
            Source::Origin(origin) => {
                for origin in at_level(origin, value.level) {
                    self.starts.push(Start { place: to, origin, reach: value.reach, into });
                }
            }
            Source::Place(from) => {
                let is_number = value.reach == Reach::Address && self.numbers.contains(from);
                let from = self.places.number(from);
                // The address of a place: values stored through it arrive there.
                let reach = match value.reach {
                    Reach::Address => {
                        let level = value.level.saturating_neg();
                        self.push(to, FlowEdge { level, ..FlowEdge::plain(Reach::Start, from) });
                        Reach::Start
                    }
                    reach => reach,
                };
                self.push(
                    from,
                    FlowEdge { into, level: value.level, is_number, ..FlowEdge::plain(reach, to) },
                );
            }
            Source::Function(_) => {}
        }
    }
}
