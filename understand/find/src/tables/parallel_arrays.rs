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

/// Fewer uses of an index in one window say nothing of it.
const LEAST_USES: usize = 64;
/// Instructions of one function that are compared with each other: those with most accesses.
const MOST_INSTRUCTIONS: usize = 12;
/// The part of the steps that two instructions have in common.
const LEAST_COMMON: f64 = 0.95;
/// The part of an array's steps to another line that are made together with another of the arrays.
const LEAST_JUMPING_TOGETHER: f64 = 0.9;
/// The part of the lines that is left at most.
const MOST_LEFT: f64 = 0.8;
/// The least share of all accesses in the windows.
const LEAST_ACCESSES: f64 = 0.01;
/// Groups that are reported.
const MOST_GROUPS: usize = 3;
/// Bytes of an element, where that need not be known.
const WORD_BYTES: u64 = 8;
/// Elements between two accesses: a larger distance leaves the line whatever the elements.
const FAR: u64 = 64;

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

/// Steps from one element to the next that is used, by their length in elements.
#[derive(Clone, Default)]
struct Steps {
    uses: u64,
    by_length: BTreeMap<u64, u64>,
}

impl Steps {
    fn add(&mut self, uses: &Uses) {
        self.uses += uses.addresses.len() as u64;
        for pair in uses.addresses.windows(2) {
            let length = pair[0].abs_diff(pair[1]).div_ceil(uses.size_bytes).min(FAR);
            *self.by_length.entry(length).or_default() += 1;
        }
    }

    /// The number of times that a step reaches another line, where an element takes these bytes.
    fn lines(&self, size_bytes: u64, line_bytes: u64) -> f64 {
        let reaches = |length: u64| match length {
            FAR => 1.0,
            _ => ((length * size_bytes) as f64 / line_bytes as f64).min(1.0),
        };
        self.by_length.iter().map(|(length, count)| *count as f64 * reaches(*length)).sum()
    }

    /// The steps that leave the line for certain.
    fn jumps(&self, size_bytes: u64, line_bytes: u64) -> u64 {
        let leaves = |length: u64| length == FAR || length * size_bytes >= line_bytes;
        self.by_length.iter().filter(|(length, _)| leaves(**length)).map(|(_, count)| count).sum()
    }
}

/// The counts of one array.
#[derive(Clone, Default)]
struct Sum {
    all: u64,
    /// Accesses by their bytes.
    by_size: BTreeMap<u64, u64>,
}

impl Sum {
    /// Bytes of an element: those of most accesses. A loop in order may access several elements at once.
    fn size_bytes(&self) -> u64 {
        let most =
            self.by_size.iter().max_by_key(|(size_bytes, count)| (**count, std::cmp::Reverse(**size_bytes)));
        most.map_or(1, |(size_bytes, _)| *size_bytes)
    }
}

