//! Inlined copies that lie unused between code that is executed.

use super::descriptions::{Descriptions, is_executed};
use crate::code::Code;
use lineup_model::branch::UnusedCopy;
use lineup_model::program::Inlined;
use std::cmp::Reverse;
use std::ops::Range;

/// A copy with fewer bytes (two lines) is not reported.
const LEAST_BYTES: u64 = 128;

/// Whether a copy is large enough to be reported and none of it was executed.
pub(super) fn is_unused(code: &Code<'_>, copy: &Inlined) -> bool {
    let is_used = copy.ranges.iter().any(|range| is_executed(&code.executed, range));
    !is_used && bytes_of(copy) >= LEAST_BYTES
}

fn bytes_of(copy: &Inlined) -> u64 {
    copy.ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum()
}

/// Copies of which nothing was executed, in functions that were, largest first. Of nested ones only the outermost is
/// listed.
pub(super) fn unused(code: &Code<'_>, described: &Descriptions) -> Vec<UnusedCopy> {
    let mut all = Vec::new();
    for function in &described.functions {
        let mut told: Vec<&Range<u64>> = Vec::new();
        for copy in &function.inlined {
            let is_within = |range: &&Range<u64>| {
                told.iter().any(|outer| outer.start <= range.start && range.end <= outer.end)
            };
            if !is_unused(code, copy) || copy.ranges.iter().all(|range| is_within(&range)) {
                continue;
            }
            let bytes = bytes_of(copy);
            told.extend(&copy.ranges);
            all.extend(copy.called_at.clone().map(|called_at| UnusedCopy {
                function: copy.name.clone(),
                into: function.name.clone(),
                called_at,
                bytes,
            }));
        }
    }
    all.sort_by_key(|copy| Reverse(copy.bytes));
    all
}
