//! The processor model of one virtual CPU: caches, stalls and their cost.

use lineup_cache::{CacheSpec, Hierarchy, Missed};
use lineup_recording::{Counts, Latency};

/// Caches and totals of one virtual CPU.
pub(crate) struct Processor {
    caches: Hierarchy,
    has_l2: bool,
    /// False when no caches are modelled: instructions are counted alone.
    models: bool,
    latency: Latency,
    /// Everything since the recording began.
    pub(crate) totals: Counts,
}

impl Processor {
    pub(crate) fn new(specs: &[CacheSpec], latency: Latency) -> Self {
        let has_l2 = specs.iter().any(|spec| spec.level() == lineup_cache::CacheLevel::L2);
        let models = !specs.is_empty();
        Processor { caches: Hierarchy::new(specs), has_l2, models, latency, totals: Counts::default() }
    }

    /// Fetches a run of instructions.
    #[inline]
    pub(crate) fn fetch(&mut self, address: u64, size_bytes: u64, instructions: u64) {
        self.totals.instructions += instructions;
        if !self.models {
            return;
        }
        let missed = self.caches.fetch(address, size_bytes);
        if missed != Missed::Nothing {
            let stall = self.stall(missed);
            self.totals.code_misses.l1 += 1;
            self.totals.code_misses.l2 += u64::from(missed == Missed::L2);
            self.totals.code_stall_cycles += stall;
        }
    }

    /// Fetches a run if that changes nothing but the number of instructions; false when nothing was done.
    #[inline(always)]
    pub(crate) fn fetch_again(&mut self, address: u64, size_bytes: u64, instructions: u64) -> bool {
        if self.models && !self.caches.passes_over_code(address, size_bytes) {
            return false;
        }
        self.totals.instructions += instructions;
        true
    }

    /// True when an access changes nothing in modelled caches.
    #[inline(always)]
    pub(crate) fn passes_over(&self, address: u64, size_bytes: u64) -> bool {
        self.caches.passes_over_data(address, size_bytes)
    }

    /// True when caches are modelled.
    #[inline]
    pub(crate) fn models(&self) -> bool {
        self.models
    }

    /// Loads or stores. `is_foreign` says that another CPU had the line.
    #[inline]
    pub(crate) fn data(&mut self, address: u64, size_bytes: u64, is_foreign: bool) {
        if !self.models {
            return;
        }
        let missed = self.caches.data(address, size_bytes);
        if is_foreign {
            self.totals.shared_misses += 1;
            self.totals.data_stall_cycles += u64::from(self.latency.memory_cycles);
        } else if missed != Missed::Nothing {
            let stall = self.stall(missed);
            self.totals.data_misses.l1 += 1;
            self.totals.data_misses.l2 += u64::from(missed == Missed::L2);
            self.totals.data_stall_cycles += stall;
        }
    }

    fn stall(&self, missed: Missed) -> u64 {
        match missed {
            Missed::Nothing => 0,
            Missed::L1 if self.has_l2 => u64::from(self.latency.l2_cycles),
            Missed::L1 | Missed::L2 => u64::from(self.latency.memory_cycles),
        }
    }

    /// Empties the first-level instruction cache.
    pub(crate) fn invalidate_code(&mut self) {
        self.caches.clear_code();
    }

    /// Brings code into the caches without counting it.
    pub(crate) fn prefetch(&mut self, granules: &[u64]) {
        for granule in granules {
            self.caches.fetch(*granule, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processor(specs: &[&str]) -> Processor {
        let specs: Vec<CacheSpec> = specs.iter().map(|spec| spec.parse().unwrap()).collect();
        Processor::new(&specs, Latency { l2_cycles: 10, memory_cycles: 100 })
    }

    #[test]
    fn a_miss_costs_what_the_level_that_has_the_line_takes() {
        let mut processor = processor(&["l1i=1K,2,64", "l1d=1K,2,64", "l2=64K,8,64"]);
        processor.fetch(0x1000, 16, 4);
        processor.fetch(0x1000, 16, 4);
        assert_eq!((processor.totals.instructions, processor.totals.code_stall_cycles), (8, 100));
        processor.invalidate_code();
        processor.fetch(0x1000, 16, 4);
        assert_eq!(processor.totals.code_stall_cycles, 110);
        processor.data(0x1000, 8, false);
        assert_eq!((processor.totals.data_misses.l1, processor.totals.data_misses.l2), (1, 0));
    }

    #[test]
    fn without_a_second_level_every_miss_goes_to_memory() {
        let mut processor = processor(&["l1i=1K,2,64", "l1d=1K,2,64"]);
        processor.data(0x40, 8, false);
        assert_eq!((processor.totals.data_misses.l1, processor.totals.data_misses.l2), (1, 0));
        assert_eq!(processor.totals.data_stall_cycles, 100);
    }

    #[test]
    fn prefetched_code_does_not_stall() {
        let mut processor = processor(&["l1i=1K,2,64"]);
        processor.prefetch(&[0x1000, 0x1020]);
        processor.fetch(0x1000, 64, 16);
        assert_eq!(processor.totals.code_misses.l1, 0);
    }
}
