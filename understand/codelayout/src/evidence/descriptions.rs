//! Descriptions of functions from debug information, by address.

use crate::execution_counts::Executed;
use lineup_debuginfo::DebugInfo;
use lineup_model::program::{Function as Described, Inlined};
use std::ops::Range;

/// Descriptions of some functions from debug information, by their ranges.
pub(super) struct Descriptions {
    pub(super) functions: Vec<Described>,
    /// First address, the one behind the last, and the function; by address.
    ranges: Vec<(Range<u64>, usize)>,
}

impl Descriptions {
    pub(super) fn of(debug: &DebugInfo, addresses: &mut dyn Iterator<Item = u64>) -> Descriptions {
        let functions = debug.functions_covering(addresses);
        let numbered = functions.iter().enumerate();
        let mut ranges: Vec<(Range<u64>, usize)> = numbered
            .flat_map(|(number, function)| function.ranges.iter().map(move |range| (range.clone(), number)))
            .collect();
        ranges.sort_unstable_by_key(|(range, _)| (range.start, range.end));
        Descriptions { functions, ranges }
    }

    /// The function that holds an address.
    pub(super) fn at(&self, address: u64) -> Option<&Described> {
        let after = self.ranges.partition_point(|(range, _)| range.start <= address);
        let (range, number) = self.ranges.get(after.checked_sub(1)?)?;
        self.functions.get(*number).filter(|_| range.contains(&address))
    }
}

/// The inlined copies that an address lies in, outer before inner, by their numbers.
pub(super) fn copies_at(function: &Described, address: u64) -> Vec<usize> {
    let numbered = function.inlined.iter().enumerate();
    let holds = |copy: &Inlined| copy.ranges.iter().any(|range| range.contains(&address));
    numbered.filter(|(_, copy)| holds(copy)).map(|(number, _)| number).collect()
}

/// Whether some of a range was executed.
pub(super) fn is_executed(executed: &Executed, range: &Range<u64>) -> bool {
    !executed.ranges_in(range).is_empty()
}
