//! The flows of a program: those that facts list, and those of calls.

use super::flow_edges::{FlowEdge, FlowEdges};
use super::passed_arguments::{Passing, Through, through_functions};
use crate::collect::{FIRST, further, variadic};
use crate::facts::{Call, Facts, PointerPlace, Reach, Value};
use crate::tree::Name;
use std::collections::BTreeMap;

/// With more functions of one type, called through pointers, memory without a type may go to any.
const CROWD: usize = 6;

/// Parameters of one function that are followed when it is called through a pointer.
const MOST_PARAMETERS: usize = 16;

impl FlowEdges {
    /// All flows in the facts.
    pub(super) fn of(facts: &Facts) -> FlowEdges {
        let mut ways = FlowEdges::without_flows(facts.numbers.clone());
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
