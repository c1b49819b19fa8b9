//! What the windows show as they were.

use crate::attribution::Observed;
use crate::configurations::Configuration;
use crate::layouts::Layout;
use crate::naming::Naming;
use crate::owner::Owner;
use crate::recorded::Recorded;
use crate::replay::{count, cycles, replay};
use crate::sites::Sites;
use crate::usage::LineUsage;
use foldhash::HashMap;
use lineup_recording::{Latency, Misses, WindowStep};

/// What the windows show, through the caches that were modelled.
pub(crate) struct Watched {
    pub(crate) observed: Observed,
    /// Cycles that accesses to each owner stalled for.
    pub(crate) owner_cycles: HashMap<Owner, u64>,
    /// Cycles that fetches stalled for, by their first byte.
    pub(crate) fetch_cycles: HashMap<u64, u64>,
    pub(crate) used_per_line: HashMap<Owner, f64>,
    /// By the number of what allocated it.
    pub(crate) used_by_site: HashMap<u32, f64>,
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
        let (mut usage, mut of_sites) = (LineUsage::new(line_bytes), LineUsage::new(line_bytes));
        let (mut owners, mut fetches) = (HashMap::default(), HashMap::default());
        let mut accesses = 0;
        let outcome =
            replay(usual, (&recorded.windows, &naming.points), &Layout::AsIs, |step, point, missed| {
                let mut own = Misses::default();
                count(&mut own, missed);
                match (*step, point) {
                    (WindowStep::Access { address, size_shift, .. }, Some(point)) => {
                        accesses += 1;
                        observed.see(step, point, missed);
                        let owner = naming.spots[point.spot as usize].owner;
                        usage.see(owner, address, 1 << size_shift, missed);
                        of_sites.see(sites.number_of(point.site), address, 1 << size_shift, missed);
                        *owners.entry(owner).or_default() += cycles(own, latency);
                    }
                    (WindowStep::Fetch { pc, .. }, _) if own.l1 > 0 => {
                        *fetches.entry(pc).or_default() += cycles(own, latency);
                    }
                    _ => {}
                }
            });
        Watched {
            observed,
            owner_cycles: owners,
            fetch_cycles: fetches,
            used_per_line: usage.finish(),
            used_by_site: of_sites.finish(),
            accesses,
            stall_cycles: outcome.cycles(latency),
        }
    }
}
