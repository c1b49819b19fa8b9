//! Stalls by allocation site.

use crate::findings::AllocationStalls;
use crate::owner::{self, Owner};
use crate::stalls::allocation_sites::Sites;
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::Tally;
use crate::stalls::page_stalls::{PageCosts, PageStalls};
use crate::stalls::visit_order::Visits;
use crate::stalls::window_names::Naming;
use crate::trials::replay::cycles;
use foldhash::HashMap;
use lineup_recording::Latency;
use std::collections::BTreeMap;

/// The largest number of types listed for a site, and the smallest share of its accesses that each has.
const MOST_TYPES: usize = 3;
const LEAST_OF_SITE: f64 = 0.02;

/// The memory of sites' objects, by a number of [`Sites`].
pub(crate) struct SeenMemory<'a> {
    /// Bytes used of each line.
    pub(crate) used: &'a HashMap<u32, f64>,
    pub(crate) visits: HashMap<u32, Visits>,
    /// `None` where pages were not counted.
    pub(crate) costs: Option<PageCosts>,
    pub(crate) is_glibc: bool,
}

/// Stalls by site, most stalls first.
pub(crate) fn stalls(
    keys: &Sites,
    attribution: &Attribution,
    naming: &mut Naming<'_>,
    seen: &SeenMemory<'_>,
    latency: Latency,
    all_cycles: f64,
) -> Vec<AllocationStalls> {
    let mut owners: BTreeMap<u32, Vec<(Owner, Tally)>> = BTreeMap::new();
    for ((site, owner), tally) in &attribution.sites {
        owners.entry(keys.number_of(*site)).or_default().push((*owner, *tally));
    }
    let mut all: Vec<AllocationStalls> = Vec::new();
    for (number, (key, sum)) in (1..).zip(&keys.all) {
        let own = owners.remove(&number).unwrap_or_default();
        let accesses = own.iter().map(|(_, tally)| tally.accesses).sum();
        let stall_cycles = cycles(sum.misses, latency);
        all.push(AllocationStalls {
            function: key.frame.function.clone(),
            image: key.frame.image.clone(),
            line: key.frame.line.clone(),
            caller: key.caller.clone(),
            chains: sum.numbers.len() as u64,
            objects: sum.objects,
            bytes: sum.bytes,
            most_bytes: sum.most_bytes,
            accesses,
            l1_misses: sum.misses.l1,
            l2_misses: sum.misses.l2,
            stall_cycles,
            share: stall_cycles as f64 / all_cycles,
            used_bytes_per_line: seen.used.get(&number).copied(),
            taken_bytes: seen.is_glibc.then_some(sum.memory.chunk_bytes),
            pages: seen.costs.map(|costs| PageStalls::of(sum.memory.pages, &costs)),
            live_bytes_per_line: (sum.memory.lines > 0)
                .then(|| sum.memory.live_bytes as f64 / sum.memory.lines as f64),
            visits_in_order: seen.visits.get(&number).and_then(|visits| visits.share()),
            types: types(naming, own, accesses),
        });
    }
    all.sort_by(|one, other| {
        let order = (other.stall_cycles, other.bytes).cmp(&(one.stall_cycles, one.bytes));
        order.then_with(|| {
            (&one.function, &one.line, &one.caller).cmp(&(&other.function, &other.line, &other.caller))
        })
    });
    all
}

/// The types that a site's objects are accessed as, most first, with the shares of their accesses.
fn types(naming: &mut Naming<'_>, own: Vec<(Owner, Tally)>, accesses: f64) -> Vec<(String, f64)> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (owner, tally) in own {
        // For objects that no code names, only the site is known.
        if !matches!(owner, Owner::Unnamed | Owner::Library(..) | Owner::Copied) {
            *sums.entry(owner::name(&mut naming.namer, owner)).or_default() += tally.accesses;
        }
    }
    let mut all: Vec<(String, f64)> =
        sums.into_iter().map(|(name, own)| (name, own / accesses.max(1.0))).collect();
    all.retain(|(_, share)| *share >= LEAST_OF_SITE);
    all.sort_by(|(one, share), (other, more)| more.total_cmp(share).then_with(|| one.cmp(other)));
    all.truncate(MOST_TYPES);
    all
}
