//! Every call as a slice of a trace: a process for each recording, a track for each CPU.

use crate::exports::{ChromeTrace, Slice};
use lineup_tail::{Metric, Run};
use serde_json::{Map, Value};

/// All calls and spans of all runs, for Perfetto. A tick is an instruction of the whole system; it is shown as a nanosecond.
pub fn calls_chrome(runs: &[Run]) -> String {
    let mut trace = ChromeTrace::default();
    trace.about(
        "tick",
        "an instruction of the whole system, shown as a nanosecond: with one processor at a time, its clock",
    );
    for (process, run) in (1..).zip(runs) {
        trace.process(process, run.facts.label.as_str());
        for measured in &run.measured {
            let call = &measured.call;
            let track = (process, u64::from(call.cpu));
            trace.track(track, format!("CPU {}", call.cpu));
            let region = run.regions.get(call.region).map_or("?", |region| &region.name);
            let mut arguments: Map<String, Value> =
                Metric::ALL.iter().map(|metric| (metric.key().to_string(), metric.of(call).into())).collect();
            arguments.insert("number".to_string(), call.sequence.into());
            arguments.insert("arm".to_string(), measured.arm.name().into());
            arguments.insert("interrupts".to_string(), call.interrupts.into());
            arguments.insert("switches".to_string(), call.switches.into());
            trace.slice(Slice {
                track,
                name: region.to_string(),
                begin: call.begun_at,
                end: call.ended_at.max(call.begun_at),
                arguments,
            });
        }
    }
    trace.text()
}
