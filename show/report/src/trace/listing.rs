//! The new maxima, laid out as in the talk that the tracer is modelled on: for each a `#mark` line with its number and
//! microseconds, then the start, each event with the microseconds since the start, its name and the counters, and the
//! end.

use crate::visible::one_line;
use lineup_trace::{Event, HighWater, Kind, Trace};

/// The new maxima of every thread; empty when none was kept.
pub fn high_water_listing(trace: &Trace) -> String {
    let mut lines = Vec::new();
    for thread in trace.threads.iter().filter(|thread| !thread.high_water.is_empty()) {
        lines.push(format!("# thread {} {}", thread.tid, one_line(&thread.name)));
        for (number, entry) in thread.high_water.iter().enumerate() {
            list(&mut lines, trace, number + 1, entry);
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn list(lines: &mut Vec<String>, trace: &Trace, number: usize, entry: &HighWater) {
    let name = |event: &Event| {
        trace.name(event.name).map_or_else(|| "?".to_owned(), |name| one_line(&name.text).into_owned())
    };
    let whole = &entry.event;
    let micros = |at_ns: u64| at_ns.saturating_sub(whole.start_ns) as f64 / 1e3;
    lines.push(format!(
        "#mark          : ----- {number} max: {:>12.3} us -----",
        whole.duration_ns as f64 / 1e3
    ));
    lines.push(format!("# start {}", name(whole)));
    if entry.inner_dropped > 0 {
        lines.push(format!("#          ({} earlier events were overwritten)", entry.inner_dropped));
    }
    for event in &entry.inner {
        let what = match event.kind {
            Kind::Mark => format!("= {}", event.argument),
            Kind::Lock => format!("waited {} ns, held {} ns", event.lock_wait_ns, event.duration_ns),
            Kind::LockGivenUp => format!("given up after {} ns", event.lock_wait_ns),
            Kind::Region | Kind::HighWaterHead => format!("took {} ns", event.duration_ns),
        };
        let at = micros(event.start_ns);
        lines.push(format!("# {at:>10.3} {} {what}{}", name(event), counters(trace, event)));
    }
    lines.push(format!("# end   {}{}", name(whole), counters(trace, whole)));
}

fn counters(trace: &Trace, event: &Event) -> String {
    let named =
        trace.counters.iter().zip(event.counters).filter_map(|(name, value)| Some((name.as_ref()?, value)));
    named.map(|(name, value)| format!(" {}={value}", one_line(name))).collect()
}
