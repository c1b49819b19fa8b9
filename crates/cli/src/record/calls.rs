//! What the recorded calls come to, by region.

use anyhow::{Context, Result};
use lineup_explain::quantiles::Quantiles;
use lineup_model::access::{Call, CallEnd};
use lineup_model::line::LineSize;
use lineup_recording::{Event, Reader, Summary};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::BufReader;
use std::path::Path;

/// One region's calls.
#[derive(Serialize)]
pub(super) struct RegionSummary {
    pub(super) name: String,
    pub(super) weight: f64,
    /// Calls the program made; `None` when the recorder did not get to say.
    pub(super) seen: Option<u64>,
    pub(super) recorded: u64,
    pub(super) abandoned: u64,
    pub(super) unfinished: u64,
    /// Recorded calls with more accesses than are kept; `None` as for `seen`.
    pub(super) truncated: Option<u64>,
    /// Calls inside signal handlers that interrupted a recorded call; `None` as for `seen`.
    pub(super) in_handlers: Option<u64>,
    /// Blocks entered whose accesses were not recorded.
    pub(super) missed_blocks: u64,
    /// Per call that ended; `None` when there is none.
    pub(super) instructions: Option<Quantiles>,
    pub(super) data_lines: Option<Quantiles>,
    pub(super) code_lines: Option<Quantiles>,
}

/// Figures of one region while the recording is read.
#[derive(Default)]
struct Tally {
    recorded: u64,
    abandoned: u64,
    unfinished: u64,
    missed_blocks: u64,
    instructions: Vec<u64>,
    data_lines: Vec<u64>,
    code_lines: Vec<u64>,
}

impl Tally {
    fn add(&mut self, call: &Call, line: LineSize) {
        self.recorded += 1;
        self.missed_blocks += call.missed_blocks;
        self.abandoned += u64::from(call.end == CallEnd::Abandoned);
        if call.end == CallEnd::Unfinished {
            self.unfinished += 1;
            return;
        }
        let data =
            call.accesses.iter().flat_map(|access| line.lines(access.address, u64::from(access.size_bytes)));
        self.data_lines.push(data.collect::<BTreeSet<u64>>().len() as u64);
        let code = call.code_granules.iter().flat_map(|granule| line.lines(*granule, 1));
        self.code_lines.push(code.collect::<BTreeSet<u64>>().len() as u64);
        self.instructions.push(call.instructions);
    }
}

/// Reads a recording through.
pub(super) fn summarise(recording: &Path, line: LineSize) -> Result<Vec<RegionSummary>> {
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    let mut reader = Reader::new(BufReader::new(file))?;
    let regions = reader.header().regions.clone();
    let mut tallies: Vec<Tally> = regions.iter().map(|_| Tally::default()).collect();
    let mut summary: Option<Summary> = None;
    for event in reader.by_ref() {
        match event {
            Event::Call(call) => {
                if let Some(tally) = tallies.get_mut(usize::from(call.region.0)) {
                    tally.add(&call, line);
                }
            }
            Event::Summary(found) => summary = Some(found),
            _ => {}
        }
    }
    let counts = |index: usize| summary.as_ref().and_then(|summary| summary.regions.get(index));
    let summaries =
        regions.iter().zip(tallies).enumerate().map(|(index, ((_, region), tally))| RegionSummary {
            name: region.name.clone(),
            weight: region.weight,
            seen: counts(index).map(|counts| counts.seen),
            recorded: tally.recorded,
            abandoned: tally.abandoned,
            unfinished: tally.unfinished,
            truncated: counts(index).map(|counts| counts.truncated),
            in_handlers: counts(index).map(|counts| counts.in_handlers),
            missed_blocks: tally.missed_blocks,
            instructions: Quantiles::of(&tally.instructions),
            data_lines: Quantiles::of(&tally.data_lines),
            code_lines: Quantiles::of(&tally.code_lines),
        });
    Ok(summaries.collect())
}
