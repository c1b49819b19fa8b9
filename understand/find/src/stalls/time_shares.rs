//! The shares of the time that accesses to data have.
//!
//! A function's time is the clock's where it took enough samples, else the model's cycles. Among the data that the
//! function accesses it is divided by accesses, with a cycle for each, and their stalls. In functions with few accesses
//! each accounts for [`INSTRUCTIONS_OF_ACCESS`] at most: the rest of their time is for computing, which is no data's. Nor
//! are the stalls for the function's own code.

use crate::owner::Owner;
use crate::stalls::attribution::Attribution;
use crate::stalls::clock::{LEAST_SAMPLES, modelled};
use crate::stalls::counts::{FunctionCounts, FunctionNumber, Tally};
use crate::time_findings::TimeSource;
use crate::trials::replay::cycles;
use foldhash::HashMap;
use lineup_recording::Latency;
use std::collections::BTreeMap;

/// Instructions for each access, at most, that compute its address and use its value.
const INSTRUCTIONS_OF_ACCESS: f64 = 8.0;

/// The time of each owner's data, by function.
pub(crate) struct TimeShares {
    pub(crate) source: TimeSource,
    of_owners: BTreeMap<Owner, Vec<(FunctionNumber, f64)>>,
}

impl TimeShares {
    /// Divides the time of each function.
    pub(crate) fn of(attribution: &Attribution, latency: Latency) -> TimeShares {
        let samples: u64 = attribution.functions.iter().map(|counts| counts.samples).sum();
        let source = if samples >= LEAST_SAMPLES { TimeSource::Clock } else { TimeSource::Model };
        let stalls = |counts: &FunctionCounts| {
            cycles(counts.fetch_misses, latency) + cycles(counts.access_misses, latency)
        };
        let all: u64 = attribution.functions.iter().map(|counts| counts.instructions + stalls(counts)).sum();
        let time = |counts: &FunctionCounts| match source {
            TimeSource::Clock => counts.samples as f64 / samples as f64,
            TimeSource::Model => modelled(counts, stalls(counts), all),
        };
        let cost = |tally: &Tally| tally.accesses + tally.cycles(latency);
        let mut parts: Vec<(Owner, FunctionNumber, f64)> = attribution
            .owners
            .iter()
            .map(|((owner, function), tally)| (*owner, *function, cost(tally)))
            .collect();
        // Sums of fractions come out the same each time.
        parts.sort_by_key(|(owner, function, _)| (*owner, *function));
        let mut costs: HashMap<FunctionNumber, f64> = HashMap::default();
        parts.iter().for_each(|(_, function, cost)| *costs.entry(*function).or_default() += cost);
        for (function, cost) in &mut costs {
            let counts = &attribution.functions[*function];
            let missing = counts.instructions as f64 / INSTRUCTIONS_OF_ACCESS - counts.accesses as f64;
            *cost += missing.max(0.0) + cycles(counts.fetch_misses, latency) as f64;
        }
        let mut of_owners: BTreeMap<Owner, Vec<(FunctionNumber, f64)>> = BTreeMap::new();
        for (owner, function, cost) in parts {
            let of_function = cost / costs[&function].max(f64::MIN_POSITIVE);
            let share = time(&attribution.functions[function]) * of_function;
            if share > 0.0 {
                of_owners.entry(owner).or_default().push((function, share));
            }
        }
        let most_first = |functions: &mut Vec<(FunctionNumber, f64)>| {
            functions.sort_by(|(one, share), (other, more)| more.total_cmp(share).then(one.cmp(other)));
        };
        of_owners.values_mut().for_each(most_first);
        TimeShares { source, of_owners }
    }

    /// An owner's share.
    pub(crate) fn of_owner(&self, owner: Owner) -> f64 {
        self.functions(owner).iter().map(|(_, share)| share).sum()
    }

    /// The functions that have it, most first.
    pub(crate) fn functions(&self, owner: Owner) -> &[(FunctionNumber, f64)] {
        self.of_owners.get(&owner).map_or(&[], Vec::as_slice)
    }

    /// All owners with a share, the largest first.
    pub(crate) fn owners(&self) -> Vec<(Owner, f64)> {
        let mut all: Vec<(Owner, f64)> =
            self.of_owners.keys().map(|owner| (*owner, self.of_owner(*owner))).collect();
        all.sort_by(|(one, share), (other, more)| more.total_cmp(share).then(one.cmp(other)));
        all
    }
}
