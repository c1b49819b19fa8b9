//! The uses of a type's members, and their places in a layout.

use crate::findings::{LaidMember, MemberMap};
use crate::owner::{self, Owner, Spot};
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::{FunctionNumber, Tally};
use crate::stalls::window_names::Naming;
use crate::trials::layouts::Moved;
use lineup_explain::catalog::Ty;
use lineup_explain::fields::leaves;
use std::collections::BTreeMap;

/// The largest number of functions that are listed one by one.
const MOST_FUNCTIONS: usize = 4;

/// The members of a type, accessed ones and all others.
pub(crate) fn member_map(
    naming: &mut Naming<'_>,
    attribution: &Attribution,
    ty: Ty,
    (moved, start_in_line): (Option<&Moved>, Option<u64>),
    line_bytes: u64,
) -> Option<MemberMap> {
    let size_bytes = naming.namer.catalog().size_bytes(ty)?;
    let own = attribution.spots_in.iter().filter_map(|((spot, function), tally)| {
        let spot = naming.spots[*spot as usize];
        (spot.owner == Owner::Type(ty) && tally.accesses > 0.0).then_some((spot, *function, *tally))
    });
    let own: Vec<(Spot, FunctionNumber, Tally)> = own.collect();
    let (numbers, functions) = most(attribution, &own);
    let mut members: Vec<LaidMember> = Vec::new();
    for (spot, function, tally) in &own {
        let place = members.iter().position(|one| (one.offset, one.size_bytes) == (spot.at, spot.size_bytes));
        let place = place.unwrap_or(members.len());
        if place == members.len() {
            let path = owner::member_name(&mut naming.namer, *spot);
            members.push(laid(path, spot.at, spot.size_bytes, moved));
        }
        let number = numbers.get(function).copied().unwrap_or(MOST_FUNCTIONS);
        let (loads, stores) = (tally.accesses - tally.stores, tally.stores);
        match members[place].uses.iter_mut().find(|(known, ..)| *known == number) {
            Some((_, known_loads, known_stores)) => {
                *known_loads += loads;
                *known_stores += stores;
            }
            None => members[place].uses.push((number, loads, stores)),
        }
    }
    let (types, described) = naming.namer.catalog().table(ty)?;
    for (path, offset, size) in leaves(types, described.id).into_iter().filter(|(_, _, size)| *size > 0) {
        let is_used = |one: &LaidMember| one.offset < offset + size && offset < one.offset + one.size_bytes;
        if !members.iter().any(is_used) {
            members.push(laid(path, offset, size, moved));
        }
    }
    members.iter_mut().for_each(|one| one.uses.sort_by_key(|(number, ..)| *number));
    members.sort_by_key(|one| (one.offset, one.size_bytes));
    let size_bytes_after = moved.map(|moved| moved.size_bytes);
    Some(MemberMap { size_bytes, size_bytes_after, line_bytes, start_in_line, functions, members })
}

fn laid(path: String, offset: u64, size_bytes: u64, moved: Option<&Moved>) -> LaidMember {
    let offset_after = moved.and_then(|moved| moved.to(offset));
    LaidMember { path, offset, size_bytes, offset_after, uses: Vec::new() }
}

/// The functions that access most: their places among these, and their names.
fn most(
    attribution: &Attribution,
    own: &[(Spot, FunctionNumber, Tally)],
) -> (BTreeMap<FunctionNumber, usize>, Vec<String>) {
    let mut sums: BTreeMap<FunctionNumber, f64> = BTreeMap::new();
    own.iter().for_each(|(_, function, tally)| *sums.entry(*function).or_default() += tally.accesses);
    let mut order: Vec<FunctionNumber> = sums.keys().copied().collect();
    order.sort_by(|one, other| sums[other].total_cmp(&sums[one]));
    let name = |number: &FunctionNumber| attribution.functions[*number].name.clone();
    let mut names: Vec<String> = order.iter().take(MOST_FUNCTIONS).map(name).collect();
    if order.len() > MOST_FUNCTIONS {
        names.push(format!("{} other functions", order.len() - MOST_FUNCTIONS));
    }
    (
        order.into_iter().take(MOST_FUNCTIONS).enumerate().map(|(place, number)| (number, place)).collect(),
        names,
    )
}
