//! The summary of the recorded calls, by region.

use crate::summary::quantiles::Quantiles;
use lineup_debuginfo::spelled;
use lineup_model::access::{Call, CallEnd, ThreadId};
use lineup_model::line::LineSize;
use lineup_recording::{CallSizes, Event, Reader, Selection, Summary};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;

/// One region's calls.
#[derive(Serialize)]
pub struct RegionSummary {
    /// The function, as its source spells it.
    pub name: String,
    /// The weight of its calls relative to those of other regions.
    pub weight: f64,
    /// Calls the program made; `None` when the recorder did not get to say.
    pub seen: Option<u64>,
    /// Calls recorded.
    pub recorded: u64,
    /// The same by thread, in the order of their numbers, where each thread has as many; else empty.
    pub recorded_by_thread: Vec<u64>,
    /// Recorded calls that were left by `longjmp` or by an exception.
    pub abandoned: u64,
    /// Ended with their thread.
    pub thread_ended: u64,
    /// Ended with the process.
    pub process_ended: u64,
    /// Had not ended when the recording did.
    pub unfinished: u64,
    /// Recorded calls in which the dynamic linker looked up functions, and its instructions, which are in no other
    /// figure.
    pub binding_calls: u64,
    /// Instructions of those look-ups.
    pub binding_instructions: u64,
    /// Recorded calls with more accesses than are kept; `None` as for `seen`.
    pub truncated: Option<u64>,
    /// Calls inside signal handlers that interrupted a recorded call; `None` as for `seen`.
    pub in_handlers: Option<u64>,
    /// Blocks entered whose accesses were not recorded.
    pub missed_blocks: u64,
    /// Instructions per call that ended; `None` without such calls.
    pub instructions: Option<Quantiles>,
    /// Lines of data, as for `instructions`.
    pub data_lines: Option<Quantiles>,
    /// Lines of code, as for `instructions`.
    pub code_lines: Option<Quantiles>,
    /// Instructions of all calls, where not all are recorded and the others were counted.
    pub all_calls: Option<AllCalls>,
}

/// Instructions per call over all calls of a region.
#[derive(Serialize)]
pub struct AllCalls {
    /// All calls.
    pub calls: u64,
    /// Their median.
    pub median: u64,
    /// Their mean.
    pub mean: f64,
    /// The recorded calls are not like these: their median or mean differs by more than a tenth.
    pub differs: bool,
}

impl AllCalls {
    /// `None` when only recorded calls were counted.
    fn of(sizes: &CallSizes, calls: u64, recorded: Option<Quantiles>) -> Option<AllCalls> {
        if sizes.calls() <= calls {
            return None;
        }
        let differs = recorded.is_some_and(|recorded| !sizes.is_like(recorded.median as f64, recorded.mean));
        Some(AllCalls { calls: sizes.calls(), median: sizes.median()?, mean: sizes.mean()?, differs })
    }
}

/// Figures of one region while the recording is read.
#[derive(Default)]
struct Tally {
    recorded: u64,
    by_thread: BTreeMap<ThreadId, u64>,
    abandoned: u64,
    thread_ended: u64,
    process_ended: u64,
    unfinished: u64,
    binding_calls: u64,
    binding_instructions: u64,
    missed_blocks: u64,
    instructions: Vec<u64>,
    data_lines: Vec<u64>,
    code_lines: Vec<u64>,
}

impl Tally {
    fn add(&mut self, call: &Call, line: LineSize) {
        self.recorded += 1;
        *self.by_thread.entry(call.thread).or_default() += 1;
        self.missed_blocks += call.missed_blocks;
        self.binding_calls += u64::from(call.binding_instructions > 0);
        self.binding_instructions += call.binding_instructions;
        match call.end {
            CallEnd::Returned => {}
            CallEnd::Abandoned => self.abandoned += 1,
            CallEnd::ThreadEnded => self.thread_ended += 1,
            CallEnd::ProcessEnded => self.process_ended += 1,
            CallEnd::Unfinished => {
                self.unfinished += 1;
                return;
            }
        }
        let data = call.accesses.iter().map(|access| (access.address, u64::from(access.size_bytes)));
        self.data_lines.push(line.count_distinct(data));
        self.code_lines.push(line.count_distinct(call.code_granules.iter().map(|granule| (*granule, 1))));
        self.instructions.push(call.instructions);
    }
}

/// Reads a recording through; `line` is the size of the lines that are counted.
pub fn summarise<R: Read>(mut reader: Reader<R>, line: LineSize) -> Vec<RegionSummary> {
    let regions = reader.header().regions.clone();
    let is_by_thread = reader.header().selection == Selection::Threads;
    let mut tallies: Vec<Tally> = regions.iter().map(|_| Tally::default()).collect();
    let mut summary: Option<Summary> = None;
    for event in reader.by_ref() {
        match event {
            Event::Call(call) => {
                if let Some(tally) = tallies.get_mut(usize::from(call.region.0)) {
                    tally.add(&call, line);
                }
            }
            Event::Summary(found) => Summary::add_to(&mut summary, found),
            _ => {}
        }
    }
    let counts = |index: usize| summary.as_ref().and_then(|summary| summary.regions.get(index));
    let summaries =
        regions.iter().zip(tallies).enumerate().map(|(index, ((_, region), tally))| RegionSummary {
            name: spelled(&region.name),
            weight: region.weight,
            seen: counts(index).map(|counts| counts.seen),
            recorded: tally.recorded,
            recorded_by_thread: if is_by_thread {
                tally.by_thread.into_values().collect()
            } else {
                Vec::new()
            },
            abandoned: tally.abandoned,
            thread_ended: tally.thread_ended,
            process_ended: tally.process_ended,
            binding_calls: tally.binding_calls,
            binding_instructions: tally.binding_instructions,
            unfinished: tally.unfinished,
            truncated: counts(index).map(|counts| counts.truncated),
            in_handlers: counts(index).map(|counts| counts.in_handlers),
            missed_blocks: tally.missed_blocks,
            instructions: Quantiles::of(&tally.instructions),
            data_lines: Quantiles::of(&tally.data_lines),
            code_lines: Quantiles::of(&tally.code_lines),
            all_calls: summary.as_ref().and_then(|summary| {
                let recorded = Quantiles::of(&tally.instructions);
                AllCalls::of(summary.all_calls.get(index)?, tally.recorded, recorded)
            }),
        });
    summaries.collect()
}
