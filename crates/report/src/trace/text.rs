//! A trace, and the causes of a region's tail, as text for a terminal.

use super::high_water_listing;
use crate::visible::one_line;
use lineup_stats::interval::IntervalEstimate;
use lineup_trace::attribution::{Attribution, Evidence};
use lineup_trace::modes::Mode;
use lineup_trace::summary::{Distribution, NameSummary, Summary, summarise};
use lineup_trace::{NameKind, Trace};
use std::fmt::Write as _;

fn percent(share: &IntervalEstimate) -> String {
    format!("{:>6.1} %  ({:.1} to {:.1} %)", share.value * 100.0, share.low * 100.0, share.high * 100.0)
}

/// How much of a region's tail each cause makes up.
pub fn attribution_text(found: &Attribution) -> String {
    let mut text = format!(
        "{}: {} calls without intervention; median {:.0} ns; the slowest {:.1} %, beyond {:.0} ns: mean {:.0} ns, each \
         counted up to {:.0} ns; counters: {:?}\n",
        one_line(&found.region),
        found.calls,
        found.median_ns,
        (1.0 - found.tail.from) * 100.0,
        found.window.from_ns,
        found.tail_ns,
        found.window.to_ns,
        found.rung
    );
    let mut line = |words: String| {
        text.push_str("  ");
        text.push_str(words.trim_end());
        text.push('\n');
    };
    line(format!("{:<18} {:<28} {}", "cause", "share of the time beyond", "of the median"));
    for finding in &found.findings {
        let name = finding.cause.name();
        line(match &finding.evidence {
            Evidence::Intervention { median_ns, tail_share, .. } => format!(
                "{name:<18} {:<28} {:.0} ns ({:.0} to {:.0})",
                percent(tail_share),
                median_ns.value,
                median_ns.low,
                median_ns.high
            ),
            Evidence::Association { tail_share, .. } => {
                format!("{name:<18} {:>6.1} %  (by association alone)", tail_share * 100.0)
            }
            Evidence::Unobserved { why } => format!("{name:<18} not observed: {why}"),
        });
        if let Some(raised) = &finding.flush_raises_median_ns {
            line(format!(
                "{:<18} a flush raises the median by {:.0} ns ({:.0} to {:.0})",
                "", raised.value, raised.low, raised.high
            ));
        }
    }
    if let Some(left) = &found.unexplained_tail_share {
        line(format!("{:<18} {}", "unexplained", percent(left)));
    }
    if let Some(overlap) =
        found.overlap().filter(|_| found.findings.iter().filter(|f| f.tail_share().is_some()).count() > 1)
    {
        line(format!("{:<18} {:>6.1} %  (in more than one share)", "overlap", overlap * 100.0));
    }
    line(match found.first_cause {
        Some(cause) => format!("first cause of the tail: {}", cause.name()),
        None => "no tested cause explains the tail beyond doubt".to_owned(),
    });
    text
}

/// What a trace holds: losses, distributions, modes, new maxima.
pub fn trace_text(label: &str, trace: &Trace) -> String {
    let summary = summarise(trace);
    let mut text = format!(
        "{}: process {}, {} threads, counters: {:?}\n",
        one_line(label),
        trace.pid,
        trace.threads.len(),
        trace.rung
    );
    text.push_str(&losses_text(&summary));
    let _ = writeln!(
        text,
        "{:<24} {:<7} {:>10} {:>9} {:>9} {:>9} {:>9} {:>10}",
        "name", "kind", "count", "min", "median", "p90", "p99", "max"
    );
    for name in summary.names.iter().filter(|name| name.kind != NameKind::Mark) {
        row(&mut text, name, "ns", &name.duration_ns);
        if name.lock_wait_ns.quantiles.is_some_and(|quantiles| quantiles.max > 0) {
            row(&mut text, name, "wait ns", &name.lock_wait_ns);
        }
        name.counters.iter().for_each(|(counter, values)| row(&mut text, name, counter, values));
    }
    for name in &summary.names {
        let Some(modes) = name.modes.as_deref() else { continue };
        let shown = one_line(&name.name);
        let _ = writeln!(text, "{}", modes_text(&shown, modes));
    }
    let listing = high_water_listing(trace);
    if !listing.is_empty() {
        text.push('\n');
        text.push_str(&listing);
    }
    text
}

fn modes_text(name: &str, modes: &[Mode]) -> String {
    let one = |mode: &Mode| {
        let (share, centre, low, high) = (mode.share * 100.0, mode.centre_ns, mode.low_ns, mode.high_ns);
        format!("{share:.1} % near {centre:.0} ns ({low:.0} to {high:.0})")
    };
    let all: Vec<String> = modes.iter().map(one).collect();
    let count = if modes.len() == 1 { "one mode".to_owned() } else { format!("{} modes", modes.len()) };
    format!("{name}: {count} of the duration: {}", all.join("; "))
}

fn losses_text(summary: &Summary) -> String {
    let lost = summary.losses;
    format!(
        "lost: {} overwritten, {} when full, {} in handlers, {} without room; {} unbalanced; {} open at the end\n",
        lost.overwritten, lost.full, lost.nested, lost.without_area, lost.unbalanced, lost.in_progress
    )
}

fn row(text: &mut String, name: &NameSummary, what: &str, values: &Distribution) {
    let (shown, what) = (one_line(&name.name), one_line(what));
    let numbers = match values.quantiles {
        Some(q) => format!("{:>9} {:>9} {:>9} {:>9} {:>10}", q.min, q.median, q.p90, q.p99, q.max),
        None => "not observed".to_owned(),
    };
    let _ = writeln!(text, "{shown:<24} {what:<7} {:>10} {numbers}", values.count);
}
