//! Counts by name and by function.

use lineup_recording::{Latency, Misses, PageCounts};

/// Accesses and their misses, where shares of counts are added up.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) accesses: f64,
    /// The stores among them.
    pub(crate) stores: f64,
    pub(crate) l1: f64,
    pub(crate) l2: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: Tally) {
        self.accesses += other.accesses;
        self.stores += other.stores;
        self.l1 += other.l1;
        self.l2 += other.l2;
    }

    /// Cycles that the misses stall for.
    pub(crate) fn cycles(&self, latency: Latency) -> f64 {
        let from_l2 = (self.l1 - self.l2).max(0.0);
        from_l2 * f64::from(latency.l2_cycles) + self.l2 * f64::from(latency.memory_cycles)
    }
}

/// A function, by its number among the functions that ran.
pub(crate) type FunctionNumber = usize;

/// Counts of one function.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct FunctionCounts {
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) instructions: u64,
    pub(crate) accesses: u64,
    pub(crate) fetch_misses: Misses,
    pub(crate) access_misses: Misses,
    /// Pages that its accesses needed.
    pub(crate) pages: PageCounts,
    /// Lines of its code that were executed.
    pub(crate) code_lines: u64,
    /// Lines of data that it fetched in the windows, and bytes used of them.
    pub(crate) used: (u64, u64),
    /// Samples by the clock.
    pub(crate) samples: u64,
}
