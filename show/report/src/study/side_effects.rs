//! Data and code that a change moves but does not name.

use lineup_model::figure::whole;
use lineup_model::line::LineSize;
use lineup_model::usage::VariableRef;
use std::collections::{BTreeMap, BTreeSet};

/// The most moved variables that are named.
const MOST_NAMES: usize = 5;

/// The variables that now lie at another place of their line, in a sentence; `None` when there are none. `changed` are
/// those that a proposal names. Names that several variables share are left out, since these are ambiguous.
pub fn moved_variables(
    before: &[VariableRef],
    after: &[VariableRef],
    changed: &BTreeSet<&str>,
    line: LineSize,
) -> Option<String> {
    let (before, after) = (by_name(before), by_name(after));
    let place = |address: u64| address % line.bytes();
    let mut moved: BTreeMap<i64, Vec<&str>> = BTreeMap::new();
    for (name, old) in before.iter().filter(|(name, _)| !changed.contains(**name)) {
        let Some(new) = after.get(name).filter(|new| place(**new) != place(*old)) else { continue };
        // Within a line, so it fits.
        moved.entry(place(*new) as i64 - place(*old) as i64).or_default().push(name);
    }
    let all: usize = moved.values().map(Vec::len).sum();
    let (shift, names) = moved.iter().max_by_key(|(_, names)| names.len())?;
    let shown: Vec<&str> = names.iter().take(MOST_NAMES).copied().collect();
    let more = if names.len() > shown.len() { ", …" } else { "" };
    let word = if all == 1 {
        "variable that no proposal names lies"
    } else {
        "variables that no proposal names lie"
    };
    Some(format!(
        "{} {word} elsewhere in a line of {} bytes now: {} moved by {shift:+} bytes ({}{more}).",
        whole(all as u64),
        line.bytes(),
        whole(names.len() as u64),
        shown.join(", ")
    ))
}

/// Addresses of variables whose name no other has.
fn by_name(variables: &[VariableRef]) -> BTreeMap<&str, u64> {
    let mut all: BTreeMap<&str, Option<u64>> = BTreeMap::new();
    for variable in variables {
        let address = all.entry(&variable.name).or_insert(Some(variable.address));
        *address = address.filter(|address| *address == variable.address);
    }
    all.into_iter().filter_map(|(name, address)| Some((name, address?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(name: &str, address: u64) -> VariableRef {
        VariableRef { name: name.into(), address, size_bytes: 8 }
    }

    #[test]
    fn variables_that_moved_in_their_line_are_named_with_the_distance() {
        let before = [at("a", 0x100), at("b", 0x110), at("named", 0x200), at("twice", 8), at("twice", 16)];
        let after = [at("a", 0x1100), at("b", 0x1120), at("named", 0x1230), at("twice", 32)];
        let told = moved_variables(&before, &after, &BTreeSet::from(["named"]), LineSize::B64);
        insta::assert_snapshot!(told.expect("b moved"), @"1 variable that no proposal names lies elsewhere in a line of 64 bytes now: 1 moved by +16 bytes (b).");
        assert_eq!(moved_variables(&before, &before, &BTreeSet::new(), LineSize::B64), None);
    }
}
