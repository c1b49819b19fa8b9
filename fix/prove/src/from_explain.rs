//! Inputs of a proof from the results of `explain`.

use crate::conduct::RegionCalls;
use crate::footprint::{LineCounts, RegionFootprint};
use lineup_explain::Explained;
use lineup_explain::explanation::{LinesPerCall, RegionExplanation};
use lineup_explain::quantiles::Bar;
use lineup_model::line::LineSize;

impl RegionFootprint {
    /// Lines per call of a region.
    pub fn of_explained(region: &RegionExplanation) -> RegionFootprint {
        let counts = |lines: &LinesPerCall, bars: &[Bar]| {
            Some(LineCounts {
                line: LineSize::new(u32::try_from(lines.line_bytes).ok()?)?,
                calls_by_lines: bars.iter().map(|bar| (bar.value, bar.calls)).collect(),
            })
        };
        RegionFootprint {
            id: region.id,
            region: region.name.clone(),
            weight: region.weight,
            data: region.lines.iter().filter_map(|lines| counts(lines, &lines.data_distribution)).collect(),
            code: region.lines.iter().filter_map(|lines| counts(lines, &lines.code_distribution)).collect(),
        }
    }
}

impl RegionCalls {
    /// Calls of every region, made and recorded.
    pub fn of_explained(explained: &Explained) -> Vec<RegionCalls> {
        let calls = |region: &RegionExplanation| RegionCalls {
            id: region.id,
            region: region.name.clone(),
            made: explained.calls_made(region.id),
            recorded: region.calls,
        };
        explained.explanation.regions.iter().map(calls).collect()
    }
}
