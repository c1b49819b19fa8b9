//! Large objects on stacks of which little is used.
//!
//! The used bytes of an object are those of all accesses to its addresses between two by which the code names it, and
//! of these. All objects of one type count together, so that one that is used more in another phase is not missed. An
//! access of another function that had the same place of the stack in between counts too: that hides an object, and
//! reports none.

use crate::hand_findings::StackObject;
use crate::recorded::Recorded;
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::FunctionNumber;
use crate::stalls::window_names::{LocalAccess, Naming};
use foldhash::{HashMap, HashSet};
use lineup_explain::catalog::Ty;
use lineup_recording::WindowStep;
use std::collections::{BTreeMap, BTreeSet};

/// The part of an object that is used at most.
const MOST_USED: f64 = 0.25;
/// Accesses between two that name one object, at most, for others between them to be accesses to it.
const GAP: u32 = 1 << 14;
/// The least share of all accesses in the windows.
const LEAST_ACCESSES: f64 = 0.001;
/// Objects that are followed at a time.
const MOST_OPEN: usize = 8;
/// Bytes of an object that are looked at, from its start.
const MOST_BYTES: u64 = 1 << 20;
/// Objects that are reported, and functions of each.
const MOST_OBJECTS: usize = 3;
const MOST_FUNCTIONS: usize = 3;

/// The uses of all objects of a type.
#[derive(Default)]
struct Uses {
    size_bytes: u64,
    accesses: u64,
    /// By byte.
    used: Vec<bool>,
    functions: BTreeMap<FunctionNumber, u64>,
    variables: BTreeSet<u32>,
}

impl Uses {
    fn used_bytes(&self) -> u64 {
        self.used.iter().filter(|used| **used).count() as u64
    }
}

/// An object that was named last.
struct Open {
    ty: Ty,
    base: u64,
    size_bytes: u64,
    last: u32,
    /// Accesses to its addresses since then.
    pending: Vec<(u64, u64)>,
}

/// The objects, those with most accesses first.
pub(crate) fn objects(
    recorded: &Recorded,
    naming: &mut Naming<'_>,
    attribution: &Attribution,
    of_accesses: u64,
) -> Vec<StackObject> {
    let mut all: HashMap<Ty, Uses> = HashMap::default();
    let locals = std::mem::take(&mut naming.large_locals);
    for (window, locals) in recorded.windows.iter().zip(&locals).filter(|(_, locals)| !locals.is_empty()) {
        for local in locals {
            let uses = all.entry(local.ty).or_default();
            if uses.used.is_empty() {
                uses.size_bytes =
                    naming.namer.catalog().size_bytes(local.ty).unwrap_or_default().min(MOST_BYTES);
                uses.used.resize(uses.size_bytes as usize, false);
            }
            uses.variables.extend(local.variable);
        }
        see(&window.steps, locals, attribution, &mut all);
    }
    all.retain(|_, uses| uses.used_bytes() as f64 <= MOST_USED * uses.size_bytes as f64);
    let mut found: Vec<StackObject> = Vec::new();
    for (ty, uses) in all {
        let accesses = uses.accesses as f64 / of_accesses.max(1) as f64;
        if accesses < LEAST_ACCESSES {
            continue;
        }
        let used_bytes = uses.used_bytes();
        let mut functions: Vec<(FunctionNumber, u64)> = uses.functions.into_iter().collect();
        functions.sort_by_key(|(function, accesses)| (std::cmp::Reverse(*accesses), *function));
        let functions = functions.into_iter().take(MOST_FUNCTIONS);
        found.push(StackObject {
            name: naming.namer.catalog().name(ty),
            variables: uses
                .variables
                .into_iter()
                .map(|name| naming.namer.names().text(name).to_owned())
                .collect(),
            size_bytes: uses.size_bytes,
            used_bytes,
            accesses,
            functions: functions.map(|(function, _)| attribution.functions[function].name.clone()).collect(),
        });
    }
    found.sort_by(|one, other| {
        other.accesses.total_cmp(&one.accesses).then_with(|| one.name.cmp(&other.name))
    });
    found.truncate(MOST_OBJECTS);
    found
}

/// The accesses that show where their objects begin. A string instruction, and a loop that steps through an object, name
/// each address as the beginning: objects of one instruction that overlap are not several.
fn placing(
    accesses: &[(u64, u64, u64)],
    locals: &[LocalAccess],
    all: &HashMap<Ty, Uses>,
) -> Vec<LocalAccess> {
    let mut last: HashMap<(u64, Ty), u64> = HashMap::default();
    let mut stepping: HashSet<u64> = HashSet::default();
    let pc = |local: &LocalAccess| accesses.get(local.number as usize).map(|(pc, ..)| *pc);
    for local in locals {
        let Some(pc) = pc(local) else { continue };
        let before = last.insert((pc, local.ty), local.base).unwrap_or(local.base);
        let size_bytes = all.get(&local.ty).map_or(0, |uses| uses.size_bytes);
        if before != local.base && before.abs_diff(local.base) < size_bytes {
            stepping.insert(pc);
        }
    }
    locals.iter().filter(|local| pc(local).is_some_and(|pc| !stepping.contains(&pc))).copied().collect()
}

/// Takes in the accesses of a window.
fn see(steps: &[WindowStep], locals: &[LocalAccess], attribution: &Attribution, all: &mut HashMap<Ty, Uses>) {
    let accesses = steps.iter().filter_map(|step| match *step {
        WindowStep::Access { pc, address, size_shift, .. } => Some((pc, address, 1u64 << size_shift)),
        WindowStep::Fetch { .. } => None,
    });
    let accesses: Vec<(u64, u64, u64)> = accesses.collect();
    let locals = placing(&accesses, locals, all);
    let mut locals = locals.iter().peekable();
    let mut open: Vec<Open> = Vec::new();
    for (number, (pc, address, size_bytes)) in (0u32..).zip(accesses) {
        open.retain(|one| number - one.last <= GAP);
        for one in &mut open {
            let offset = address.wrapping_sub(one.base);
            if offset < one.size_bytes {
                one.pending.push((offset, size_bytes));
            }
        }
        let Some(local) = locals.next_if(|local| local.number == number) else { continue };
        let Some(uses) = all.get_mut(&local.ty) else { continue };
        if let Some(function) = attribution.number_of(pc) {
            *uses.functions.entry(function).or_default() += 1;
        }
        let at = open.iter().position(|one| (one.ty, one.base) == (local.ty, local.base));
        let at = at.unwrap_or_else(|| {
            if open.len() == MOST_OPEN {
                open.remove(0);
            }
            let pending = vec![(address.wrapping_sub(local.base), size_bytes)];
            let (ty, base) = (local.ty, local.base);
            open.push(Open { ty, base, size_bytes: uses.size_bytes, last: number, pending });
            open.len() - 1
        });
        open[at].last = number;
        uses.accesses += open[at].pending.len() as u64;
        for (offset, size_bytes) in open[at].pending.drain(..) {
            let end = (offset + size_bytes).min(uses.size_bytes);
            let used = uses.used.get_mut(offset as usize..end as usize);
            used.into_iter().flatten().for_each(|used| *used = true);
        }
    }
}
