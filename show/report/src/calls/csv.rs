//! Every call as a line of comma-separated values.

use crate::exports::{end, quoted};
use lineup_tail::{Metric, Run};
use std::fmt::Write;

/// All calls and spans of all runs with a head line; names are quoted. `arm` is the intervention before the call or the
/// one around it.
pub fn calls_csv(runs: &[Run]) -> String {
    let mut text = String::from("run,region,cpu,sequence,begun_at,ended_at,end,arm");
    Metric::ALL.iter().for_each(|metric| push(&mut text, format_args!(",{}", metric.key())));
    text.push_str(",interrupts,interrupt_instructions,switches,from,to\n");
    for run in runs {
        let label = quoted(&run.facts.label);
        for measured in &run.measured {
            let call = &measured.call;
            let region = run.regions.get(call.region).map_or("", |region| region.name.as_str());
            let (cpu, number) = (call.cpu, call.sequence);
            let end = end(call.end);
            push(
                &mut text,
                format_args!(
                    "{label},{},{cpu},{number},{},{},{end},{}",
                    quoted(region),
                    call.begun_at,
                    call.ended_at,
                    measured.arm.name()
                ),
            );
            Metric::ALL.iter().for_each(|metric| push(&mut text, format_args!(",{}", metric.of(call))));
            push(
                &mut text,
                format_args!(
                    ",{},{},{},{},{}\n",
                    call.interrupts,
                    call.interrupt_instructions,
                    call.switches,
                    quoted(&run.place(call.from_pc).text()),
                    quoted(&run.place(call.to_pc).text())
                ),
            );
        }
    }
    text
}

fn push(text: &mut String, piece: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(piece);
}
