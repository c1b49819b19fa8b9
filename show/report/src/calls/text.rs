//! Recorded calls for a terminal or a pipe.

use super::findings::{coefficient, estimate};
use super::{Calls, findings, high_water_listing};
use crate::text::{Align, Extent, Table, TextStyle, screen};
use crate::visible::{many_lines, one_line};
use lineup_model::figure::{UNKNOWN, mean, mean_or_unknown, share, whole};
use lineup_tail::Metric;
use lineup_tail::analysis::{RegionAnalysis, RegionRun};
use lineup_tail::distribution::Difference;
use lineup_tail::second::SecondTail;
use lineup_tail::spans::Spans;

/// The report. The first screen has a row for each region and the main results of those to be shown; the full report
/// also has their tables and listings.
pub fn calls_text(calls: &Calls<'_>, style: TextStyle, extent: Extent) -> String {
    match extent {
        Extent::FirstScreen => screen(&in_short(calls, style), style, extent, "--full"),
        Extent::All => screen(&whole_text(calls, style), style, extent, ""),
    }
}

fn in_short(calls: &Calls<'_>, style: TextStyle) -> String {
    let mut out = String::new();
    for facts in &calls.analysis.runs {
        let label = one_line(&facts.label);
        notes(facts).iter().for_each(|note| out.push_str(&format!("{label}: {note}\n")));
    }
    calls.regions().for_each(|region| out.push_str(&said(calls, region)));
    out.push_str(&format!("\n{}", overview(calls, style)));
    out
}

fn whole_text(calls: &Calls<'_>, style: TextStyle) -> String {
    let mut out = String::new();
    for facts in &calls.analysis.runs {
        out.push_str(&format!(
            "{}: {}; caches {}; {} instructions, {} interrupts, {} while tracked as off\n",
            one_line(&facts.label),
            one_line(&facts.command.join(" ")),
            one_line(&facts.caches.join(" ")),
            facts.instructions.map_or_else(|| UNKNOWN.to_owned(), whole),
            facts.interrupts.map_or_else(|| UNKNOWN.to_owned(), whole),
            facts.interrupts_while_off.map_or_else(|| UNKNOWN.to_owned(), whole),
        ));
        for note in notes(facts) {
            out.push_str(&format!("  {note}\n"));
        }
    }
    out.push_str(&format!("\n{}", overview(calls, style)));
    for region in calls.regions() {
        out.push_str(&in_full(calls, region, style));
    }
    out
}

/// A region's name and main results, in sentences.
fn said(calls: &Calls<'_>, region: &RegionAnalysis) -> String {
    let sentences = findings(calls, region);
    let lines = sentences.iter().map(|sentence| format!("  {}\n", many_lines(sentence)));
    format!("{}\n", one_line(&region.name)) + &lines.collect::<String>()
}

/// A recording's problems, in sentences.
pub(super) fn notes(facts: &lineup_tail::run::Facts) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(damage) = &facts.damage {
        notes.push(format!("cut off: {}; what stands before is used", one_line(damage)));
    } else if !facts.is_complete {
        notes.push("the recording ended before its end marker was reached".to_owned());
    }
    if facts.interrupts_while_off.is_some_and(|count| count > 0) {
        notes.push(
            "interrupts came while they were tracked as off: spans with interrupts off are not exact"
                .to_owned(),
        );
    }
    if facts.failed_flag_checks.is_some_and(|count| count > 0) {
        notes.push("the kernel showed another interrupt flag than the tracked one: spans with interrupts off are not exact".to_owned());
    }
    if let Some(count) = facts.flag_lost.filter(|count| *count > 0) {
        notes.push(format!(
            "the interrupt flag was unknown {} times: spans that this cut are left out",
            whole(count)
        ));
    }
    if !facts.has_symbols {
        notes.push("no symbols: functions are shown by address; give --symbols".to_owned());
    }
    notes
}

