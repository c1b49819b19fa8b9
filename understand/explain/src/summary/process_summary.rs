//! Calls of each region, or executed instructions, by process.

use lineup_model::access::ProcessId;
use lineup_model::process::{Origin, Process};
use lineup_recording::{Event, Reader, Summary};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;

/// One process of a recorded program, from its start or its last `exec` on.
#[derive(Serialize)]
pub struct ProcessSummary {
    /// Its number in the recording; the first has 0.
    pub number: u32,
    /// The file of the program that it ran.
    pub program: String,
    /// The number that the system gave it.
    pub pid: u32,
    /// The event that started it.
    pub origin: &'static str,
    /// The number, in the recording, of the process that it was forked off by or that became it; the first has none.
    pub parent: Option<u32>,
    /// Instructions that it executed, when whole programs were counted.
    pub instructions: Option<u64>,
    /// Its calls, by region.
    pub regions: Vec<ProcessCalls>,
}

/// Calls of one region by one process.
#[derive(Serialize)]
pub struct ProcessCalls {
    /// The function, as it was named.
    pub name: String,
    /// Calls that it made; `None` when its recorder did not get to say.
    pub seen: Option<u64>,
    /// Calls recorded.
    pub recorded: u64,
}

impl ProcessSummary {
    /// True when any of its calls is known.
    pub fn has_calls(&self) -> bool {
        self.regions.iter().any(|region| region.recorded > 0 || region.seen.is_some_and(|seen| seen > 0))
    }
}

/// Reads a recording through. None for one without processes.
pub fn summarise<R: Read>(mut reader: Reader<R>) -> Vec<ProcessSummary> {
    let regions = reader.header().regions.clone();
    let mut processes: BTreeMap<ProcessId, Process> = BTreeMap::new();
    let mut recorded: BTreeMap<(ProcessId, u16), u64> = BTreeMap::new();
    let mut counted: BTreeMap<ProcessId, Summary> = BTreeMap::new();
    for event in reader.by_ref() {
        match event {
            Event::Process(process) => _ = processes.insert(process.id, process),
            Event::Call(call) => *recorded.entry((call.process, call.region.0)).or_default() += 1,
            Event::Summary(summary) => _ = counted.insert(summary.process, summary),
            _ => {}
        }
    }
    let summary = |(id, process): (ProcessId, Process)| {
        let (origin, parent) = match process.origin {
            Origin::Started => ("started", None),
            Origin::Forked(parent) => ("forked", Some(parent.0)),
            Origin::Executed(parent) => ("executed", Some(parent.0)),
        };
        let calls = regions.iter().map(|(region, named)| ProcessCalls {
            name: named.name.clone(),
            seen: counted.get(&id).and_then(|own| Some(own.regions.get(usize::from(region.0))?.seen)),
            recorded: recorded.get(&(id, region.0)).copied().unwrap_or_default(),
        });
        let regions = calls.collect();
        ProcessSummary {
            number: id.0,
            program: process.program,
            pid: process.system_id,
            origin,
            parent,
            instructions: counted.get(&id).and_then(|own| own.total_instructions),
            regions,
        }
    };
    processes.into_iter().map(summary).collect()
}
