//! The kept accesses of each thread, with the code and the data of each.

use super::tasks::Whom;
use super::windowed_calls::Within;
use crate::naming::owner::Part;
use lineup_coherence::{Span, Timed};
use lineup_model::region::RegionId;
use std::collections::BTreeMap;

/// An instruction that accesses something.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Use {
    /// Its runtime address.
    pub(super) pc: u64,
    /// The bytes, of a variable where there is one, else of an object.
    pub(super) part: Option<Part>,
    /// The same bytes as those of the innermost object of a named type.
    pub(super) object: Option<Part>,
    /// Their name when they belong to neither.
    pub(super) label: Option<&'static str>,
    /// The number of the lock that the thread took last and has.
    pub(super) under: Option<u32>,
    /// The task or interrupt that a CPU of a kernel worked for.
    pub(super) whom: Option<Whom>,
    /// The kind of recorded call that it is in, of a kernel's CPUs.
    pub(super) within: Option<Within>,
}

/// A thread's accesses to lines that others use.
#[derive(Default, Debug)]
pub(super) struct Log {
    pub(super) accesses: Vec<Timed>,
    pub(super) spans: Vec<Span>,
    /// Accesses of all calls with times.
    pub(super) all_accesses: u64,
    pub(super) time: u64,
    pub(super) regions: BTreeMap<RegionId, u64>,
    pub(super) left_out: u64,
}

/// The uses that a pair names.
pub(super) fn uses_of(uses: &[Use], tags: [u32; 2]) -> Option<[&Use; 2]> {
    Some([uses.get(tags[0] as usize)?, uses.get(tags[1] as usize)?])
}
