//! The saving of a proposal as a share of a region's total need.

use crate::options::Options;
use crate::proposal::{Description, RegionLines, RegionSaving, StallShare};
use crate::usage::Usage;
use lineup_explain::stalls::RegionStalls;
use lineup_model::figure;

/// The saving in each region at the line size that decides, under the recorded data model; the greatest share first.
/// Regions that save nothing are left out, those that lose are not.
pub(crate) fn of_lines(usage: &Usage, lines: &[RegionLines], primary_bytes: u64) -> Vec<RegionSaving> {
    let recorded = usage.abi.data_model();
    let decides = lines.iter().filter(|row| row.line_bytes == primary_bytes && row.data_model == recorded);
    let worth = |row: &RegionLines| {
        let scale = usage.scale(row.id);
        let of_lines = scale.lines(primary_bytes).filter(|lines| *lines > 0.0);
        let share = of_lines.map(|lines| row.gain() / lines);
        RegionSaving {
            id: row.id,
            region: row.region.clone(),
            lines_saved: row.gain(),
            of_lines,
            share,
            stalls: share.zip(scale.stalls).and_then(|(share, stalls)| stalled(share, stalls)),
            calls_per_second: scale.calls_per_second,
        }
    };
    let mut all: Vec<RegionSaving> =
        decides.map(worth).filter(|worth| worth.lines_saved.abs() >= 0.005).collect();
    all.sort_by(|a, b| b.share.unwrap_or(0.0).total_cmp(&a.share.unwrap_or(0.0)).then(a.id.cmp(&b.id)));
    all
}

/// The modelled stalls for a share of a region's lines of data, if all lines miss alike.
fn stalled(share: f64, stalls: RegionStalls) -> Option<StallShare> {
    let cycles = share * stalls.data_cycles_per_call;
    let of_region = Some(cycles / stalls.cycles_per_call).filter(|_| stalls.cycles_per_call > 0.0)?;
    Some(StallShare { cycles, of_region, of_program: stalls.of_program.map(|region| region * of_region) })
}

/// A smaller share of lines is shown as nothing.
const LEAST_SHOWN: f64 = 0.00005;

/// The proposal, shortened to one sentence, when it saves less of every region's lines than the user asked for. A gain
/// too small to be shown counts as none. `None` when it saves enough, or when the region's total need is not known.
pub(crate) fn too_little(usage: &Usage, options: &Options, described: &Description) -> Option<Description> {
    let worth = of_lines(usage, &described.lines, options.primary.bytes());
    if described.lines.is_empty() || worth.iter().any(|worth| worth.share.is_none()) {
        return None;
    }
    let best = worth.iter().filter_map(|worth| worth.share).max_by(f64::total_cmp).unwrap_or(0.0);
    if best >= options.least_share {
        return None;
    }
    let least = figure::level(options.least_share);
    let summary = match best >= LEAST_SHOWN {
        true => format!(
            "Would save at most {} of the lines of any region: less than the {least} asked for with --least-share.",
            figure::share(best)
        ),
        false => format!("Would save no line of any region: --least-share asks for {least}."),
    };
    Some(Description { worth, ..Description::told(described.kind, &described.target, summary) })
}
