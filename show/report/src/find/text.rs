//! Findings for people: one line each with its next command, then the tables.

use super::allocations::allocations_text;
use super::contexts::contexts_text;
use super::owners::owners_text;
use super::placements::{memory_text, pages_text, placements_text};
use super::rows::write_table;
use super::words;
use crate::text::{Align, Table, TextStyle};
use crate::visible::{one_line, shortened};
use lineup_find::{Finding, Findings, Footprint, Ranked};
use lineup_model::figure;
use lineup_model::figure::{counted, whole};
use lineup_model::sampling::ClockEvent;
use std::fmt::Write;

/// Functions shown that the model does not explain.
const DIFFERING: usize = 5;
/// Shares that differ by less are not worth a line.
const LEAST_DIFFERENCE: f64 = 0.02;
/// A smaller number of samples gets a remark.
const FEW_SAMPLES: u64 = 20;
/// Characters shown of a name: those of C++ templates have hundreds. JSON and the page have all.
const NAME: usize = 80;

/// The first page: findings, and tables with at most `top` rows.
pub fn find_text(findings: &Findings, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    head(&mut out, findings);
    habits_text(&mut out, words::locks(findings));
    let mut commands: Vec<(&str, String)> = Vec::new();
    for place in &findings.ranking {
        match *place {
            Ranked::Findings(index) => {
                let finding = &findings.findings[index];
                finding_text(&mut out, findings, finding);
                let by_hand = finding.by_hand.as_deref();
                let first = words::before_next(finding);
                next_text(&mut out, &mut commands, by_hand, (first, &finding.next), words::subject(finding));
            }
            Ranked::Footprints(index) => {
                let footprint = &findings.footprints[index];
                footprint_text(&mut out, findings, footprint);
                let subject = one_line(&footprint.subject).into_owned();
                next_text(
                    &mut out,
                    &mut commands,
                    footprint.by_hand.as_deref(),
                    ("", &footprint.next),
                    subject,
                );
            }
        }
    }
    if findings.ranking.is_empty() && words::habits(findings).is_empty() {
        let _ = writeln!(out, "{}", words::nothing_found(findings));
    }
    habits_text(&mut out, words::habits(findings));
    placements_text(&mut out, findings);
    if findings.below_threshold > 0 {
        let _ =
            writeln!(out, "{} more gain less than --least; --least 0 shows them", findings.below_threshold);
    }
    for one in &findings.without_finding {
        let _ = writeln!(out, "{}", words::without_finding(one, findings.time_source));
    }
    owners_text(&mut out, &findings.owners, top, style);
    bursts_text(&mut out, findings, top, style);
    allocations_text(&mut out, findings, top, style);
    memory_text(&mut out, findings, top, style);
    contexts_text(&mut out, findings, top, style);
    functions_text(&mut out, findings, top, style);
    pages_text(&mut out, findings, top, style);
    // That on forked processes stands at the top.
    for note in findings.notes.iter().filter(|note| Some(*note) != findings.forked.as_ref()) {
        let _ = writeln!(out, "note: {}", one_line(note));
    }
    out
}

