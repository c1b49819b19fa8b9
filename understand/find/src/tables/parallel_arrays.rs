//! Arrays of which elements with the same index are used together, in no order: one array of structs would have them on
//! one line.
//!
//! Two instructions of a function use the same index when the distances between their successive addresses, in
//! elements, are the same. An index in order fills lines in either layout; only one that jumps counts.

use crate::hand_findings::ParallelArrays;
use crate::owner::{self, Owner, Spot};
use crate::recorded::Recorded;
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::{FunctionNumber, Tally};
use crate::stalls::window_names::{Naming, Point};
use foldhash::HashMap;
use lineup_explain::abstract_value::Origin;
use lineup_recording::{Latency, Window, WindowStep};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer uses of an index say nothing.
const LEAST_USES: usize = 64;
/// Instructions of one function that are compared with each other: those with most accesses.
const MOST_INSTRUCTIONS: usize = 12;
/// The part of the steps from one element to the next that leave the line.
const LEAST_JUMPS: f64 = 0.5;
/// The part of the steps that two instructions have in common.
const LEAST_COMMON: f64 = 0.95;
/// The part of an array's jumping accesses, and of all its accesses, that are made with the other arrays.
const LEAST_JUMPING_TOGETHER: f64 = 0.9;
const LEAST_TOGETHER: f64 = 0.5;
/// The part of the lines that is left at most.
const MOST_LEFT: f64 = 0.8;
/// The least share of all accesses in the windows.
const LEAST_ACCESSES: f64 = 0.01;
/// Groups that are reported.
const MOST_GROUPS: usize = 3;

/// The accesses of one instruction in one window.
struct Uses {
    owner: Owner,
    size_bytes: u64,
    addresses: Vec<u64>,
}

impl Uses {
    /// Steps between successive elements.
    fn steps(&self) -> impl Iterator<Item = i64> {
        let size = self.size_bytes as i64;
        // A step that is no whole number of elements is like no other.
        let step = move |pair: &[u64]| {
            let distance = pair[1].wrapping_sub(pair[0]) as i64;
            if distance % size == 0 { distance / size } else { i64::MAX }
        };
        self.addresses.windows(2).map(step)
    }

    fn jumps(&self, line_bytes: u64) -> bool {
        let leaves = |pair: &&[u64]| pair[0].abs_diff(pair[1]) >= line_bytes;
        let leaving = self.addresses.windows(2).filter(leaves).count();
        self.addresses.len() >= LEAST_USES && leaving as f64 >= LEAST_JUMPS * self.addresses.len() as f64
    }

    /// Whether both use the same index. A window may begin or end between the two.
    fn has_index_of(&self, other: &Uses) -> bool {
        if self.addresses.len().abs_diff(other.addresses.len()) > 1 {
            return false;
        }
        let common = |later: usize, of_other: usize| {
            let steps = self.steps().skip(later).zip(other.steps().skip(of_other));
            steps.filter(|(one, other)| one == other && *one != i64::MAX).count()
        };
        let least = LEAST_COMMON * (self.addresses.len() - 1) as f64;
        [(0, 0), (1, 0), (0, 1)].into_iter().any(|(own, of_other)| common(own, of_other) as f64 >= least)
    }
}

/// The counts of one array.
#[derive(Clone, Copy, Default)]
struct Sum {
    all: u64,
    jumping: u64,
    /// Of those, with another array.
    together: u64,
    size_bytes: u64,
}

/// Counts of all windows.
#[derive(Default)]
struct Seen {
    sums: BTreeMap<Owner, Sum>,
    /// Uses of an index by the arrays that it is of, and the function.
    groups: BTreeMap<(BTreeSet<Owner>, FunctionNumber), u64>,
}

