//! Which code of a program runs at most once: what `main` calls outside of loops, from one place.

use crate::member_facts::last_name;
use lineup_model::object_uses::{HeapCall, HeapFunction};
use std::collections::{BTreeMap, BTreeSet};

/// libclang's name of the function that starts a program.
const MAIN: &str = "c:@F@main";

/// A place in the code of a function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct CodePlace {
    /// libclang's name of the function; `None` outside of functions.
    pub(crate) function: Option<String>,
    /// File, line and column.
    pub(crate) at: (String, u32, u32),
    /// It is in a loop.
    pub(crate) is_repeated: bool,
}

/// The places that name functions, and those that make objects.
#[derive(Clone, Default, Debug)]
pub(crate) struct Runs {
    /// The places that name a function, by libclang's name of it. A place that does not call it counts as repeated.
    pub(crate) named: BTreeMap<String, BTreeSet<CodePlace>>,
    /// Functions that run without a call that is seen, or some of whose code runs again after a jump.
    pub(crate) uncertain: BTreeSet<String>,
    /// The program jumps from one function to another.
    pub(crate) has_long_jumps: bool,
    /// Code that is not read as C may call functions.
    pub(crate) has_other_callers: bool,
    /// Names that assembly, aliases and lookups find.
    pub(crate) hidden: BTreeSet<String>,
    /// The places of the calls that make objects.
    pub(crate) making: BTreeMap<HeapCall, BTreeSet<CodePlace>>,
}

impl Runs {
    pub(crate) fn add(&mut self, other: Runs) {
        for (function, places) in other.named {
            self.named.entry(function).or_default().extend(places);
        }
        for (call, places) in other.making {
            self.making.entry(call).or_default().extend(places);
        }
        self.uncertain.extend(other.uncertain);
        self.has_long_jumps |= other.has_long_jumps;
    }

    /// True when one of these calls makes objects, and runs at most once.
    pub(crate) fn make_once(&self, calls: &BTreeSet<HeapCall>) -> bool {
        let mut making = calls.iter().filter(|call| call.function != HeapFunction::Free);
        match (making.next(), making.next()) {
            (Some(call), None) => {
                let is_seen = !self.has_long_jumps && !self.has_other_callers;
                is_seen && self.making.get(call).is_some_and(|places| self.is_once(places))
            }
            _ => false,
        }
    }

    /// True when these are one place, whose code runs at most once. Functions that call each other come back to one
    /// that was seen.
    fn is_once(&self, places: &BTreeSet<CodePlace>) -> bool {
        let (mut places, mut seen) = (Some(places), BTreeSet::new());
        loop {
            let mut all = places.into_iter().flatten();
            let (Some(place), None) = (all.next(), all.next()) else { return false };
            let Some(function) = place.function.as_ref().filter(|_| !place.is_repeated) else { return false };
            let is_uncertain = self.uncertain.contains(function) || self.hidden.contains(last_name(function));
            if is_uncertain || !seen.insert(function) {
                return false;
            }
            if function == MAIN {
                return !self.named.contains_key(MAIN);
            }
            places = self.named.get(function);
        }
    }
}
