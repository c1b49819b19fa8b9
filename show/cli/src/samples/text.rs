//! Summaries of samples, for people.

use lineup_find::{
    FileInformation, FindingReason, SampledAccesses, SampledByte, SampledData, SampledFinding,
    SampledFindings, SampledFunction, SampledMember,
};
use lineup_model::figure;
use lineup_model::figure::{time_ns, whole};
use lineup_report::text::{Align, Table, TextStyle};
use lineup_report::visible::one_line;
use std::fmt::Write;

/// Members shown of one thing, functions of a member, CPUs and bytes of a line.
const MEMBERS: usize = 8;
const USERS: usize = 2;
const PARTS: usize = 4;
/// Shares of the model and of samples that differ by less are not worth a word.
const LEAST_DIFFERENCE: f64 = 0.02;

/// All of it, with at most `top` rows of each table.
pub(crate) fn all(found: &SampledFindings, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    head(&mut out, found);
    events(&mut out, found, style);
    functions(&mut out, found, top, style);
    accessed(&mut out, found, top, style);
    against_model(&mut out, found, top, style);
    files(&mut out, found, top, style);
    next(&mut out, found);
    notes(&mut out, found);
    out
}

/// The accessed data, the levels it came from, and the lines that CPUs passed to each other.
pub(crate) fn explanation(found: &SampledFindings, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    head(&mut out, found);
    accessed(&mut out, found, top, style);
    if found.data.is_empty() {
        functions(&mut out, found, top, style);
    }
    next(&mut out, found);
    notes(&mut out, found);
    out
}

/// Findings, and recordings that would show more.
pub(crate) fn findings(found: &SampledFindings, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    head(&mut out, found);
    if found.findings.is_empty() {
        out.push_str("\nnothing took so large a share\n");
    }
    for (number, finding) in (1..).zip(found.findings.iter().take(top)) {
        let _ = writeln!(out, "\n{number}. {}", told(finding));
        if let Some(command) = &finding.command {
            let _ = writeln!(out, "   which members a call touches together: {}", one_line(command));
        }
    }
    sources(&mut out, found, top, style);
    notes(&mut out, found);
    out
}

/// A finding in a sentence or two.
fn told(finding: &SampledFinding) -> String {
    let subject = one_line(&finding.subject);
    let (share, samples) = (figure::share(finding.share), whole(finding.samples));
    let of = if finding.weight > 0 { "of all latency" } else { "of all accesses" };
    let list = |names: &[String]| names.iter().map(|name| one_line(name)).collect::<Vec<_>>().join(", ");
    let members = match finding.members.as_slice() {
        [] => String::new(),
        members => format!(", most of it by {}", list(members)),
    };
    let functions = match finding.functions.as_slice() {
        [] => String::new(),
        functions => format!(", in {}", list(functions)),
    };
    match finding.worth {
        FindingReason::PassedBetweenCpus => {
            let written = match finding.written.as_slice() {
                [] => "no store to these lines was sampled".to_owned(),
                written => format!("stores to these lines: {}", list(written)),
            };
            format!(
                "{subject}: {samples} loads took their line from another CPU, {share} {of}{members}{functions}; \
                 {written}"
            )
        }
        FindingReason::WaitedFor => format!("{subject}: {share} {of}, {samples} samples{members}{functions}"),
        FindingReason::TimeSpent => format!("{subject}: {share} of the time, {samples} samples"),
    }
}

fn accessed(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    data(out, found, top, style);
    sources(out, found, top, style);
    lines(out, found, top, style);
}

fn next(out: &mut String, found: &SampledFindings) {
    if !found.next.is_empty() {
        out.push_str("\na recording shows the members that a call touches together:\n");
    }
    for next in &found.next {
        let _ = writeln!(out, "    {}: {}", one_line(&next.subject), one_line(&next.command));
    }
}

fn notes(out: &mut String, found: &SampledFindings) {
    for note in &found.notes {
        let _ = writeln!(out, "note: {}", one_line(note));
    }
}

