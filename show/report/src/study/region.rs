//! The recorded calls of a region.

use super::proof::TimeReport;
use lineup_model::region::RegionId;
use lineup_prove::footprint::{LineCounts, RegionFootprint};
use lineup_prove::region_time::RegionTime;
use serde::Serialize;
use std::collections::BTreeMap;

/// A region: a function whose calls were recorded.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionReport {
    /// Its number in the recording's table of regions.
    #[serde(skip)]
    pub id: RegionId,
    /// Its name.
    pub name: String,
    /// Its weight among the regions.
    pub weight: f64,
    /// Calls whose accesses were recorded.
    pub calls_recorded: u64,
    /// Calls that the program made in all; `None` when they were not counted.
    pub calls_made: Option<u64>,
    /// Recorded calls that never returned: left by an exception, `longjmp` or their thread's end.
    pub calls_abandoned: u64,
    /// Calls per second of the program's own time; `None` when no timed run was made.
    pub calls_per_second: Option<f64>,
    /// Instructions per call, callees included.
    pub instructions_per_call: Option<Quantiles>,
    /// Lines per call, one entry for each kind of line and line size.
    pub footprints: Vec<Footprint>,
    /// Misses per call by the cache model, for each pressure that was asked for.
    pub misses: Vec<MissesPerCall>,
    /// The times of calls, compared; `None` when that was not observed.
    pub time: Option<CallTime>,
}

/// Time of a region's calls, callees included.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CallTime {
    /// Calls in each run.
    pub calls_per_run: u64,
    /// All calls of a run together, as [`TimeReport`] has it for the whole process. The intervals of all regions hold
    /// together at their level's place: each is stated at a stricter one.
    pub all_calls: TimeReport,
}

impl CallTime {
    /// The mean time of a call in nanoseconds, before and after.
    pub fn mean_ns(&self) -> [f64; 2] {
        [&self.all_calls.before_ns, &self.all_calls.after_ns].map(|runs| {
            let calls = self.calls_per_run.max(1) as f64 * runs.len().max(1) as f64;
            runs.iter().sum::<f64>() / calls
        })
    }
}

impl From<&RegionTime> for CallTime {
    fn from(time: &RegionTime) -> Self {
        CallTime { calls_per_run: time.calls, all_calls: TimeReport::from(&time.change) }
    }
}

/// The middle and the ends of a distribution.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantiles {
    /// Smallest.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest.
    pub max: f64,
}

/// The content of a line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LineKind {
    /// Data.
    Data,
    /// Instructions.
    Code,
}

impl LineKind {
    /// The kind in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Code => "code",
        }
    }
}

/// Lines per call at one line size, before the change and after it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Footprint {
    /// Data or code.
    pub kind: LineKind,
    /// The line size.
    pub line_bytes: u32,
    /// Lines per call of the unchanged program.
    pub before: LineDistribution,
    /// Lines per call of the changed program; `None` when it does not exist.
    pub after: Option<LineDistribution>,
}

impl Footprint {
    /// The footprints of one region, by kind and line size: those of the unchanged program, with those of the changed
    /// program where it was recorded. Sizes at which no call was recorded are left out.
    pub fn of_region(before: &RegionFootprint, after: Option<&RegionFootprint>) -> Vec<Self> {
        let kind = |kind, before: &[LineCounts], after: &[LineCounts]| -> Vec<Self> {
            let pair = |old: &LineCounts| {
                let new = after.iter().find(|new| new.line == old.line);
                Some(Self {
                    kind,
                    line_bytes: u32::try_from(old.line.bytes()).ok()?,
                    before: LineDistribution::of_counts(old)?,
                    after: new.and_then(LineDistribution::of_counts),
                })
            };
            before.iter().filter_map(pair).collect()
        };
        let mut all = kind(LineKind::Data, &before.data, after.map_or(&[], |after| &after.data));
        all.extend(kind(LineKind::Code, &before.code, after.map_or(&[], |after| &after.code)));
        all
    }
}

/// The number of calls for each number of touched lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineDistribution {
    calls: u64,
    min: u64,
    median: u64,
    mean: f64,
    max: u64,
    calls_by_lines: BTreeMap<u64, u64>,
}

