//! The flows of pointers from place to place.

use super::through::{Passing, Through, through_functions};
use super::{Numbers, at_level};
use crate::collect::{FIRST, further, variadic};
use crate::facts::{Call, Facts, Origin, PointerPlace, Reach, Source, Value};
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet};

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
    fn plain(reach: Reach, to: u32) -> FlowEdge {
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

/// With more functions of one type, called through pointers, memory without a type may go to any.
const CROWD: usize = 6;

/// Parameters of one function that are followed when it is called through a pointer.
const MOST_PARAMETERS: usize = 16;

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
    /// All flows in the facts.
    pub(super) fn of(facts: &Facts) -> FlowEdges {
        let mut ways = FlowEdges { numbers: facts.numbers.clone(), ..FlowEdges::default() };
        for (value, to) in &facts.flows {
            ways.add(value, to, None);
        }
        for (usr, record) in &facts.records {
            if let Some(first) = record.members.first() {
                let to = PointerPlace::Member(usr.clone(), FIRST.into());
                ways.add(&Value::place(PointerPlace::Member(usr.clone(), first.name.clone())), &to, None);
            }
        }
        let through = through_functions(&ways, facts);
        for call in &facts.calls {
            ways.add_call(call, &through);
        }
        let mut functions: BTreeMap<&Name, usize> = BTreeMap::new();
        for (signature, _) in &facts.taken {
            *functions.entry(signature).or_default() += 1;
        }
        for (signature, function) in &facts.taken {
            ways.add_taken(signature, function, functions[signature] > CROWD);
        }
        ways
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
    fn function(&mut self, name: &Name) -> u32 {
        self.places.number(&PointerPlace::Return(name.clone()))
    }

    fn push(&mut self, from: u32, way: FlowEdge) {
        let from = from as usize;
        if self.from.len() <= from {
            self.from.resize_with(from + 1, Vec::new);
        }
        self.from[from].push(way);
    }

    fn add(&mut self, value: &Value, to: &PointerPlace, into: Option<u32>) {
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

    fn add_call(&mut self, call: &Call, through: &Through) {
        let function = self.function(&call.function);
        for (at, values) in call.given.iter().enumerate() {
            let gives_back = through.get(&call.function).and_then(|given| given.get(&at));
            for value in values {
                let parameter = PointerPlace::Parameter(call.function.clone(), at);
                self.add(value, &parameter, Some(function));
                if at >= call.named {
                    let further = variadic(&call.function, call.texts.contains(&at));
                    self.add(value, &PointerPlace::Variable(further), None);
                }
                for passing in gives_back.into_iter().flatten() {
                    self.add_passing(value, passing, &call.result);
                }
            }
        }
        let result = self.places.number(&call.result);
        self.push(function, FlowEdge { out_of: Some(function), ..FlowEdge::plain(Reach::Start, result) });
    }

    /// An argument that a function gives back comes out at the call.
    fn add_passing(&mut self, value: &Value, passing: &Passing, result: &PointerPlace) {
        let PointerPlace::Result(name) = result else { return };
        let passed = |value: &Value| {
            let reach = further(value.reach, passing.reach);
            Value { reach, ..value.clone().at_level(passing.level) }
        };
        match &passing.shift {
            Some((record, member)) => {
                let shifted = PointerPlace::Shifted(record.clone(), member.clone(), name.clone());
                self.add(value, &shifted, None);
                self.add(&passed(&Value::place(shifted)), result, None);
            }
            None => self.add(&passed(value), result, None),
        }
    }

    /// An argument given through a pointer to functions of a type arrives at every function that is used as one.
    fn add_taken(&mut self, signature: &Name, function: &Name, is_crowded: bool) {
        let own = self.function(function);
        for at in 0..MOST_PARAMETERS {
            let from = self.places.number(&PointerPlace::Parameter(signature.clone(), at));
            let to = self.places.number(&PointerPlace::Parameter(function.clone(), at));
            let way =
                FlowEdge { into: Some(own), is_any: true, is_crowded, ..FlowEdge::plain(Reach::Start, to) };
            self.push(from, way);
        }
        let to = self.function(signature);
        let way =
            FlowEdge { out_of: Some(own), is_any: true, is_crowded, ..FlowEdge::plain(Reach::Start, to) };
        self.push(own, way);
    }
}