fn head(out: &mut String, found: &SampledFindings) {
    let samples: u64 = found.events.iter().map(|event| event.samples).sum();
    let span = found.span_ns.map_or_else(String::new, |span| format!(" over {}", time_ns(span as f64)));
    let machine: Vec<&str> = [&found.host, &found.kernel_release, &found.architecture]
        .into_iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let machine = if machine.is_empty() { String::new() } else { format!(", on {}", machine.join(" ")) };
    let cpus = match found.cpus.len() {
        0 => String::new(),
        count => format!(" on {}", figure::counted(count as u64, "CPU")),
    };
    let processes = match found.processes.len() {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    let _ = writeln!(out, "{} samples{span}, of {processes}{cpus}{}", whole(samples), one_line(&machine));
    if !found.command.is_empty() {
        let _ = writeln!(out, "taken by: {}", one_line(&found.command.join(" ")));
    }
}

fn put(out: &mut String, title: &str, table: &Table, more: usize, style: TextStyle) {
    if table.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}\n{}", table.render(style).trim_end());
    if more > 0 {
        let _ = writeln!(out, "{more} more; --top shows more, --json all");
    }
}

fn events(out: &mut String, found: &SampledFindings, style: TextStyle) {
    let figures = ["samples", "events", "weight", "in the kernel"].map(|name| (name, Align::Right));
    let mut table = Table::new(figures.into_iter().chain([("event", Align::Left), ("carries", Align::Left)]));
    for event in &found.events {
        table.row([
            whole(event.samples),
            whole(event.period),
            whole(event.weight),
            figure::share(event.in_kernel as f64 / event.samples.max(1) as f64),
            one_line(&event.name).into_owned(),
            event.carries.join(", "),
        ]);
    }
    put(out, "Events", &table, 0, style);
}

fn functions(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    for (number, event) in (0u32..).zip(&found.events) {
        let is_own = |function: &&SampledFunction| function.event == number && function.samples > 0;
        let own: Vec<_> = found.functions.iter().filter(is_own).collect();
        let figures = [("share", Align::Right), ("samples", Align::Right)];
        let mut table =
            Table::new(figures.into_iter().chain([("function", Align::Left), ("file", Align::Left)]));
        for function in own.iter().take(top) {
            table.row([
                figure::share(function.share),
                whole(function.samples),
                one_line(&function.name).into_owned(),
                one_line(&function.file).into_owned(),
            ]);
        }
        let title = format!("Functions, by {}", one_line(&event.name));
        put(out, &title, &table, own.len().saturating_sub(top), style);
        with_callees(out, found, (number, &event.name), top, style);
    }
}

/// Functions by their samples, callees included.
fn with_callees(
    out: &mut String,
    found: &SampledFindings,
    (event, event_name): (u32, &str),
    top: usize,
    style: TextStyle,
) {
    let own = found.functions.iter().filter(|function| function.event == event);
    let mut own: Vec<_> = own.filter_map(|function| Some((function, function.with_callees?))).collect();
    own.sort_by_key(|(_, all)| std::cmp::Reverse(all.period));
    let figures = ["with callees", "samples", "own"].map(|name| (name, Align::Right));
    let mut table = Table::new(figures.into_iter().chain([("function", Align::Left), ("file", Align::Left)]));
    for (function, all) in own.iter().take(top) {
        table.row([
            figure::share(all.share),
            whole(all.samples),
            figure::share(function.share),
            one_line(&function.name).into_owned(),
            one_line(&function.file).into_owned(),
        ]);
    }
    let title = format!("Functions with their callees, by {}", one_line(event_name));
    put(out, &title, &table, own.len().saturating_sub(top), style);
}

fn accesses(all: &SampledAccesses, has_weight: bool) -> [String; 6] {
    [
        figure::share(if has_weight { all.weight_share } else { all.sample_share }),
        whole(all.samples),
        whole(all.loads),
        whole(all.stores),
        whole(all.hitm),
        whole(all.weight),
    ]
}

fn data(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    let has_weight = found.data.iter().any(|one| one.accesses.weight > 0);
    let share = if has_weight { "of weight" } else { "of samples" };
    let figures = [share, "samples", "loads", "stores", "HITM", "weight"].map(|name| (name, Align::Right));
    let words = ["data", "member", "name rests on", "functions"].map(|name| (name, Align::Left));
    let mut table = Table::new(figures.into_iter().chain(words));
    for one in found.data.iter().take(top) {
        let has_members = one.members.iter().any(|member| !member.path.is_empty());
        let own = one.members.first().filter(|_| !has_members);
        let [evidence, users] = own.map_or_else(Default::default, about);
        let words = [one_line(&one.name).into_owned(), String::new(), evidence, users];
        table.row(accesses(&one.accesses, has_weight).into_iter().chain(words));
        if has_members {
            members(&mut table, one, has_weight);
        }
    }
    put(out, "Data", &table, found.data.len().saturating_sub(top), style);
}

