//! An order for calls that find none of their code in the caches.
//!
//! An execution count says nothing about such a call: an instruction of a loop and one executed once are each fetched
//! once. The order depends on whether calls fetch a function, and on what else they fetch. Both come from recordings of
//! calls.

use crate::code::Code;
use crate::flow::function::Function;
use lineup_model::access::{CODE_GRANULE_BYTES, Call};
use lineup_model::image::LoadedImage;
use std::collections::{BTreeMap, BTreeSet};

/// The lines of one file that calls of some regions fetched.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Fetched {
    /// By region.
    regions: BTreeMap<u16, RegionFetches>,
}

/// The lines that calls of one region fetched.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct RegionFetches {
    calls: u64,
    /// Granules by their link addresses: how many calls fetched each.
    granules: BTreeMap<u64, u64>,
}

impl RegionFetches {
    fn calls_that_fetched(&self, address: u64) -> u64 {
        let granule = address - address % CODE_GRANULE_BYTES;
        self.granules.get(&granule).copied().unwrap_or(0)
    }
}

impl Fetched {
    /// Adds a call to those of its region.
    pub fn add(&mut self, call: &Call, image: &LoadedImage) {
        let region = self.regions.entry(call.region.0).or_default();
        region.calls += 1;
        for granule in call.code_granules.iter().filter(|granule| image.contains(**granule)) {
            *region.granules.entry(image.to_link(*granule)).or_default() += 1;
        }
    }

    /// The number of calls of all regions.
    pub fn calls(&self) -> u64 {
        self.regions.values().map(|region| region.calls).sum()
    }

    /// The share of a region's calls that fetched a link address: of the region where it is largest.
    pub(crate) fn share_of(&self, address: u64) -> f64 {
        let share =
            |region: &RegionFetches| region.calls_that_fetched(address) as f64 / region.calls.max(1) as f64;
        self.regions.values().map(share).fold(0.0, f64::max)
    }

    /// Whether calls went into a function.
    pub(crate) fn has(&self, function: &Function) -> bool {
        self.has_all(&[function.addresses.start])
    }

    /// Whether calls of one region fetched all of these link addresses.
    pub(crate) fn has_all(&self, addresses: &[u64]) -> bool {
        let has =
            |region: &RegionFetches| addresses.iter().all(|address| region.calls_that_fetched(*address) > 0);
        self.regions.values().any(has)
    }
}

/// For `llvm-bolt -reorder-functions=user -function-order=`: a name a line. First come the functions that calls of each
/// region fetch, those that most of them fetch before the rest. Then come the others, as by counts.
pub fn cold_order(code: &Code<'_>, fetched: &Fetched) -> String {
    let names = crate::profiles::bolt_names::bolt_names(code.debug.symbols());
    let by_calls = code.order();
    let mut placed: BTreeSet<u64> = BTreeSet::new();
    let mut out = String::new();
    let mut place = |function: &Function| {
        let start = function.addresses.start;
        if let Some(name) = names.get(&start).filter(|_| placed.insert(start)) {
            out.push_str(name);
            out.push('\n');
        }
    };
    for region in fetched.regions.values() {
        let calls = |function: &Function| region.calls_that_fetched(function.addresses.start);
        let mut own: Vec<&Function> =
            by_calls.iter().copied().filter(|function| calls(function) > 0).collect();
        // Stable: functions that are fetched equally often keep the order that calls gave them.
        own.sort_by_key(|function| std::cmp::Reverse(calls(function)));
        own.into_iter().for_each(&mut place);
    }
    by_calls.into_iter().for_each(place);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::access::{CallEnd, ProcessId, ThreadId};
    use lineup_model::region::RegionId;

    fn call(region: u16, code_granules: &[u64]) -> Call {
        Call {
            region: RegionId(region),
            process: ProcessId(0),
            thread: ThreadId(0),
            sequence: 0,
            entered_at: 0,
            end: CallEnd::Returned,
            depth: 0,
            instructions: 0,
            binding_instructions: 0,
            missed_blocks: 0,
            arguments: None,
            accesses: Vec::new(),
            code_granules: code_granules.to_vec(),
            times: Vec::new(),
        }
    }

    #[test]
    fn what_calls_of_one_region_fetched_is_told_by_link_address_and_other_files_are_left_out() {
        let image =
            LoadedImage { path: "a".into(), start: 0x5000, end: 0x6000, bias: 0x4000, build_id: None };
        let mut fetched = Fetched::default();
        for call in [call(0, &[0x5000, 0x5020]), call(0, &[0x5000, 0x9000]), call(1, &[0x5040])] {
            fetched.add(&call, &image);
        }
        assert_eq!(fetched.calls(), 3);
        assert!(fetched.has_all(&[0x1000, 0x101f, 0x1020]) && fetched.has_all(&[0x1047]));
        // No region's calls fetched both.
        assert!(!fetched.has_all(&[0x1000, 0x1040]));
        assert!(!fetched.has_all(&[0x5000]) && !fetched.has_all(&[0x1060]));
        assert_eq!(fetched.regions[&0].calls_that_fetched(0x1010), 2);
    }
}