impl LineDistribution {
    /// From the number of calls for each number of lines; `None` when there is no call.
    ///
    /// ```
    /// use lineup_report::study::LineDistribution;
    /// let lines = LineDistribution::new([(2, 30), (5, 10)]).unwrap();
    /// assert_eq!((lines.min(), lines.median(), lines.max()), (2, 2, 5));
    /// assert_eq!(lines.mean(), 2.75);
    /// ```
    pub fn new(calls_by_lines: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let calls_by_lines: BTreeMap<u64, u64> =
            calls_by_lines.into_iter().filter(|(_, calls)| *calls > 0).collect();
        let calls = calls_by_lines.values().fold(0u64, |sum, calls| sum.saturating_add(*calls));
        let (min, _) = calls_by_lines.first_key_value()?;
        let (max, _) = calls_by_lines.last_key_value()?;
        let total: f64 = calls_by_lines.iter().map(|(lines, calls)| *lines as f64 * *calls as f64).sum();
        let mut seen = 0u64;
        let (median, _) = calls_by_lines.iter().find(|(_, count)| {
            seen = seen.saturating_add(**count);
            seen >= calls.div_ceil(2)
        })?;
        let (min, median, max) = (*min, *median, *max);
        Some(Self { calls, min, median, mean: total / calls as f64, max, calls_by_lines })
    }

    fn of_counts(counts: &LineCounts) -> Option<Self> {
        Self::new(counts.calls_by_lines.iter().map(|(lines, calls)| (*lines, *calls)))
    }

    /// Calls counted.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// The fewest lines of a call.
    pub fn min(&self) -> u64 {
        self.min
    }

    /// The lower median of lines per call.
    pub fn median(&self) -> u64 {
        self.median
    }

    /// Mean lines per call.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The most lines of a call.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The number of calls for each number of lines, by lines.
    pub fn calls_by_lines(&self) -> &BTreeMap<u64, u64> {
        &self.calls_by_lines
    }
}

/// The cache model's misses for a footprint.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MissesPerCall {
    /// The cache, such as `L1D 32 KiB, 8 ways, 64-byte lines`.
    pub cache: String,
    /// Bytes of other data that pass through the cache between two calls.
    pub pressure_bytes: u64,
    /// Misses per call of the unchanged program.
    pub before: f64,
    /// Misses per call of the changed program.
    pub after: Option<f64>,
}

/// The letter that stands for a region on maps: `A` for the first; past `Z` its number.
pub fn region_letter(region: usize) -> String {
    match u8::try_from(region) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => format!("#{}", region + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_model::line::LineSize;
    use lineup_model::region::RegionId;

    fn counts(line: LineSize, lines: &[u64]) -> LineCounts {
        LineCounts::from_calls(line, lines.iter().copied())
    }

    #[test]
    fn the_median_is_the_lower_one() {
        let median =
            |counts: &[(u64, u64)]| LineDistribution::new(counts.iter().copied()).map(|lines| lines.median());
        assert_eq!(median(&[(1, 1), (9, 1)]), Some(1));
        assert_eq!(median(&[(1, 1), (9, 2)]), Some(9));
        assert_eq!(median(&[(1, 2), (5, 1), (9, 2)]), Some(5));
        assert_eq!(median(&[(3, 0)]), None);
    }

    #[test]
    fn variants_are_paired_by_kind_and_line_size() {
        let region =
            |data, code| RegionFootprint { id: RegionId(0), region: "r".into(), weight: 1.0, data, code };
        let before = region(
            vec![counts(LineSize::B32, &[4, 4]), counts(LineSize::B64, &[3, 3]), counts(LineSize::B128, &[])],
            vec![counts(LineSize::B64, &[7])],
        );
        let after = region(vec![counts(LineSize::B64, &[1, 2])], vec![]);
        let paired = Footprint::of_region(&before, Some(&after));
        let shown: Vec<_> = paired
            .iter()
            .map(|one| {
                (
                    one.kind,
                    one.line_bytes,
                    one.before.median(),
                    one.after.as_ref().map(|after| after.median()),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [(LineKind::Data, 32, 4, None), (LineKind::Data, 64, 3, Some(1)), (LineKind::Code, 64, 7, None)]
        );
    }
}
