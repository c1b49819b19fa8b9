//! The units that together hold every distinct type of some names.
//!
//! A kernel describes a type that all of it uses some thousand times, nearly always in the same way. Reading and
//! merging all of them takes more than a second. This search skims each unit and looks only at entries with one of the
//! names. It computes a signature of the types they describe, and of the units with one signature the first is enough.
//!
//! A unit too many does no harm: its types are merged. So the search includes every doubtful unit.

use super::searched_names::SearchedNames;
use super::signature::{Described, Signatures};
use super::skim::skim;
use crate::dwarf::entries::{Compiled, Entries};
use crate::dwarf::extent::language;
use crate::dwarf::{Unit, View};
use lineup_model::types::Language;
use rayon::prelude::*;
use std::collections::{BTreeSet, HashSet};

/// The number of rounds that follow names: a `typedef` may name a type that only other units define.
const MOST_ROUNDS: usize = 4;

/// The units that hold every distinct type of these names; `None` when only reading all units can show that.
pub(crate) fn units_of_types(view: &View<'_>, names: &[&str]) -> Option<Vec<u32>> {
    if !view.store.is_one_file() || view.store.units.iter().any(|unit| unit.is_type_unit) {
        return None;
    }
    let mut units = BTreeSet::new();
    let mut asked: BTreeSet<String> = BTreeSet::new();
    let mut next: BTreeSet<String> =
        names.iter().map(|name| last_part(name).map(str::to_owned)).collect::<Option<_>>()?;
    for _ in 0..MOST_ROUNDS {
        let wanted = SearchedNames::new(view.strings()?, &next);
        asked.append(&mut next);
        let found: Vec<UnitMatches> = (0..view.store.units.len() as u32)
            .into_par_iter()
            .map(|unit| look(view, unit, &wanted))
            .collect();
        let mut known = HashSet::new();
        for (unit, found) in (0..).zip(found) {
            let is_new =
                found.signatures.iter().fold(false, |is_new, signature| known.insert(*signature) | is_new);
            if is_new || found.is_unsure {
                units.insert(unit);
            }
            next.extend(found.elsewhere.into_iter().filter(|name| !asked.contains(name)));
        }
        if next.is_empty() {
            return Some(units.into_iter().collect());
        }
    }
    None
}

/// The name without namespaces and template arguments; `None` for a text that is no plain name.
fn last_part(name: &str) -> Option<&str> {
    let last = crate::names::without_arguments(name).rsplit("::").next()?;
    let is_plain = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    (!last.is_empty() && last.bytes().all(is_plain)).then_some(last)
}

/// A unit's types of the searched names.
#[derive(Default)]
struct UnitMatches {
    /// The signatures of its complete types.
    signatures: Vec<u64>,
    /// True when only reading the unit can show which types it has.
    is_unsure: bool,
    /// Names of types that it gives a name, and leaves to other units to define.
    elsewhere: Vec<String>,
}

fn look(view: &View<'_>, number: u32, wanted: &SearchedNames) -> UnitMatches {
    let unsure = UnitMatches { is_unsure: true, ..UnitMatches::default() };
    let Ok(unit) = view.unit(number) else { return unsure };
    let Ok(mut entries) = Entries::new(view, (number, &unit), Compiled::default()) else { return unsure };
    let Ok(offsets) = skim(&mut entries, wanted) else { return unsure };
    if offsets.is_empty() {
        return UnitMatches::default();
    }
    if language(&unit) != Language::C {
        return unsure;
    }
    describe(view, (number, &unit), &mut entries, &offsets).unwrap_or(unsure)
}

/// The types that a C unit's entries describe.
fn describe<'a>(
    view: &View<'a>,
    (number, unit): (u32, &Unit<'a>),
    entries: &mut Entries<'_, 'a>,
    offsets: &[u32],
) -> Option<UnitMatches> {
    let mut signatures = Signatures::new(view, (number, unit), entries)?;
    let mut found = UnitMatches::default();
    for offset in offsets {
        match signatures.of_named(*offset)? {
            Described::Complete(signature) => found.signatures.push(signature),
            Described::Elsewhere(signature, name) => {
                found.signatures.push(signature);
                found.elsewhere.push(name);
            }
            Described::Other => {}
        }
    }
    Some(found)
}