fn overview(calls: &Calls<'_>, style: TextStyle) -> String {
    let figures = ["region", "run", "arm"].map(|name| (name, Align::Left));
    let numbers = [
        "calls",
        "instr. median",
        "p99",
        "max",
        "L1I misses median",
        "p99",
        "max",
        "cycles median",
        "p99",
        "max",
    ];
    let mut table = Table::new(figures.into_iter().chain(numbers.map(|name| (name, Align::Right))));
    for region in &calls.analysis.regions {
        for run in &region.runs {
            for arm in &run.arms {
                let mut row =
                    vec![region.name.clone(), calls.label(run.run).to_owned(), arm.arm.name().to_owned()];
                let of = |metric| arm.distributions.iter().find(|d| d.metric == metric);
                row.push(of(Metric::Cycles).map_or(0, |d| d.calls).to_string());
                for metric in [Metric::Instructions, Metric::CodeMissesL1, Metric::Cycles] {
                    let Some(d) = of(metric) else { continue };
                    row.extend([mean(d.median), mean(d.p99), mean(d.max)]);
                }
                table.row(row);
            }
        }
        if region.runs.is_empty() {
            table.row([region.name.as_str(), UNKNOWN, UNKNOWN, "0"]);
        }
    }
    table.render(style)
}

fn in_full(calls: &Calls<'_>, region: &RegionAnalysis, style: TextStyle) -> String {
    let mut out = format!("\n== {}\n\n", one_line(&region.name));
    for sentence in findings(calls, region) {
        out.push_str(&format!("{}\n", many_lines(&sentence)));
    }
    out.push_str(&format!("\n{}", distributions(calls, region, style)));
    out.push_str(&correlations(calls, region, style));
    out.push_str(&all_differences(calls, region, style));
    for run in &region.runs {
        let label = one_line(calls.label(run.run));
        if run.modes.len() > 1 {
            out.push_str(&format!(
                "\n{label}: cycles fall into {} groups\n{}",
                run.modes.len(),
                modes(run, style)
            ));
        }
        if let Some(tail) = run.second_tail.as_ref().filter(|tail| tail.tail_calls > 0) {
            out.push_str(&format!("\n{label}: the second tail\n{}", second_tail(tail, style)));
        }
        if let Some(spans) = &run.spans {
            out.push_str(&format!("\n{label}: the longest\n{}", longest(spans, style)));
        }
        out.push_str(&format!("\n{label}: new maxima\n{}", high_water_listing(run)));
    }
    out
}

fn distributions(calls: &Calls<'_>, region: &RegionAnalysis, style: TextStyle) -> String {
    let words = ["run", "arm", "count"].map(|name| (name, Align::Left));
    let numbers = ["calls", "min", "median", "p99", "max", "mean", "± deviation"];
    let mut table = Table::new(words.into_iter().chain(numbers.map(|name| (name, Align::Right))));
    for run in &region.runs {
        for arm in &run.arms {
            for d in arm.distributions.iter().filter(|d| d.max > 0.0) {
                let numbers = [d.min, d.median, d.p99, d.max, d.mean].map(mean);
                let words = [
                    calls.label(run.run).to_owned(),
                    arm.arm.name().into(),
                    d.metric.name().into(),
                    d.calls.to_string(),
                ];
                table.row(words.into_iter().chain(numbers).chain([mean_or_unknown(d.deviation)]));
            }
        }
    }
    table.render(style)
}

fn correlations(calls: &Calls<'_>, region: &RegionAnalysis, style: TextStyle) -> String {
    let words = ["run", "cycles with", "Pearson [95 %]", "Spearman [95 %]"].map(|name| (name, Align::Left));
    let mut table = Table::new(words);
    for run in &region.runs {
        for found in &run.correlations {
            table.row([
                calls.label(run.run),
                found.with.name(),
                &coefficient(&found.pearson),
                &coefficient(&found.spearman),
            ]);
        }
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render(style)) }
}