/// Counts of all windows.
#[derive(Default)]
struct Seen {
    sums: BTreeMap<Owner, Sum>,
    /// Uses of an index by the arrays that it is of, and the function; of one array too.
    groups: BTreeMap<(BTreeSet<Owner>, FunctionNumber), Steps>,
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
        see(window, points, &naming.spots, attribution, &mut seen);
    }
    let mut found: Vec<ParallelArrays> = Vec::new();
    let several = seen.groups.iter().filter(|((owners, _), _)| owners.len() > 1);
    let mut several: Vec<(&(BTreeSet<Owner>, FunctionNumber), &Steps)> = several.collect();
    // Code that sets up one element after the other has many uses, and few jumps.
    several.sort_by_key(|(_, steps)| std::cmp::Reverse((steps.jumps(WORD_BYTES, line_bytes), steps.uses)));
    let mut reported: BTreeSet<Owner> = BTreeSet::new();
    for ((owners, function), _) in several {
        let all: u64 = owners.iter().map(|owner| seen.sums[owner].all).sum();
        let accesses = all as f64 / of_accesses.max(1) as f64;
        let is_new = owners.iter().all(|owner| !reported.contains(owner));
        if accesses < LEAST_ACCESSES || !is_new || !seen.jump_together(owners, line_bytes) {
            continue;
        }
        let lines = seen.lines(owners, line_bytes);
        if lines.after > MOST_LEFT * lines.now {
            continue;
        }
        reported.extend(owners);
        let tally = owners.iter().map(|owner| stalls(attribution, naming, *owner, latency)).sum::<f64>();
        found.push(ParallelArrays {
            names: owners.iter().map(|owner| owner::name(&mut naming.namer, *owner)).collect(),
            function: attribution.functions[*function].name.clone(),
            size_bytes: lines.size_bytes,
            lines: owners.len() as f64,
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

impl Seen {
    /// Whether nearly all steps of each array to another line are made together with another of them.
    fn jump_together(&self, owners: &BTreeSet<Owner>, line_bytes: u64) -> bool {
        owners.iter().all(|owner| {
            let (mut all, mut together) = (0, 0);
            for ((own, _), steps) in self.groups.iter().filter(|((own, _), _)| own.contains(owner)) {
                let jumps = steps.jumps(self.sums[owner].size_bytes(), line_bytes);
                all += jumps;
                together += if own.intersection(owners).count() > 1 { jumps } else { 0 };
            }
            together > 0 && together as f64 >= LEAST_JUMPING_TOGETHER * all as f64
        })
    }

    /// The lines of all uses of these arrays. An element that is used again is no other line: code that sets up one
    /// element by many accesses does not count against one array.
    fn lines(&self, owners: &BTreeSet<Owner>, line_bytes: u64) -> Lines {
        let sizes = || owners.iter().map(|owner| self.sums[owner].size_bytes());
        let align = sizes().max().unwrap_or(1).max(1);
        let size_bytes = sizes().sum::<u64>().next_multiple_of(align);
        // Elements at a random index begin anywhere in a line.
        let of_index = 1.0 + (size_bytes - align) as f64 / line_bytes as f64;
        let (mut now, mut after) = (0.0, 0.0);
        for ((own, _), steps) in &self.groups {
            let common: Vec<&Owner> = own.intersection(owners).collect();
            now += common
                .iter()
                .map(|owner| steps.lines(self.sums[*owner].size_bytes(), line_bytes))
                .sum::<f64>();
            let of_one = if common.len() > 1 { of_index } else { 1.0 };
            after += if common.is_empty() { 0.0 } else { of_one * steps.lines(size_bytes, line_bytes) };
        }
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
fn see(window: &Window, points: &[Point], spots: &[Spot], attribution: &Attribution, seen: &mut Seen) {
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
        let sum = seen.sums.entry(owner).or_default();
        sum.all += 1;
        *sum.by_size.entry(size_bytes).or_default() += 1;
        let uses = by_pc.entry(pc).or_insert_with(|| Uses { owner, size_bytes, addresses: Vec::new() });
        if uses.owner == owner {
            uses.addresses.push(address);
        }
    }
    let mut by_function: BTreeMap<FunctionNumber, Vec<(u64, Uses)>> = BTreeMap::new();
    for (pc, uses) in by_pc {
        if let Some(function) = attribution.number_of(pc) {
            by_function.entry(function).or_default().push((pc, uses));
        }
    }
    for (function, mut instructions) in by_function {
        instructions.sort_by_key(|(pc, uses)| (std::cmp::Reverse(uses.addresses.len()), *pc));
        let mut rest: Vec<Uses> = Vec::new();
        for (at, (_, uses)) in instructions.into_iter().enumerate() {
            if at < MOST_INSTRUCTIONS && uses.addresses.len() >= LEAST_USES {
                rest.push(uses);
            } else {
                seen.groups.entry((BTreeSet::from([uses.owner]), function)).or_default().add(&uses);
            }
        }
        while let Some(first) = rest.pop() {
            let (same, others): (Vec<Uses>, Vec<Uses>) =
                rest.into_iter().partition(|one| one.has_index_of(&first));
            rest = others;
            let owners: BTreeSet<Owner> = same.iter().chain([&first]).map(|uses| uses.owner).collect();
            seen.groups.entry((owners, function)).or_default().add(&first);
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
    }

    /// Two arrays of numbers of four bytes, with these uses of an index of one or both of them.
    fn seen(all: &[(&[u32], &[u64])]) -> Seen {
        let owner = |variable: &u32| uses(*variable, 0, 4, &[]).owner;
        let mut seen = Seen::default();
        for (number, (variables, indices)) in all.iter().enumerate() {
            let owners: BTreeSet<Owner> = variables.iter().map(owner).collect();
            for owner in &owners {
                let sum = seen.sums.entry(*owner).or_default();
                sum.all += indices.len() as u64;
                sum.by_size = BTreeMap::from([(4, sum.all), (16, sum.all / 4)]);
            }
            seen.groups.entry((owners, number)).or_default().add(&uses(0, 0x1000, 4, indices));
        }
        seen
    }

    #[test]
    fn accesses_in_order_to_one_of_the_arrays_count_against_one_array() {
        let (jumping, in_order): (Vec<u64>, Vec<u64>) = (indices(1), (0..16_001).collect());
        let (owners, steps) = (uses(0, 0, 4, &[]).owner, 199.0);
        let both = BTreeSet::from([owners, uses(1, 0, 4, &[]).owner]);
        let lines = seen(&[(&[0, 1], &jumping)]).lines(&both, 64);
        assert_eq!((lines.size_bytes, lines.of_index), (8, 1.0625));
        assert_eq!((lines.now, lines.after), (2.0 * steps, 1.0625 * steps));
        let lines = seen(&[(&[0, 1], &jumping), (&[0], &in_order)]).lines(&both, 64);
        assert_eq!((lines.now, lines.after), (2.0 * steps + 1000.0, 1.0625 * steps + 2000.0));
        assert!(seen(&[(&[0, 1], &jumping), (&[0], &in_order)]).jump_together(&both, 64));
        assert!(!seen(&[(&[0, 1], &jumping), (&[0], &jumping)]).jump_together(&both, 64));
        assert!(!seen(&[(&[0, 1], &in_order)]).jump_together(&both, 64));
    }

    /// A loop that sets up one element after the other by many accesses reaches few lines.
    #[test]
    fn accesses_to_one_element_again_and_again_do_not_count() {
        let (jumping, set_up): (Vec<u64>, Vec<u64>) = (indices(1), (0..64_000).map(|at| at / 1000).collect());
        let both = BTreeSet::from([0, 1].map(|variable| uses(variable, 0, 4, &[]).owner));
        let seen = seen(&[(&[0, 1], &jumping), (&[0], &set_up), (&[1], &set_up)]);
        let lines = seen.lines(&both, 64);
        assert!(seen.jump_together(&both, 64) && lines.after < MOST_LEFT * lines.now);
    }
}
