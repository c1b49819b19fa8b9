//! Functions that are called as another type, which takes or gives other objects by value.

use super::Judge;
use crate::facts::{FunctionCast, Reach, Shape, ValueSlot, Where};
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet};

impl<'f> Judge<'f> {
    /// `((struct other (*)(int))make)(1)`: what one function takes or gives by value is taken for another object. Where
    /// the pointer went through other types, it is the function of the type that it is called as, if there is one.
    pub(super) fn function_casts(&mut self) {
        let facts = self.facts;
        let mut casts: BTreeMap<&Name, Vec<&'f FunctionCast>> = BTreeMap::new();
        for cast in &facts.function_casts {
            casts.entry(&cast.to).or_default().push(cast);
        }
        let mut pairs: BTreeSet<(&'f Name, &'f Name, &'f Where, bool)> = BTreeSet::new();
        for (called, own_casts) in &casts {
            let at = &own_casts[0].at;
            let direct = facts.taken.iter().filter(|(ty, _)| ty == *called);
            pairs.extend(direct.map(|(_, function)| (function, *called, at, true)));
            let before = types_before(called, &casts);
            let through = facts.function_types.iter().filter(|(_, ty)| before.contains(ty));
            let through: Vec<&Name> = through.map(|(function, _)| function).collect();
            let slots = facts.value_slots.get(*called);
            if !through.iter().any(|function| facts.value_slots.get(*function) == slots) {
                pairs.extend(through.into_iter().map(|function| (function, *called, at, false)));
            }
        }
        for (function, called, at, is_direct) in pairs {
            let (own, others) = (facts.value_slots.get(function), facts.value_slots.get(called));
            if let (Some(own), Some(others)) = (own, others) {
                self.called_as(own, others, is_direct, at);
            }
        }
    }

    fn called_as(
        &mut self,
        own: &BTreeSet<ValueSlot>,
        others: &BTreeSet<ValueSlot>,
        is_direct: bool,
        at: &Where,
    ) {
        for one in own {
            let same = others.iter().filter(|other| other.parameter == one.parameter);
            for other in same {
                if other.shape != one.shape {
                    self.taken_for((&one.shape, &one.spelling), (&other.shape, &other.spelling), at);
                }
                // After a direct cast the pointers that are given flow to the parameters.
                let is_followed = is_direct && one.parameter.is_some();
                if let (Some(one), Some(other), false) = (&one.target, &other.target, is_followed) {
                    self.taken_for((&one.0, &one.1), (&other.0, &other.1), at);
                }
            }
        }
    }

    /// A value, or the target of a pointer, of one type is taken for one of another.
    fn taken_for(&mut self, one: (&Shape, &Name), other: (&Shape, &Name), at: &Where) {
        match (one, other) {
            ((Shape::Record(record), _), (Shape::Record(another), _)) => {
                self.used_as_record(record, Reach::Start, another, false, at);
            }
            ((Shape::Record(record), _), (shape, spelling))
            | ((shape, spelling), (Shape::Record(record), _)) => {
                self.used_as_value(record, Reach::Start, shape, spelling, false, at);
            }
            _ => {}
        }
    }
}

/// The types that a pointer may have had before it was cast to this one; this one as well, where it was cast back.
fn types_before<'f>(called: &'f Name, casts: &BTreeMap<&Name, Vec<&'f FunctionCast>>) -> BTreeSet<&'f Name> {
    let (mut before, mut work) = (BTreeSet::new(), vec![called]);
    while let Some(ty) = work.pop() {
        let from = casts.get(ty).into_iter().flatten().map(|cast| &cast.from);
        work.extend(from.filter(|from| before.insert(*from)));
    }
    before
}
