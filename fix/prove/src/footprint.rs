//! Lines per call before and after: exact, so compared exactly.

use crate::error::ProveError;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use std::collections::BTreeMap;

/// Numbers of lines that a region's calls touched, at one line size.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LineCounts {
    /// The line size.
    pub line: LineSize,
    /// For each number of lines, the number of calls that touched exactly that many.
    pub calls_by_lines: BTreeMap<u64, u64>,
}

impl LineCounts {
    /// Counts from one number of lines per recorded call.
    pub fn from_calls(line: LineSize, lines_per_call: impl IntoIterator<Item = u64>) -> Self {
        let mut calls_by_lines = BTreeMap::new();
        for lines in lines_per_call {
            *calls_by_lines.entry(lines).or_insert(0) += 1;
        }
        Self { line, calls_by_lines }
    }

    /// The number of recorded calls.
    pub fn calls(&self) -> u64 {
        self.calls_by_lines.values().sum()
    }

    /// The distribution in four numbers; `None` without calls.
    pub fn summary(&self) -> Option<LineSummary> {
        let calls = self.calls();
        let (min, _) = self.calls_by_lines.first_key_value()?;
        let (max, _) = self.calls_by_lines.last_key_value()?;
        let total: u128 =
            self.calls_by_lines.iter().map(|(lines, calls)| u128::from(*lines) * u128::from(*calls)).sum();
        let mut seen = 0;
        let median = self.calls_by_lines.iter().find(|(_, count)| {
            seen += **count;
            2 * u128::from(seen) >= u128::from(calls)
        });
        Some(LineSummary {
            calls,
            min: *min,
            median: *median?.0,
            max: *max,
            mean: total as f64 / calls as f64,
        })
    }
}

/// Lines per call of one region in a few numbers.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LineSummary {
    /// Calls recorded.
    pub calls: u64,
    /// The fewest lines a call touched.
    pub min: u64,
    /// The lower median.
    pub median: u64,
    /// The most lines a call touched.
    pub max: u64,
    /// The mean.
    pub mean: f64,
}

/// The footprint of one region in one variant.
#[derive(Clone, PartialEq, Debug)]
pub struct RegionFootprint {
    /// The region's place in the study's table, which both variants' recordings hold.
    pub id: RegionId,
    /// The region's name.
    pub region: String,
    /// Its weight among the regions.
    pub weight: f64,
    /// Data lines per call, one entry per line size.
    pub data: Vec<LineCounts>,
    /// Instruction lines per call, one entry per line size; empty when not recorded.
    pub code: Vec<LineCounts>,
}

/// The content of lines: data or instructions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LineKind {
    /// Data.
    Data,
    /// Instructions.
    Code,
}

/// The change of one region's footprint, at one line size.
#[derive(Clone, PartialEq, Debug)]
pub struct FootprintChange {
    /// The region's place in the study's table.
    pub id: RegionId,
    /// The region's name.
    pub region: String,
    /// Its weight among the regions.
    pub weight: f64,
    /// Data or instruction lines.
    pub kind: LineKind,
    /// The line size.
    pub line: LineSize,
    /// Lines per call before.
    pub before: LineSummary,
    /// Lines per call after.
    pub after: LineSummary,
}

impl FootprintChange {
    /// Mean lines per call after minus before.
    pub fn difference(&self) -> f64 {
        self.after.mean - self.before.mean
    }
}

/// Compares the footprints of two variants region by region and size by size. Regions that neither variant called are left
/// out where there are others.
///
/// # Errors
/// When a region or a line size is missing on one side or has no calls there, or no region has any.
pub fn compare(
    before: &[RegionFootprint],
    after: &[RegionFootprint],
) -> Result<Vec<FootprintChange>, ProveError> {
    let missing =
        |region: &RegionFootprint, side| ProveError::RegionMissing { region: region.region.clone(), side };
    if let Some(extra) = after.iter().find(|a| !before.iter().any(|b| b.id == a.id)) {
        return Err(missing(extra, "after"));
    }
    let has_calls = |region: &RegionFootprint| {
        region.data.iter().chain(&region.code).any(|counts| counts.summary().is_some())
    };
    let has_any = before.iter().chain(after).any(has_calls);
    let mut changes = Vec::new();
    for old in before {
        let new = after.iter().find(|new| new.id == old.id).ok_or_else(|| missing(old, "before"))?;
        if has_any && !has_calls(old) && !has_calls(new) {
            continue;
        }
        changes.extend(compare_kind(old, LineKind::Data, &old.data, &new.data)?);
        changes.extend(compare_kind(old, LineKind::Code, &old.code, &new.code)?);
    }
    Ok(changes)
}

