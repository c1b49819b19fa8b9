//! Objects that become others without a cast: by copies through functions of the program that take plain pointers, such
//! as a wrapper of `memcpy`.

use super::Judge;
use crate::facts::{Call, Origin, PointerPlace, Reach, Source, Value, Where};
use crate::tree::Name;
use std::collections::BTreeSet;

/// A function that copies the target of one of its parameters from the target of another.
type Copier = (Name, usize, usize);

impl Judge<'_> {
    /// An object that a call copies into another is taken for the other, and the other for it.
    pub(super) fn copies(&mut self) {
        let facts = self.facts;
        let copiers = self.copiers();
        let mut pairs: BTreeSet<(Name, Name, &Where)> = BTreeSet::new();
        for (call, to, from) in copying(&facts.calls, &copiers) {
            for one in objects(&call.given[to]) {
                for other in objects(&call.given[from]).filter(|other| *other != one) {
                    pairs.insert((one.clone(), other.clone(), &call.at));
                }
            }
        }
        for (one, other, at) in pairs {
            self.used_as_record(&other, Reach::Start, &one, false, at);
        }
    }

    /// The functions that copy, and the functions that call them to do so.
    fn copiers(&self) -> BTreeSet<Copier> {
        let facts = self.facts;
        let mut copiers: BTreeSet<Copier> = BTreeSet::new();
        for copied in &facts.copies {
            copiers.extend(both_given(&copied.to, &copied.from));
        }
        loop {
            let before = copiers.len();
            let outer: Vec<Copier> = copying(&facts.calls, &copiers)
                .flat_map(|(call, to, from)| both_given(&call.given[to], &call.given[from]))
                .collect();
            copiers.extend(outer);
            for (signature, function) in &facts.taken {
                let own = copiers.iter().filter(|(copier, ..)| copier == function);
                let own: Vec<Copier> = own.map(|(_, to, from)| (signature.clone(), *to, *from)).collect();
                copiers.extend(own);
            }
            if copiers.len() == before {
                return copiers;
            }
        }
    }
}

/// The calls of functions that copy, with the arguments that are copied to and from.
fn copying<'c>(
    calls: &'c BTreeSet<Call>,
    copiers: &'c BTreeSet<Copier>,
) -> impl Iterator<Item = (&'c Call, usize, usize)> {
    calls.iter().flat_map(move |call| {
        let first = (call.function.clone(), 0, 0);
        let own = copiers.range(first..).take_while(move |(function, ..)| *function == call.function);
        let given = own.filter(|(_, to, from)| call.given.len() > *to.max(from));
        given.map(move |(_, to, from)| (call, *to, *from))
    })
}

/// The parameters of one function that both sides come from.
fn both_given(to: &[Value], from: &[Value]) -> Vec<Copier> {
    let parameters = |values: &[Value]| -> Vec<(Name, usize)> {
        let given = values.iter().filter(|value| value.reach == Reach::Start && value.level == 0);
        let given = given.filter_map(|value| match &value.source {
            Source::Place(PointerPlace::Parameter(function, index)) => Some((function.clone(), *index)),
            _ => None,
        });
        given.collect()
    };
    let (to, from) = (parameters(to), parameters(from));
    let pairs = to.iter().flat_map(|to| from.iter().map(move |from| (to, from)));
    pairs.filter(|(to, from)| to.0 == from.0).map(|(to, from)| (to.0.clone(), to.1, from.1)).collect()
}

/// The objects that the types of an argument name.
fn objects(values: &[Value]) -> impl Iterator<Item = &Name> {
    values.iter().filter(|value| value.reach == Reach::Start).filter_map(|value| match &value.source {
        Source::Origin(Origin::Object(record)) => Some(record),
        _ => None,
    })
}
