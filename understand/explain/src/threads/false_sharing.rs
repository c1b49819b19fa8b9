//! The way from lines to findings: data that share lines without need, and the changes that would part them.

use crate::naming::namer::Namer;
use crate::naming::owner::{OwnerKey, variable_ref};
use crate::threads::access_log::Use;
use crate::threads::access_log::uses_of;
use crate::threads::process::Process;
use crate::threads::report::{BetweenThreads, FalseSharing, LineBetween, PartBetween, Remedy, WaitsByOrder};
use crate::threads::use_names::owners;
use crate::types::catalog::Ty;
use lineup_model::Library;
use lineup_model::line::LineSize;
use lineup_model::usage::VariableRef;
use std::collections::{BTreeMap, BTreeSet};

/// Findings with fewer waits for a line alone in a thousand accesses of the threads are dropped.
const LEAST_PER_THOUSAND: f64 = 1.0;
/// Findings with fewer waits in all are dropped too: data that is handed over once makes some.
const LEAST_WAITS: u64 = 100;

/// Objects in objects that are looked into.
const MOST_DEPTH: usize = 8;

/// The relation between two uses of one line.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Bond {
    /// They are members of one object.
    Members(Ty),
    /// They are in adjacent objects of one type.
    Objects(Ty),
    /// They are elements of one variable.
    Elements(OwnerKey),
    /// They are variables.
    Variables(Vec<String>),
    /// At least one is in memory that nothing names.
    Allocations,
}

