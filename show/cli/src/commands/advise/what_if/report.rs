//! The values that `lineup advise --what-if` shows.

use lineup_recording::Counts;
use serde::Serialize;

/// The printed report.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) schema: &'static str,
    /// Types with a new layout.
    pub(crate) types: Vec<TriedType>,
    /// CPUs of the guest.
    pub(crate) cpus: usize,
    /// True when the replay of the present layout missed exactly what the recorder saw.
    pub(crate) reproduces_recording: bool,
    pub(crate) regions: Vec<RegionMisses>,
}

#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misses {
    pub(crate) code_l1: u64,
    pub(crate) code_l2: u64,
    pub(crate) data_l1: u64,
    pub(crate) data_l2: u64,
    /// Accesses that needed a line, or the right to write to it, from another CPU.
    pub(crate) shared: u64,
    pub(crate) stall_cycles: u64,
}

impl Misses {
    pub(crate) fn of(counts: &Counts) -> Misses {
        Misses {
            code_l1: counts.code_misses.l1,
            code_l2: counts.code_misses.l2,
            data_l1: counts.data_misses.l1,
            data_l2: counts.data_misses.l2,
            shared: counts.shared_misses,
            stall_cycles: counts.code_stall_cycles + counts.data_stall_cycles,
        }
    }
}

/// A type with a new layout.
#[derive(Serialize)]
pub(crate) struct TriedType {
    pub(crate) name: String,
    /// Objects of it that the recorded calls used.
    pub(crate) objects: usize,
    /// Objects at addresses that the new alignment does not allow: they count as if they began at the boundary before.
    pub(crate) unaligned: usize,
    /// Lines of it that calls of each region need.
    pub(crate) lines: Vec<LinesOfType>,
    pub(crate) size_bytes: u64,
    pub(crate) new_size_bytes: u64,
}

/// Lines of a type that calls of a region need, in the mean.
#[derive(Serialize)]
pub(crate) struct LinesOfType {
    pub(crate) region: String,
    pub(crate) before: f64,
    pub(crate) after: f64,
}

/// Misses and modelled stalls of all kept calls of one region.
#[derive(Serialize)]
pub(crate) struct RegionMisses {
    pub(crate) region: String,
    pub(crate) calls: u64,
    pub(crate) before: Misses,
    pub(crate) after: Misses,
}
