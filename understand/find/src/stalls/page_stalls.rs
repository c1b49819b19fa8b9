//! The costs of pages: first touches, and misses of the caches of translations (TLBs).
//!
//! Counted are the accesses that miss the first level of the cache. A page that nothing touched has no line there, so
//! first touches are all counted. An access to a line of the first level can miss the first level of translations,
//! which is smaller; those are not counted.

use lineup_cache::PageBytes;
use lineup_recording::PageCounts;
use serde::Serialize;

/// Costs of a page, in cycles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PageCosts {
    /// For the first touch of a page of 4 KiB.
    pub first_touch_cycles: u32,
    /// For the first touch of a huge page of 2 MiB.
    pub huge_first_touch_cycles: u32,
    /// For a translation that the second level has.
    pub dtlb_l1_cycles: u32,
    /// For a translation that no level has.
    pub dtlb_l2_cycles: u32,
    /// Where the costs are from.
    pub source: CostSource,
}

/// Where costs are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CostSource {
    /// Nobody measured them: those of a usual machine.
    Usual,
    /// They were measured on this machine.
    Measured,
    /// The user gave them.
    Given,
}

impl Default for PageCosts {
    fn default() -> Self {
        let source = CostSource::Usual;
        PageCosts {
            first_touch_cycles: 1500,
            huge_first_touch_cycles: 300_000,
            dtlb_l1_cycles: 7,
            dtlb_l2_cycles: 30,
            source,
        }
    }
}

impl PageCosts {
    /// The cycles that pages stall for.
    pub fn cycles(&self, counts: PageCounts) -> u64 {
        counts.first_touches * u64::from(self.first_touch_cycles) + self.translation_cycles(counts)
    }

    /// The same without first touches.
    pub(crate) fn translation_cycles(&self, counts: PageCounts) -> u64 {
        let from_second = counts.translations.l1.saturating_sub(counts.translations.l2);
        from_second * u64::from(self.dtlb_l1_cycles) + counts.translations.l2 * u64::from(self.dtlb_l2_cycles)
    }
}

/// Stalls for pages, of accesses that missed the first level of the cache.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct PageStalls {
    /// First accesses to pages of 4 KiB.
    pub first_touches: u64,
    /// Misses of the first level of translations.
    pub dtlb_l1_misses: u64,
    /// Those that missed the second level as well.
    pub dtlb_l2_misses: u64,
    /// Modelled stalls; none of [`crate::Stalls`] has them.
    pub stall_cycles: u64,
}

impl PageStalls {
    pub(crate) fn of(counts: PageCounts, costs: &PageCosts) -> PageStalls {
        PageStalls {
            first_touches: counts.first_touches,
            dtlb_l1_misses: counts.translations.l1,
            dtlb_l2_misses: counts.translations.l2,
            stall_cycles: costs.cycles(counts),
        }
    }
}

/// The pages of a process that has allocated nothing: its code, its libraries' data and its stack.
pub(crate) const PAGES_OF_A_PROCESS: u64 = 150;

/// Huge pages for all memory, where pages cost much of the time and no placement of small objects was tried.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct HugePages {
    /// The share of all modelled cycles, those of instructions among them, that are for pages.
    pub share: f64,
    /// The part of all modelled cycles that they save at most.
    pub gain: f64,
    /// The next command.
    pub next: String,
}

impl PageStalls {
    /// Cycles that huge pages save at most: all translations, and first touches of all but a process's own pages.
    pub(crate) fn saved_by_huge_pages(&self, costs: &PageCosts) -> u64 {
        let touches = self.first_touches.saturating_sub(PAGES_OF_A_PROCESS);
        let small = touches * u64::from(costs.first_touch_cycles);
        let huge = touches.div_ceil(PageBytes::Huge.bytes() / PageBytes::Small.bytes())
            * u64::from(costs.huge_first_touch_cycles);
        let of_touches = self.first_touches * u64::from(costs.first_touch_cycles);
        self.stall_cycles.saturating_sub(of_touches) + small.saturating_sub(huge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_recording::Misses;

    #[test]
    fn a_miss_of_both_levels_costs_what_the_second_does() {
        let costs = PageCosts {
            first_touch_cycles: 1000,
            huge_first_touch_cycles: 200_000,
            dtlb_l1_cycles: 7,
            dtlb_l2_cycles: 30,
            source: CostSource::Given,
        };
        let counts = PageCounts { first_touches: 2, translations: Misses { l1: 10, l2: 3 } };
        assert_eq!(costs.translation_cycles(counts), 7 * 7 + 3 * 30);
        let few = PageStalls::of(counts, &costs);
        assert_eq!(few.stall_cycles, 2139);
        assert_eq!(few.saved_by_huge_pages(&costs), 139, "the pages are a process's own");
        let counts = PageCounts { first_touches: 1174, ..counts };
        let many = PageStalls::of(counts, &costs).saved_by_huge_pages(&costs);
        assert_eq!(many, 139 + 1024 * 1000 - 2 * 200_000);
    }
}