/// The findings of false sharing, worst first.
pub(super) fn findings(
    processes: &[Process],
    lines: &[LineBetween],
    (uses, accesses): (&[Use], u64),
    (line, namer): (LineSize, &mut Namer<'_>),
) -> Vec<FalseSharing> {
    let mut groups: BTreeMap<Bond, Vec<&LineBetween>> = BTreeMap::new();
    for of_line in lines.iter().filter(|line| line.waits.of_line_alone_at_most() > 0) {
        let process = processes.iter().find(|process| process.id.0 == of_line.process);
        let bond = process.and_then(|process| bond(process, of_line.address / line.bytes(), uses, namer));
        groups.entry(bond.unwrap_or(Bond::Allocations)).or_default().push(of_line);
    }
    // Nobody can move members of the system's own types, such as a lock's word and its owner.
    groups.retain(|bond, _| !matches!(bond, Bond::Members(ty) if is_of_system(*ty, namer)));
    let mut all: Vec<FalseSharing> = groups
        .into_iter()
        .map(|(bond, lines)| finding((&bond, &lines), processes, (uses, accesses), (line, namer)))
        .collect();
    all.retain(|found| {
        found.per_thousand_accesses_at_most >= LEAST_PER_THOUSAND
            && found.waits.of_line_alone_at_most() >= LEAST_WAITS
    });
    all.sort_by(|a, b| b.per_thousand_accesses_at_most.total_cmp(&a.per_thousand_accesses_at_most));
    all
}

impl BetweenThreads {
    /// Data for whose lines alone threads wait, though less than a finding has: names with their waits in the order that
    /// has most, most first.
    pub fn rarely_waited_for(&self) -> Vec<(&str, u64)> {
        let is_found = |owner: &String| self.false_sharing.iter().any(|found| found.owners.contains(owner));
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for line in self.lines.iter().filter(|line| line.waits.of_line_alone_at_most() > 0) {
            for owner in line.owners.iter().filter(|owner| !is_found(owner)) {
                *sums.entry(owner).or_default() += line.waits.of_line_alone_at_most();
            }
        }
        let mut all: Vec<(&str, u64)> = sums.into_iter().collect();
        all.sort_by_key(|(owner, waits)| (std::cmp::Reverse(*waits), *owner));
        all
    }
}

/// Whether a type is the system's own.
pub fn is_of_system(ty: Ty, namer: &mut Namer<'_>) -> bool {
    let Some((types, described)) = namer.catalog().table(ty) else { return false };
    let place = types.get(described.id).and_then(|ty| ty.declared_at.as_ref());
    place.is_some_and(|place| place.file.starts_with("/usr/include/") || place.file.starts_with("/usr/lib/"))
}

/// The bond of most waits for a line alone, in the order that has more of them.
fn bond(process: &Process, line: u64, uses: &[Use], namer: &mut Namer<'_>) -> Option<Bond> {
    let orders = [&process.outcomes.recorded, &process.outcomes.most];
    let alone = |order: &&lineup_coherence::Outcome| order.lines.get(&line).map_or(0, |line| line.events().1);
    let order = orders.into_iter().max_by_key(alone)?;
    let mut bonds: BTreeMap<Bond, u64> = BTreeMap::new();
    for (pair, counts) in order.pairs_of(line) {
        if let Some(uses) = uses_of(uses, [pair.writer_tag, pair.other_tag]) {
            *bonds.entry(between(uses, namer)).or_default() += counts.of_line_alone;
        }
    }
    bonds.into_iter().max_by_key(|(_, waits)| *waits).map(|(bond, _)| bond)
}

/// The variable that a use's bytes are in.
fn variable(used: &Use) -> Option<OwnerKey> {
    used.part.map(|part| part.owner).filter(|owner| matches!(owner, OwnerKey::Variable(..)))
}

fn between([one, other]: [&Use; 2], namer: &mut Namer<'_>) -> Bond {
    let object = |used: &Use| match used.object?.owner {
        OwnerKey::Object(ty, start) => Some((ty, start)),
        _ => None,
    };
    if let (Some((ty, start)), Some((other_ty, other_start))) = (object(one), object(other))
        && ty == other_ty
    {
        // Nobody gives a type of the system's headers room: an array of such atomics is one of numbers.
        let is_array_of_system = start != other_start && is_of_system(ty, namer);
        match (variable(one), variable(other)) {
            (Some(one), Some(other)) if is_array_of_system && one == other => return Bond::Elements(one),
            _ if start == other_start => {
                return Bond::Members(system_part([one, other], ty, namer).unwrap_or(ty));
            }
            _ => return Bond::Objects(ty),
        }
    }
    match (variable(one), variable(other)) {
        (Some(one), Some(other)) if one == other => Bond::Elements(one),
        (Some(_), Some(_)) => {
            let mut names = vec![owners(one, namer), owners(other, namer)];
            names.sort();
            Bond::Variables(names)
        }
        _ => Bond::Allocations,
    }
}

/// The type of the system's that holds both uses of an object of a type, such as that of a mutex in it.
fn system_part(both: [&Use; 2], ty: Ty, namer: &mut Namer<'_>) -> Option<Ty> {
    let offsets = both.map(|used| used.object.map_or(0, |object| object.offset));
    let (mut ty, mut base) = (ty, 0);
    for _ in 0..MOST_DEPTH {
        if is_of_system(ty, namer) {
            return Some(ty);
        }
        let (types, described) = namer.catalog().table(ty)?;
        let (_, aggregate) = types.aggregate(described.id)?;
        let (inner, start) = aggregate.members.iter().find_map(|member| {
            let (start, size) = (base + member.offset_bytes()?, types.size_bytes(member.ty)?);
            let holds_both = offsets.iter().all(|offset| (start..start + size).contains(offset));
            (holds_both && types.aggregate(member.ty).is_some()).then_some((member.ty, start))
        })?;
        let image = described.image;
        ty = namer.catalog().intern(image, inner)?;
        base = start;
    }
    None
}

/// The variables that are used on these lines, by address.
fn variables_on(
    processes: &[Process],
    lines: &[&LineBetween],
    uses: &[Use],
    line: LineSize,
    namer: &mut Namer<'_>,
) -> Vec<(usize, VariableRef)> {
    let mut keys = BTreeSet::new();
    for of_line in lines {
        let process = processes.iter().find(|process| process.id.0 == of_line.process);
        let touched = process.and_then(|process| process.touched.get(&(of_line.address / line.bytes())));
        for (_, _, tag, _) in touched.into_iter().flat_map(|touched| touched.keys()) {
            let owner = uses.get(*tag as usize).and_then(|used| used.part).map(|part| part.owner);
            if let Some(OwnerKey::Variable(image, variable)) = owner {
                keys.insert((image, variable));
            }
        }
    }
    let found = keys.into_iter().filter_map(|(image, variable)| {
        variable_ref(namer, image, variable).map(|(found, _)| (image, found))
    });
    let mut found: Vec<(usize, VariableRef)> = found.collect();
    found.sort_by_key(|(image, variable)| (*image, variable.address));
    found
}

fn finding(
    (bond, lines): (&Bond, &[&LineBetween]),
    processes: &[Process],
    (uses, accesses): (&[Use], u64),
    (line, namer): (LineSize, &mut Namer<'_>),
) -> FalseSharing {
    let waits = lines.iter().fold(WaitsByOrder::default(), |all, line| all.plus(line.waits));
    let mut owners: Vec<String> = lines.iter().flat_map(|line| line.owners.clone()).collect();
    owners.sort();
    owners.dedup();
    let worst = lines.iter().max_by_key(|line| line.waits.of_line_alone_at_most());
    let parts: Vec<PartBetween> = worst.map(|line| line.parts.clone()).unwrap_or_default();
    let type_name = |ty: Ty, namer: &mut Namer<'_>| namer.catalog().name(ty);
    // A library's type is nobody's to change here.
    let changeable = |ty: Ty, namer: &mut Namer<'_>| {
        let (types, described) = namer.catalog().table(ty)?;
        types.get(described.id).is_none_or(|ty| Library::of(ty, None).is_none()).then_some(ty)
    };
    let remedy = match bond {
        Bond::Members(ty) => Remedy::PartMembers { ty: type_name(*ty, namer), id: changeable(*ty, namer) },
        Bond::Objects(ty) => {
            let size_bytes = namer.catalog().size_bytes(*ty).unwrap_or(0);
            Remedy::AlignObjects {
                ty: type_name(*ty, namer),
                id: changeable(*ty, namer),
                size_bytes,
                aligned_bytes: size_bytes.next_multiple_of(line.bytes()),
            }
        }
        Bond::Elements(OwnerKey::Variable(image, variable)) => {
            let found = variable_ref(namer, *image, *variable).map(|(found, _)| found);
            Remedy::SpreadArray {
                variable: found.as_ref().map(|found| found.name.clone()).unwrap_or_default(),
                place: found.map(|found| (*image, found)),
            }
        }
        Bond::Variables(names) => Remedy::AlignVariables {
            variables: names.clone(),
            places: variables_on(processes, lines, uses, line, namer),
        },
        Bond::Elements(_) | Bond::Allocations => Remedy::AlignAllocations,
    };
    let per_thousand = |waits: u64| 1000.0 * waits as f64 / accesses.max(1) as f64;
    FalseSharing {
        owners,
        lines: lines.len() as u64,
        per_thousand_accesses: per_thousand(waits.recorded.of_line_alone),
        per_thousand_accesses_at_most: per_thousand(waits.of_line_alone_at_most()),
        waits,
        parts,
        remedy,
    }
}