fn all_differences(calls: &Calls<'_>, region: &RegionAnalysis, style: TextStyle) -> String {
    let columns =
        [("compared", Align::Left), ("count", Align::Left), ("of", Align::Left), ("first", Align::Right)];
    let mut table = Table::new(columns.into_iter().chain([("difference [95 %]", Align::Right)]));
    let mut add = |what: &str, differences: &[Difference]| {
        for one in differences {
            let (first, difference) = (mean(one.first), estimate(&one.difference));
            table.row([what, one.metric.name(), one.statistic.name(), &first, &difference]);
        }
    };
    for run in &region.runs {
        for arms in &run.between_arms {
            let label = calls.label(run.run);
            add(&format!("{label}: {} against {}", arms.to.name(), arms.from.name()), &arms.differences);
        }
    }
    for runs in &region.between_runs {
        add(&format!("{} against {}", calls.label(runs.to), calls.label(runs.from)), &runs.differences);
    }
    if table.is_empty() { String::new() } else { format!("\n{}", table.render(style)) }
}

fn modes(run: &RegionRun, style: TextStyle) -> String {
    let mut table = Table::new(["share", "mean cycles", "from", "to"].map(|name| (name, Align::Right)));
    for mode in &run.modes {
        table.row([share(mode.share), mean(mode.mean_cycles), mean(mode.low_cycles), mean(mode.high_cycles)]);
    }
    table.render(style)
}

fn second_tail(tail: &SecondTail, style: TextStyle) -> String {
    let mut out = format!(
        "{} of {} calls above {} instructions; most instructions {} × peak, most I-stall cycles of the tail {} × peak\n",
        tail.tail_calls,
        tail.tail_calls + tail.usual_calls,
        mean(tail.above_instructions),
        mean_or_unknown(tail.instructions_per_peak),
        mean_or_unknown(tail.code_stall_per_peak)
    );
    out.push_str(&tail_means(tail).render(style));
    out.push_str(&format!(
        "accesses and code kept of {} calls of the tail and {} usual ones\n",
        tail.kept_tail_calls, tail.kept_usual_calls
    ));
    for class in &tail.classes {
        out.push_str(&format!(
            "{}: in {} of {} of the tail, {} usual ones; seen by {}\n",
            class.class.name(),
            class.tail_calls,
            super::findings::of_calls(tail, class.class),
            class.usual_calls,
            one_line(&class.functions.join(", "))
        ));
    }
    if !tail.functions.is_empty() {
        out.push_str(&tail_functions(tail).render(style));
    }
    out
}

fn tail_means(tail: &SecondTail) -> Table {
    let mut table =
        Table::new([("mean per call", Align::Left), ("usual", Align::Right), ("tail", Align::Right)]);
    for means in tail.means.iter().filter(|means| means.usual + means.tail > 0.0) {
        table.row([means.metric.name(), &mean(means.usual), &mean(means.tail)]);
    }
    for inner in &tail.regions {
        let name = |what: &str| format!("{}: {what}", inner.region);
        table.row([name("calls"), mean(inner.calls_per_usual_call), mean(inner.calls_per_tail_call)]);
        table.row([
            name("instructions"),
            mean(inner.instructions_per_usual_call),
            mean(inner.instructions_per_tail_call),
        ]);
    }
    table
}

fn tail_functions(tail: &SecondTail) -> Table {
    let numbers =
        ["tail calls", "usual calls", "accesses / tail call", "/ usual", "code bytes / tail call", "/ usual"];
    let numbers = numbers.map(|name| (name, Align::Right));
    let mut table = Table::new([("function", Align::Left)].into_iter().chain(numbers));
    for function in &tail.functions {
        table.row([
            function.function.clone(),
            function.tail_calls.to_string(),
            function.usual_calls.to_string(),
            mean(function.accesses_per_tail_call),
            mean(function.accesses_per_usual_call),
            mean(function.code_bytes_per_tail_call),
            mean(function.code_bytes_per_usual_call),
        ]);
    }
    table
}

fn longest(spans: &Spans, style: TextStyle) -> String {
    let numbers = ["cycles", "I-stall", "instructions"].map(|name| (name, Align::Right));
    let words = ["from", "to", "inside"].map(|name| (name, Align::Left));
    let mut table = Table::new(numbers.into_iter().chain(words));
    for span in &spans.longest {
        table.row([
            whole(span.cost.cycles),
            whole(span.cost.code_stall_cycles),
            whole(span.cost.instructions),
            span.from.text(),
            span.to.text(),
            span.inside.join(" "),
        ]);
    }
    table.render(style)
}
