//! The windows' stalls in the recorded layout.

use crate::owner::Owner;
use crate::recorded::Recorded;
use crate::stalls::allocation_sites::Sites;
use crate::stalls::line_usage::{LineUsage, per_line};
use crate::stalls::window_names::{Naming, Point};
use crate::trials::cache_configurations::Configuration;
use crate::trials::layouts::Layout;
use crate::trials::replay::{count, cycles, replay};
use foldhash::HashMap;
use lineup_cache::Missed;
use lineup_recording::{Latency, Misses, WindowStep};
use std::collections::BTreeMap;

/// Accesses and misses of one instruction's loads, or stores, in the windows, by spot and by allocation site.
pub(super) type SpotMisses = HashMap<(u32, u32), (u64, Misses)>;

/// Accesses and misses of every instruction in the windows.
#[derive(Default)]
pub(crate) struct Observed(pub(super) HashMap<(u64, bool), SpotMisses>);

impl Observed {
    /// Takes in an access.
    pub(crate) fn see(&mut self, step: &WindowStep, point: Point, missed: Missed) {
        if let WindowStep::Access { pc, is_store, .. } = *step {
            let seen = self.0.entry((pc, is_store)).or_default();
            let (accesses, misses) = seen.entry((point.spot, point.site)).or_default();
            *accesses += 1;
            count(misses, missed);
        }
    }
}

/// The windows' stalls through the modelled caches.
pub(crate) struct Watched {
    pub(crate) observed: Observed,
    /// Cycles that accesses to each owner stalled for.
    pub(crate) owner_cycles: HashMap<Owner, u64>,
    /// Cycles that fetches stalled for, by their first byte.
    pub(crate) fetch_cycles: HashMap<u64, u64>,
    pub(crate) used_per_line: HashMap<Owner, f64>,
    /// By the number of the allocation site.
    pub(crate) used_by_site: HashMap<u32, f64>,
    /// Lines fetched, and bytes used of them, by the instruction that fetched them.
    pub(crate) used_by_pc: BTreeMap<u64, (u64, u64)>,
    pub(crate) accesses: u64,
    /// Cycles that all of it stalled for.
    pub(crate) stall_cycles: u64,
}

impl Watched {
    /// Goes through the windows once.
    pub(crate) fn of(
        recorded: &Recorded,
        naming: &Naming<'_>,
        sites: &Sites,
        usual: &Configuration,
        line_bytes: u64,
        latency: Latency,
    ) -> Watched {
        let mut observed = Observed::default();
        let mut usage = LineUsage::new(line_bytes);
        let (mut owners, mut fetches) = (HashMap::default(), HashMap::default());
        let mut accesses = 0;
        let outcome =
            replay(usual, (&recorded.windows, &naming.points), &Layout::AsIs, |step, point, missed| {
                let mut own = Misses::default();
                count(&mut own, missed);
                match (*step, point) {
                    (WindowStep::Access { pc, address, size_shift, .. }, Some(point)) => {
                        accesses += 1;
                        observed.see(step, point, missed);
                        let owner = naming.spots[point.spot as usize].owner;
                        usage.see((owner, point.site, pc), address, 1 << size_shift, missed);
                        *owners.entry(owner).or_default() += cycles(own, latency);
                    }
                    (WindowStep::Fetch { pc, .. }, _) if own.l1 > 0 => {
                        *fetches.entry(pc).or_default() += cycles(own, latency);
                    }
                    _ => {}
                }
            });
        let usage = usage.finish();
        let mut used_by_pc: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for ((_, _, pc), (lines, bytes)) in &usage {
            let sum = used_by_pc.entry(*pc).or_default();
            *sum = (sum.0 + lines, sum.1 + bytes);
        }
        Watched {
            observed,
            owner_cycles: owners,
            fetch_cycles: fetches,
            used_per_line: per_line(&usage, |(owner, ..)| *owner),
            used_by_site: per_line(&usage, |(_, site, _)| sites.number_of(*site)),
            used_by_pc,
            accesses,
            stall_cycles: outcome.cycles(latency),
        }
    }
}
