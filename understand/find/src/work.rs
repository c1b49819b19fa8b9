//! The facts of a run that findings and tables are worked out from.

use crate::findings::Stalls;
use crate::options::Options;
use crate::owner::Owner;
use crate::recorded::Recorded;
use crate::stalls::allocation_sites::Sites;
use crate::stalls::attribution::Attribution;
use crate::stalls::counts::{FunctionCounts, Tally};
use crate::stalls::time_shares::TimeShares;
use crate::stalls::window_names::Naming;
use crate::stalls::window_stalls::Watched;
use crate::threads::contention::Between;
use crate::trials::replay::cycles;
use foldhash::HashMap;
use lineup_explain::catalog::Ty;
use lineup_recording::PageCounts;

/// Everything known so far.
pub(crate) struct Work<'w, 'a> {
    pub(crate) recorded: &'w Recorded,
    pub(crate) options: &'w Options,
    pub(crate) program: &'w str,
    pub(crate) attribution: Attribution,
    pub(crate) times: TimeShares,
    pub(crate) naming: Naming<'a>,
    pub(crate) sites: &'w Sites,
    pub(crate) watched: &'w Watched,
    pub(crate) between: Between,
}

impl Work<'_, '_> {
    pub(crate) fn stalls(&self) -> Stalls {
        let of = |counts: &FunctionCounts| self.of_function(counts);
        self.attribution.functions.iter().map(of).fold(Stalls::default(), |sum, own| Stalls {
            code_cycles: sum.code_cycles + own.code_cycles,
            data_cycles: sum.data_cycles + own.data_cycles,
        })
    }

    /// Accesses of the whole run.
    pub(crate) fn of_accesses(&self) -> u64 {
        self.recorded.instructions.iter().map(|counts| counts.loads + counts.stores).sum()
    }

    /// Whether the recorder counts pages.
    pub(crate) fn counts_pages(&self) -> bool {
        !self.recorded.pages.is_empty()
    }

    /// The pages of the whole run.
    pub(crate) fn all_pages(&self) -> PageCounts {
        self.recorded.pages.values().fold(PageCounts::default(), |mut sum, own| {
            sum += *own;
            sum
        })
    }

    /// Cycles of the model: one for each instruction, and the stalls, those for pages too.
    pub(crate) fn modelled_cycles(&self) -> f64 {
        let instructions: u64 = self.attribution.functions.iter().map(|counts| counts.instructions).sum();
        let of_pages = self.options.page_costs.cycles(self.all_pages());
        ((instructions + self.stalls().cycles() + of_pages) as f64).max(1.0)
    }

    /// Samples by the clock.
    pub(crate) fn samples(&self) -> u64 {
        self.attribution.functions.iter().map(|counts| counts.samples).sum()
    }

    pub(crate) fn of_function(&self, counts: &FunctionCounts) -> Stalls {
        Stalls {
            code_cycles: cycles(counts.fetch_misses, self.options.latency),
            data_cycles: cycles(counts.access_misses, self.options.latency),
        }
    }

    /// Tallies of all owners.
    pub(crate) fn by_owner(&self) -> Vec<(Owner, Tally)> {
        let mut sums: HashMap<Owner, Tally> = HashMap::default();
        let mut spots: Vec<(&u32, &Tally)> = self.attribution.spots.iter().collect();
        spots.sort_by_key(|(spot, _)| **spot);
        for (spot, tally) in spots {
            sums.entry(self.naming.spots[*spot as usize].owner).or_default().add(*tally);
        }
        sums.into_iter().collect()
    }

    /// Types that stall for at least this number of cycles, most stalls first.
    pub(crate) fn types_by_stalls(&self, least_cycles: f64) -> Vec<(Ty, f64)> {
        let types = self.by_owner().into_iter().filter_map(|(owner, tally)| match owner {
            Owner::Type(ty) => Some((ty, tally.cycles(self.options.latency))),
            _ => None,
        });
        let mut types: Vec<(Ty, f64)> =
            types.filter(|(_, cycles)| *cycles > 0.0 && *cycles >= least_cycles).collect();
        types.sort_by(|(one, stalls), (other, more)| more.total_cmp(stalls).then(one.cmp(other)));
        types
    }

    /// Cycles for which the code stalled that a study can put in another order: a library's is not the program's to
    /// change.
    pub(crate) fn own_code_cycles(&self) -> f64 {
        let own = self.attribution.functions.iter().filter(|counts| self.can_be_region(counts));
        own.map(|counts| self.of_function(counts).code_cycles as f64).sum()
    }

    /// Whether the next command takes a function: one of the program, or of a kernel's module.
    pub(crate) fn can_be_region(&self, counts: &FunctionCounts) -> bool {
        let mut modules = self.recorded.modules.keys().filter_map(|index| self.recorded.images.get(*index));
        counts.image == self.program || modules.any(|module| counts.image == module.path)
    }
}