/// The groups, those with most accesses first.
pub(crate) fn groups(
    recorded: &Recorded,
    (naming, points): (&mut Naming<'_>, &[Vec<Point>]),
    attribution: &Attribution,
    (of_accesses, line_bytes): (u64, u64),
    (latency, all_cycles): (Latency, f64),
) -> Vec<ParallelArrays> {
    let mut seen = Seen::default();
    for (window, points) in recorded.windows.iter().zip(points) {
        see(window, points, &naming.spots, attribution, line_bytes, &mut seen);
    }
    let mut found: Vec<ParallelArrays> = Vec::new();
    let mut groups: Vec<(&(BTreeSet<Owner>, FunctionNumber), &u64)> = seen.groups.iter().collect();
    groups.sort_by_key(|(_, uses)| std::cmp::Reverse(**uses));
    let mut reported: BTreeSet<Owner> = BTreeSet::new();
    for ((owners, function), uses) in groups {
        let sums: Vec<Sum> = owners.iter().map(|owner| seen.sums[owner]).collect();
        let all: u64 = sums.iter().map(|sum| sum.all).sum();
        let accesses = all as f64 / of_accesses.max(1) as f64;
        let is_whole = sums.iter().all(|sum| {
            let of = |part: f64, of: u64| sum.together as f64 >= part * of as f64;
            of(LEAST_JUMPING_TOGETHER, sum.jumping) && of(LEAST_TOGETHER, sum.all)
        });
        let lines = Lines::of(&sums, *uses, line_bytes);
        let is_new = owners.iter().all(|owner| !reported.contains(owner));
        if accesses < LEAST_ACCESSES || !is_whole || !is_new || lines.after > MOST_LEFT * lines.now {
            continue;
        }
        reported.extend(owners);
        let tally = owners.iter().map(|owner| stalls(attribution, naming, *owner, latency)).sum::<f64>();
        found.push(ParallelArrays {
            names: owners.iter().map(|owner| owner::name(&mut naming.namer, *owner)).collect(),
            function: attribution.functions[*function].name.clone(),
            size_bytes: lines.size_bytes,
            lines: sums.len() as f64,
            lines_after: lines.of_index,
            accesses,
            share: tally / all_cycles,
        });
    }
    found.sort_by(|one, other| other.accesses.total_cmp(&one.accesses));
    found.truncate(MOST_GROUPS);
    found
}

fn stalls(attribution: &Attribution, naming: &Naming<'_>, owner: Owner, latency: Latency) -> f64 {
    let own = attribution.spots.iter().filter(|(spot, _)| naming.spots[**spot as usize].owner == owner);
    let mut own: Vec<(&u32, &Tally)> = own.collect();
    own.sort_by_key(|(spot, _)| **spot);
    own.into_iter().map(|(_, tally)| tally.cycles(latency)).sum()
}

/// Lines of a group of arrays, as arrays and as one.
struct Lines {
    size_bytes: u64,
    /// Of one index, in one array.
    of_index: f64,
    now: f64,
    after: f64,
}

impl Lines {
    /// Elements at a random index begin anywhere in a line; accesses in order share lines with their neighbours.
    fn of(sums: &[Sum], uses: u64, line_bytes: u64) -> Lines {
        let (line, uses) = (line_bytes as f64, uses as f64);
        let align = sums.iter().map(|sum| sum.size_bytes).max().unwrap_or(1);
        let size_bytes = sums.iter().map(|sum| sum.size_bytes).sum::<u64>().next_multiple_of(align);
        let of_index = 1.0 + (size_bytes - align) as f64 / line;
        let in_order = |sum: &Sum, size_bytes: u64| {
            (sum.all - sum.together) as f64 * (size_bytes as f64 / line).min(1.0)
        };
        let now =
            uses * sums.len() as f64 + sums.iter().map(|sum| in_order(sum, sum.size_bytes)).sum::<f64>();
        let after = uses * of_index + sums.iter().map(|sum| in_order(sum, size_bytes)).sum::<f64>();
        Lines { size_bytes, of_index, now, after }
    }
}

/// An array of numbers or pointers that has a name.
fn is_array(owner: Owner) -> bool {
    match owner {
        Owner::Buffer(origin, _) => origin != Origin::Unknown,
        Owner::Variable(..) => true,
        _ => false,
    }
}

/// Takes in one window.
fn see(
    window: &Window,
    points: &[Point],
    spots: &[Spot],
    attribution: &Attribution,
    line_bytes: u64,
    seen: &mut Seen,
) {
    let mut by_pc: HashMap<u64, Uses> = HashMap::default();
    let accesses = window.steps.iter().filter_map(|step| match *step {
        WindowStep::Access { pc, address, size_shift, .. } => Some((pc, address, 1u64 << size_shift)),
        WindowStep::Fetch { .. } => None,
    });
    for ((pc, address, size_bytes), point) in accesses.zip(points) {
        let owner = spots[point.spot as usize].owner;
        if !is_array(owner) {
            continue;
        }
        seen.sums.entry(owner).or_default().all += 1;
        let uses = by_pc.entry(pc).or_insert_with(|| Uses { owner, size_bytes, addresses: Vec::new() });
        if uses.owner == owner {
            uses.addresses.push(address);
        }
    }
    let mut by_function: BTreeMap<FunctionNumber, Vec<(u64, Uses)>> = BTreeMap::new();
    for (pc, uses) in by_pc.into_iter().filter(|(_, uses)| uses.jumps(line_bytes)) {
        let sum = seen.sums.entry(uses.owner).or_default();
        sum.jumping += uses.addresses.len() as u64;
        sum.size_bytes = sum.size_bytes.max(uses.size_bytes);
        if let Some(function) = attribution.number_of(pc) {
            by_function.entry(function).or_default().push((pc, uses));
        }
    }
    for (function, mut instructions) in by_function {
        instructions.sort_by_key(|(pc, uses)| (std::cmp::Reverse(uses.addresses.len()), *pc));
        instructions.truncate(MOST_INSTRUCTIONS);
        let mut rest: Vec<Uses> = instructions.into_iter().map(|(_, uses)| uses).collect();
        while let Some(first) = rest.pop() {
            let (same, others): (Vec<Uses>, Vec<Uses>) =
                rest.into_iter().partition(|one| one.has_index_of(&first));
            rest = others;
            let owners: BTreeSet<Owner> = same.iter().chain([&first]).map(|uses| uses.owner).collect();
            if owners.len() < 2 {
                continue;
            }
            for uses in same.iter().chain([&first]) {
                seen.sums.entry(uses.owner).or_default().together += uses.addresses.len() as u64;
            }
            *seen.groups.entry((owners, function)).or_default() += first.addresses.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An array at an address, whose elements have this size, used at some indices.
    fn uses(variable: u32, base: u64, size_bytes: u64, indices: &[u64]) -> Uses {
        let owner = Owner::Variable(0, lineup_explain::name::VariableId::Described(variable));
        Uses { owner, size_bytes, addresses: indices.iter().map(|index| base + size_bytes * index).collect() }
    }

    fn indices(seed: u64) -> Vec<u64> {
        (0..200u64).map(|at| (at * 7919 + seed) * 104_729 % 65_537).collect()
    }

    #[test]
    fn two_arrays_with_one_index_are_alike_whatever_their_elements() {
        let [one, other] = [indices(1), indices(2)].map(|indices| indices);
        assert!(uses(0, 0x1000, 4, &one).has_index_of(&uses(1, 0x90_000, 8, &one)));
        // A window that begins between the two.
        assert!(uses(0, 0x1000, 4, &one[1..]).has_index_of(&uses(1, 0x90_000, 8, &one)));
        assert!(!uses(0, 0x1000, 4, &one).has_index_of(&uses(1, 0x90_000, 8, &other[50..])));
        assert!(!uses(0, 0x1000, 4, &one).has_index_of(&uses(1, 0x90_000, 8, &one[..100])));
        assert!(uses(0, 0x1000, 4, &one).jumps(64));
        let in_order: Vec<u64> = (0..200).collect();
        assert!(!uses(0, 0x1000, 4, &in_order).jumps(64));
    }

    #[test]
    fn accesses_in_order_to_one_of_the_arrays_count_against_one_array() {
        let sum = |all, together| Sum { all, jumping: together, together, size_bytes: 4 };
        let lines = Lines::of(&[sum(1000, 1000), sum(1000, 1000)], 1000, 64);
        assert_eq!((lines.size_bytes, lines.of_index, lines.now, lines.after), (8, 1.0625, 2000.0, 1062.5));
        let lines = Lines::of(&[sum(17_000, 1000), sum(1000, 1000)], 1000, 64);
        assert_eq!((lines.now, lines.after), (3000.0, 3062.5));
    }
}