fn compare_kind(
    region: &RegionFootprint,
    kind: LineKind,
    before: &[LineCounts],
    after: &[LineCounts],
) -> Result<Vec<FootprintChange>, ProveError> {
    let summary = |counts: Option<&LineCounts>, side, line: LineSize| {
        counts.and_then(LineCounts::summary).ok_or_else(|| ProveError::RegionEmpty {
            region: region.region.clone(),
            side,
            line_bytes: line.bytes(),
        })
    };
    before
        .iter()
        .map(|old| {
            let new = after.iter().find(|new| new.line == old.line);
            Ok(FootprintChange {
                id: region.id,
                region: region.region.clone(),
                weight: region.weight,
                kind,
                line: old.line,
                before: summary(Some(old), "before", old.line)?,
                after: summary(new, "after", old.line)?,
            })
        })
        .collect()
}

/// The weighted mean change of lines per call of one kind and size; `None` when no region was recorded so.
pub fn weighted_difference(changes: &[FootprintChange], kind: LineKind, line: LineSize) -> Option<f64> {
    let meant = changes.iter().filter(|change| change.kind == kind && change.line == line);
    let (sum, weight) = meant.fold((0.0, 0.0), |(sum, weight), change| {
        (sum + change.weight * change.difference(), weight + change.weight)
    });
    (weight > 0.0).then(|| sum / weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(id: u16, weight: f64, lines: &[u64]) -> RegionFootprint {
        let data = vec![LineCounts::from_calls(LineSize::B64, lines.iter().copied())];
        RegionFootprint { id: RegionId(id), region: format!("f{id}"), weight, data, code: Vec::new() }
    }

    #[test]
    fn summaries_count_calls_and_take_the_lower_median() {
        let summary = LineCounts::from_calls(LineSize::B64, [3, 1, 2, 4]).summary().unwrap();
        assert_eq!((summary.min, summary.median, summary.max, summary.mean), (1, 2, 4, 2.5));
        assert_eq!(LineCounts::from_calls(LineSize::B64, []).summary(), None);
    }

    #[test]
    fn regions_are_matched_by_number_and_weighted() {
        let before = [region(0, 3.0, &[2, 2]), region(1, 1.0, &[4, 4])];
        let after = [region(1, 1.0, &[5, 5]), region(0, 3.0, &[1, 1])];
        let changes = compare(&before, &after).unwrap();
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[0].difference(), -1.0);
        assert_eq!(weighted_difference(&changes, LineKind::Data, LineSize::B64), Some(-0.5));
        assert_eq!(weighted_difference(&changes, LineKind::Data, LineSize::B32), None);
    }

    #[test]
    fn a_region_on_one_side_only_is_refused() {
        let both = [region(0, 1.0, &[1]), region(1, 1.0, &[1])];
        let one = [region(0, 1.0, &[1])];
        assert!(matches!(compare(&both, &one), Err(ProveError::RegionMissing { side: "before", .. })));
        assert!(matches!(compare(&one, &both), Err(ProveError::RegionMissing { side: "after", .. })));
        let empty = [region(0, 1.0, &[])];
        assert!(matches!(compare(&one, &empty), Err(ProveError::RegionEmpty { side: "after", .. })));
    }

    #[test]
    fn a_region_that_neither_variant_called_leaves_the_others_their_figures() {
        let [called, not_called] = [region(0, 1.0, &[2, 2]), region(1, 1.0, &[])];
        let both = [called, not_called.clone()];
        let changes = compare(&both, &both).unwrap();
        assert_eq!(changes.iter().map(|change| change.id).collect::<Vec<_>>(), [RegionId(0)]);
        let none = [not_called];
        assert!(matches!(compare(&none, &none), Err(ProveError::RegionEmpty { side: "before", .. })));
    }
}