fn members(table: &mut Table, of: &SampledData, has_weight: bool) {
    let mut members: Vec<&SampledMember> = of.members.iter().collect();
    members.sort_by_key(|member| std::cmp::Reverse((member.accesses.weight, member.accesses.samples)));
    for member in members.into_iter().take(MEMBERS) {
        let [evidence, users] = about(member);
        let words = [String::new(), one_line(&member.path).into_owned(), evidence, users];
        table.row(accesses(&member.accesses, has_weight).into_iter().chain(words));
    }
}

/// The evidence for a member's name, and the functions that accessed it.
fn about(member: &SampledMember) -> [String; 2] {
    let evidence = member.evidence.iter().max_by_key(|one| one.samples);
    let evidence = evidence.and_then(|one| serde_json::to_value(one.evidence).ok());
    let evidence = evidence.and_then(|name| Some(name.as_str()?.replace('_', " "))).unwrap_or_default();
    let users = member.functions.iter().take(USERS).map(|user| one_line(&user.name).into_owned());
    [evidence, users.collect::<Vec<_>>().join(", ")]
}

fn sources(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    let has_weight = found.sources.iter().any(|source| source.weight > 0);
    let all: u64 = found.sources.iter().map(|source| source.samples).sum();
    let share = if has_weight { "of weight" } else { "of samples" };
    let figures = [share, "samples", "weight"].map(|name| (name, Align::Right));
    let mut table = Table::new(figures.into_iter().chain([("from", Align::Left)]));
    for source in found.sources.iter().take(top) {
        table.row([
            figure::share(if has_weight { source.weight_share } else { source.samples as f64 / all as f64 }),
            whole(source.samples),
            whole(source.weight),
            source.from.clone(),
        ]);
    }
    put(out, "Where data came from", &table, found.sources.len().saturating_sub(top), style);
}

fn lines(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    let figures = ["loads", "weight"].map(|name| (name, Align::Right));
    let words = ["process", "line", "loaded by CPUs", "what was loaded", "what was stored"];
    let words = words.map(|name| (name, Align::Left));
    let mut table = Table::new(figures.into_iter().chain(words));
    for line in found.lines.iter().take(top) {
        let cpus = line.cpus.iter().map(|cpu| format!("{}: {}", cpu.cpu, whole(cpu.samples)));
        table.row([
            whole(line.samples),
            whole(line.weight),
            line.process.to_string(),
            line.address.clone(),
            some(cpus),
            some(line.bytes.iter().map(byte)),
            some(line.stores.iter().map(byte)),
        ]);
    }
    put(out, "Lines passed between CPUs", &table, found.lines.len().saturating_sub(top), style);
}

fn byte(of: &SampledByte) -> String {
    format!("+{} {} by {}, {}", of.at, one_line(&of.name), one_line(&of.function), whole(of.samples))
}

fn against_model(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    let Some(all) = &found.against_model else { return };
    let figures = ["of modelled cycles", "of samples", "95 % interval"].map(|name| (name, Align::Right));
    let words = [("function", Align::Left), ("the model", Align::Left)];
    let mut table = Table::new(figures.into_iter().chain(words));
    for one in all.iter().take(top) {
        let clock = &one.clock;
        let differs = !clock.is_explained && (one.of_cycles - clock.share).abs() >= LEAST_DIFFERENCE;
        table.row([
            figure::share(one.of_cycles),
            figure::share(clock.share),
            format!("{} to {}", figure::share(clock.low), figure::share(clock.high)),
            one_line(&one.name).into_owned(),
            if differs { "does not explain it" } else { "" }.to_owned(),
        ]);
    }
    put(out, "The model against samples", &table, all.len().saturating_sub(top), style);
}

/// The first of them, and how many more there are.
fn some(all: impl ExactSizeIterator<Item = String>) -> String {
    let more = all.len().saturating_sub(PARTS);
    let mut shown: Vec<String> = all.take(PARTS).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join("; ")
}

fn files(out: &mut String, found: &SampledFindings, top: usize, style: TextStyle) {
    let unknown: Vec<_> = found.files.iter().filter(|file| file.known != FileInformation::Types).collect();
    let words = ["what is known", "file", "build id"].map(|name| (name, Align::Left));
    let mut table = Table::new([("samples", Align::Right)].into_iter().chain(words));
    for file in unknown.iter().take(top) {
        let known = if file.known == FileInformation::Symbols {
            "symbols"
        } else {
            "nothing: not found, or with another build id"
        };
        let build_id = file.build_id.clone().unwrap_or_default();
        table.row([whole(file.samples), known.to_owned(), one_line(&file.path).into_owned(), build_id]);
    }
    put(out, "Files without debug information", &table, unknown.len().saturating_sub(top), style);
}
