//! A trace, and the causes of a region's tail, as text for a terminal.

use super::{TracedRun, high_water_listing};
use crate::text::{Align, Extent, Table, TextStyle, screen};
use crate::visible::one_line;
use lineup_model::figure;
use lineup_model::figure::whole;
use lineup_stats::interval::IntervalEstimate;
use lineup_trace::NameKind;
use lineup_trace::attribution::{Attribution, Evidence};
use lineup_trace::modes::Mode;
use lineup_trace::summary::{Distribution, NameSummary, Summary, summarise};
use std::fmt::Write as _;

fn percent(share: &IntervalEstimate) -> String {
    format!(
        "{:>8}  ({} to {})",
        figure::share(share.value),
        figure::share(share.low),
        figure::share(share.high)
    )
}

/// Each cause's share of a region's tail.
fn attribution_text(found: &Attribution) -> String {
    let mut text = format!(
        "{}: {} calls without intervention; median {:.0} ns; the slowest {}, beyond {:.0} ns: mean {:.0} ns, each \
         counted up to {:.0} ns; counters: {:?}\n",
        one_line(&found.region),
        found.calls,
        found.median_ns,
        figure::share(1.0 - found.tail.from),
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

/// The causes of the tails of several regions. The first screen has those of the first regions.
pub fn attributions_text(found: &[Attribution], style: TextStyle, extent: Extent) -> String {
    let text: String = found.iter().map(attribution_text).collect();
    screen(&text, style, extent, "--full, or one region: --region NAME")
}

/// The content of traces. The first screen has losses, the distributions of durations and their modes; the full text
/// also has waits, counters and the listing of new maxima.
pub fn traces_text(runs: &[TracedRun], style: TextStyle, extent: Extent) -> String {
    let text: String = runs.iter().map(|run| trace_text(run, style, extent)).collect();
    let end = match extent {
        Extent::FirstScreen => "Waits, counters and the listing of new maxima: --full\n",
        Extent::All => "",
    };
    screen(&(text + end), style, extent, "--full")
}

fn trace_text(run: &TracedRun, style: TextStyle, extent: Extent) -> String {
    let trace = &run.trace;
    let summary = summarise(trace);
    let mut text = format!(
        "{}: process {}, {} threads, counters: {:?}\n",
        one_line(&run.label),
        trace.pid,
        trace.threads.len(),
        trace.rung
    );
    text.push_str(&losses_text(&summary));
    text.push_str(&distributions(&summary, extent).render(style));
    for name in &summary.names {
        let Some(modes) = name.modes.as_deref() else { continue };
        let shown = one_line(&name.name);
        let _ = writeln!(text, "{}", modes_text(&shown, modes));
    }
    let listing = high_water_listing(trace);
    if extent == Extent::All && !listing.is_empty() {
        text.push('\n');
        text.push_str(&listing);
    }
    text
}

fn distributions(summary: &Summary, extent: Extent) -> Table {
    let words = ["name", "what"].map(|name| (name, Align::Left));
    let numbers = ["count", "min", "median", "p90", "p99", "max"].map(|name| (name, Align::Right));
    let mut table = Table::new(words.into_iter().chain(numbers));
    for name in summary.names.iter().filter(|name| name.kind != NameKind::Mark) {
        row(&mut table, name, "ns", &name.duration_ns);
        if extent == Extent::FirstScreen {
            continue;
        }
        if name.lock_wait_ns.quantiles.is_some_and(|quantiles| quantiles.max > 0) {
            row(&mut table, name, "wait ns", &name.lock_wait_ns);
        }
        name.counters.iter().for_each(|(counter, values)| row(&mut table, name, counter, values));
    }
    table
}

fn modes_text(name: &str, modes: &[Mode]) -> String {
    let one = |mode: &Mode| {
        let (share, centre, low, high) =
            (figure::share(mode.share), mode.centre_ns, mode.low_ns, mode.high_ns);
        format!("{share} near {centre:.0} ns ({low:.0} to {high:.0})")
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

fn row(table: &mut Table, name: &NameSummary, what: &str, values: &Distribution) {
    let words = [name.name.clone(), what.to_owned(), whole(values.count)];
    let numbers = match values.quantiles {
        Some(q) => [q.min, q.median, q.p90, q.p99, q.max].map(whole),
        None => ["not observed", "", "", "", ""].map(str::to_owned),
    };
    table.row(words.into_iter().chain(numbers));
}