/// The edit by hand, and the next command: by the subject that has it already.
fn next_text<'f>(
    out: &mut String,
    commands: &mut Vec<(&'f str, String)>,
    by_hand: Option<&str>,
    (first, next): (&str, &'f str),
    subject: String,
) {
    if let Some(by_hand) = by_hand {
        let _ = writeln!(out, "    {}", one_line(by_hand));
    }
    if next.is_empty() {
        return;
    }
    let _ = match commands.iter().find(|(known, _)| *known == next) {
        Some((_, before)) => writeln!(out, "    → as for {before}"),
        None => writeln!(out, "    → {first}{}", one_line(next)),
    };
    commands.push((next, subject));
}

fn footprint_text(out: &mut String, findings: &Findings, footprint: &Footprint) {
    let _ = writeln!(
        out,
        "{}: {} of {}; {}",
        one_line(&footprint.subject),
        figure::share(footprint.time),
        words::time(findings.time_source),
        words::footprint(footprint)
    );
    let _ = writeln!(out, "    {}", words::no_stalls(findings, footprint));
    let _ = writeln!(out, "    {}", words::footprint_evidence(footprint));
}

fn head(out: &mut String, findings: &Findings) {
    if let Some(forked) = &findings.forked {
        let _ = writeln!(out, "{forked}");
    }
    if let Some(unjudged) = words::unjudged(findings) {
        let _ = writeln!(out, "{unjudged}");
    }
    for line in findings.bursts.iter().flat_map(words::bursts) {
        let _ = writeln!(out, "{line}");
    }
    let stalls = &findings.stalls;
    let all = stalls.cycles();
    let _ = writeln!(
        out,
        "{} instructions; {} cycles of modelled stalls, {} of them for data and {} for code",
        whole(findings.instructions),
        whole(all),
        figure::share(share(stalls.data_cycles, all)),
        figure::share(share(stalls.code_cycles, all)),
    );
    if let Some(little) = words::little_to_win(findings) {
        let _ = writeln!(out, "{little}");
    }
    let _ = writeln!(
        out,
        "caches: {}; {} cycles from the second level, {} from memory",
        findings.caches.join(" "),
        findings.l2_cycles,
        findings.memory_cycles
    );
    if let Some(pages) = words::pages(findings) {
        let _ = writeln!(out, "{pages}");
    }
    let sample = &findings.sample;
    let coverage = &findings.coverage;
    let of_data = coverage
        .named
        .map_or_else(String::new, |named| format!(", {} of those for data", figure::share(named)));
    let of_all = coverage
        .of_all
        .map(|named| format!("{} of modelled stalls have names{of_data}", figure::share(named)));
    let named = of_all.unwrap_or_else(|| "nothing stalled".to_owned());
    let _ = writeln!(
        out,
        "{named}; gains are of {} of the run with {} of its {} accesses",
        counted(sample.windows, "window"),
        whole(sample.accesses),
        whole(sample.of_accesses)
    );
    if let Some(between) = findings.between_threads.filter(|between| between.waits.all() >= 1.0) {
        let _ = writeln!(out, "{}", words::between_threads(&between));
    }
    out.push('\n');
}

fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

fn habits_text(out: &mut String, all: Vec<[String; 3]>) {
    for [first, evidence, edit] in all {
        let _ = writeln!(out, "{first}\n    {evidence}\n    {edit}");
    }
}

fn finding_text(out: &mut String, findings: &Findings, finding: &Finding) {
    let subject = words::subject(finding);
    let proposed = words::layout(finding.kind);
    let doubt = words::doubt(finding);
    let doubt = if doubt.is_empty() { doubt } else { format!("; {doubt}") };
    let against = words::against_model(finding).map_or_else(String::new, |against| format!("; {against}"));
    let _ = writeln!(
        out,
        "{subject}: {} of {}, upper bound {} with {proposed}{against}{}",
        figure::share(finding.stalls),
        words::base(finding),
        words::saved(finding.gain),
        doubt
    );
    let _ = writeln!(out, "    {}", words::evidence(&finding.evidence));
    if let Some(footprint) = findings.footprint_of(finding) {
        let of_time = figure::share(footprint.time);
        let _ = writeln!(
            out,
            "    {of_time} of {}; {}",
            words::time(findings.time_source),
            words::footprint(footprint)
        );
    }
    let others = finding
        .trials
        .iter()
        .skip(1)
        .filter(|trial| trial.gain > 0.0)
        .map(|trial| format!("{} {}", words::layout(trial.kind), words::saved(trial.gain)));
    let others: Vec<String> = others.collect();
    if !others.is_empty() {
        let _ = writeln!(out, "    else {}", others.join("; "));
    }
    if let Some((low, high)) = words::spread(finding) {
        let _ = writeln!(
            out,
            "    under {} caches from {} to {}",
            findings.configurations.len(),
            words::saved(low),
            words::saved(high)
        );
    }
}

/// Shares in bursts, and how sure they are.
fn bursts_text(out: &mut String, findings: &Findings, top: usize, style: TextStyle) {
    let Some(bursts) = &findings.bursts else { return };
    for (what, all) in [("data", &bursts.shares.owners), ("function", &bursts.shares.functions)] {
        let columns = ["stalls", "95 % interval", "if hits", "if misses"].map(|name| (name, Align::Right));
        let mut table = Table::new(columns.into_iter().chain([(what, Align::Left)]));
        for one in all.iter().take(top) {
            let interval = one.low.zip(one.high);
            table.row([
                figure::share(one.share),
                interval.map_or_else(String::new, |(low, high)| {
                    format!("{} to {}", figure::share(low), figure::share(high))
                }),
                figure::share(one.if_hits),
                figure::share(one.if_misses),
                shortened(&one.name, NAME),
            ]);
        }
        write_table(out, &table, all.len(), top, style);
    }
}

fn functions_text(out: &mut String, findings: &Findings, top: usize, style: TextStyle) {
    let has_clock = findings.clock_samples.is_some();
    let columns = ["stalls", "for data", "for code", "used", "code lines", "instructions"];
    let columns = columns.map(|name| (name, Align::Right));
    let of_time = ["of cycles", "of time"].map(|name| (name, Align::Right));
    let of_time = of_time.into_iter().filter(|_| has_clock);
    let mut table = Table::new(
        columns.into_iter().chain(of_time).chain([("function", Align::Left), ("file", Align::Left)]),
    );
    let all = findings.stalls.cycles();
    let stalling = findings.functions.iter().filter(|function| function.stalls.cycles() > 0);
    for function in stalling.clone().take(top) {
        let figures = [
            figure::share(function.share),
            figure::share(share(function.stalls.data_cycles, all)),
            figure::share(share(function.stalls.code_cycles, all)),
            function.used_bytes_per_line.map_or_else(String::new, |bytes| format!("{bytes:.0} B")),
            whole(function.code_lines),
            whole(function.instructions),
        ];
        let clock =
            function.clock.map(|clock| [figure::share(function.of_cycles), figure::share(clock.share)]);
        let names = [&function.name, &function.image].map(|name| shortened(name, NAME));
        table.row(figures.into_iter().chain(clock.into_iter().flatten()).chain(names));
    }
    write_table(out, &table, stalling.count(), top, style);
    clock_text(out, findings);
}

/// The functions on which the model and the clock disagree.
fn clock_text(out: &mut String, findings: &Findings) {
    let Some(samples) = findings.clock_samples else { return };
    let differing = findings.functions.iter().filter_map(|function| {
        let clock = function.clock.filter(|clock| !clock.is_explained)?;
        let distance = (function.of_cycles - clock.share).abs();
        (distance >= LEAST_DIFFERENCE).then_some((distance, function, clock))
    });
    let mut differing: Vec<_> = differing.collect();
    differing.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let _ = writeln!(
        out,
        "\nclock: {} samples{} at its own speed; the model, with a cycle for each instruction, explains {}",
        whole(samples),
        if findings.clock_event == Some(ClockEvent::Cycles) { " of the processor's cycles" } else { "" },
        match differing.is_empty() {
            _ if samples < FEW_SAMPLES => "what so few can say",
            true => "all that takes time",
            false => "all but these:",
        }
    );
    for (_, function, clock) in differing.iter().take(DIFFERING) {
        let _ = writeln!(
            out,
            "    {}: {} of cycles, {} of time [{}, {}]",
            one_line(&function.name),
            figure::share(function.of_cycles),
            figure::share(clock.share),
            figure::share(clock.low),
            figure::share(clock.high)
        );
    }
}
