//! Types of one name: in different programs of a project, or in units of one program that do not share their header.

use crate::facts::{Facts, Where};
use crate::tree::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The types that share libclang's name with another one, by that name and where they are defined.
#[derive(Clone, Default, Debug)]
pub(crate) struct Variants(BTreeMap<Name, BTreeMap<Where, usize>>);

impl Variants {
    /// Definitions with other members are other types; definitions with the same members are copies of one.
    pub(crate) fn of(facts: &Facts) -> Variants {
        let mut variants = BTreeMap::new();
        for (usr, places) in &facts.definitions {
            let mut kinds = Vec::new();
            let mut numbers = BTreeMap::new();
            for (at, members) in places {
                let known = kinds.iter().position(|kind| *kind == members);
                let number = known.unwrap_or(kinds.len());
                if known.is_none() {
                    kinds.push(members);
                }
                numbers.insert(at.clone(), number);
            }
            if kinds.len() > 1 {
                variants.insert(usr.clone(), numbers);
            }
        }
        Variants(variants)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The name of the type that is defined there.
    pub(crate) fn name(&self, usr: &str, at: &Where) -> Option<String> {
        let number = self.0.get(usr)?.get(at)?;
        Some(name(usr, *number))
    }

    /// The names of all types that share a name of which units use one without its members: any may be meant.
    pub(crate) fn unclear<'v>(&'v self, facts: &'v Facts) -> impl Iterator<Item = Name> + 'v {
        let used = self.0.iter().filter(move |(usr, _)| facts.records.contains_key(*usr));
        used.flat_map(|(usr, places)| {
            let numbers: BTreeSet<usize> = places.values().copied().collect();
            numbers.into_iter().map(move |number| name(usr, number).into())
        })
    }
}

fn name(usr: &str, number: usize) -> String {
    format!("{usr} (type {number})")
}
