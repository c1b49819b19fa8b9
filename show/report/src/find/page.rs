//! One page: findings with line maps, stalls as boxes, the tables.

use super::owners::{ROWS, owners_table};
use super::stacks::{Node, boxes};
use super::words;
use crate::html::{Section, legend, letters, name, one_map, page, scroll};
use crate::study::{LineMap, MemberUse, ObjectLines, Owner, OwnerKind, RegionUse};
use crate::visible::shortened;
use lineup_find::{
    AllocationStalls, ContextStalls, Finding, Findings, Footprint, FunctionStalls, Kind, LaidMember,
    MemberMap, Ranked,
};
use lineup_model::figure::{UNKNOWN, mean, share, whole};
use lineup_model::sampling::ClockEvent;
use maud::{Markup, html};

/// Longest sentence on a page: names of any length may be part of it.
const SENTENCE: usize = 1000;
/// The unit of members' uses.
const PER: &str = "per 1,000 accesses";

/// The findings, as one offline page. `command` repeats the run.
pub fn find_page(findings: &Findings, title: &str, command: &str) -> String {
    let root = Node::of(&findings.stacks);
    let section = |anchor, heading, body| Section { anchor, heading, body };
    let mut sections = vec![
        section("findings", "Findings", found(findings)),
        section("stalls", "Stalls", stalls(findings, &root)),
        section("data", "Data", owners_table(findings, &root)),
        section("functions", "Functions", functions(findings)),
        section("measured", "Method", measured(findings)),
        section("repeat", "To repeat this", html! { pre.command tabindex="0" { span { (command) } } }),
    ];
    if let Some(sites) = &findings.allocation_sites {
        sections.insert(3, section("allocations", "Allocations", allocations(sites)));
    }
    if let Some(all) = &findings.contexts {
        sections.insert(3, section("contexts", "Tasks and interrupts", contexts(findings, all)));
    }
    page("find", &shortened(title, 120), &lead(findings), &sections)
}

fn lead(findings: &Findings) -> Markup {
    let all = findings.stalls.cycles();
    let of = |cycles: u64| share(cycles as f64 / all.max(1) as f64);
    html! {
        @for line in findings.bursts.iter().flat_map(words::bursts) { p.muted { (shortened(&line, SENTENCE)) "." } }
        @if let Some(forked) = &findings.forked { p { b.worse { (shortened(forked, SENTENCE)) } "." } }
        @if let Some(unjudged) = words::unjudged(findings) { p { b.worse { (shortened(&unjudged, SENTENCE)) } "." } }
        p.lead {
            (whole(findings.instructions)) " instructions, " (whole(all)) " cycles of modelled stalls: "
            (of(findings.stalls.data_cycles)) " for data, " (of(findings.stalls.code_cycles)) " for code."
        }
        @if let Some(little) = words::little_to_win(findings) { p { b { (little) } "." } }
        @if let Some(pages) = words::pages(findings) { p { (pages) "." } }
        p.muted {
            "Stalls are waits in a cache model, not time. "
            @if let Some(named) = findings.coverage.of_all { (share(named)) " of them have names. " }
            @if let Some(between) = findings.between_threads.filter(|between| between.waits.all() >= 1.0) { (words::between_threads(&between)) ". " }
            "Gains are upper bounds, in the model; a study measures the gain in time."
        }
    }
}

fn found(findings: &Findings) -> Markup {
    html! {
        @if findings.ranking.is_empty() && words::habits(findings).is_empty() { p { (words::nothing_found(findings)) "." } }
        @if findings.findings.iter().map(|finding| &finding.map).chain(findings.footprints.iter().map(|one| &one.map)).any(Option::is_some) {
            p.muted {
                "One box per cache line, sixteen bytes a row, offsets from the start of the object at the left. "
                "L and S are loads and stores for each thousand accesses to the type, by the function whose letter precedes them."
            }
            (legend())
        }
        (habits(words::locks(findings)))
        @for (rank, place) in findings.ranking.iter().enumerate() {
            @match *place {
                Ranked::Findings(index) => { (one(findings, rank, &findings.findings[index])) }
                Ranked::Footprints(index) => { (footprint(findings, rank, &findings.footprints[index])) }
            }
        }
        (habits(words::habits(findings)))
        (placement(findings))
        @if findings.below_threshold > 0 { p.muted { (findings.below_threshold) " more findings gain less than the threshold." } }
        @for one in &findings.without_finding { p.muted { (shortened(&words::without_finding(one, findings.time_source), SENTENCE)) "." } }
    }
}

fn habits(all: Vec<[String; 3]>) -> Markup {
    html! {
        @for [first, evidence, edit] in all {
            article.proposal {
                p { b { (shortened(&first, SENTENCE)) } "." }
                p.muted { (shortened(&evidence, SENTENCE)) "." }
                @match edit.strip_prefix(words::NEXT) {
                    Some(command) => pre.command tabindex="0" { span { (command) } },
                    None => p { (shortened(&edit, SENTENCE)) "." },
                }
            }
        }
    }
}

fn one(findings: &Findings, index: usize, finding: &Finding) -> Markup {
    let widest = findings.findings.iter().map(|one| one.stalls).fold(f64::MIN_POSITIVE, f64::max);
    let bar = |part: f64| format!("width:{:.2}%", 100.0 * (part / widest).clamp(0.0, 1.0));
    html! {
        article.proposal id=(format!("finding-{}", index + 1)) {
            h3 { (index + 1) ". " (name(&words::subject(finding))) }
            p { b { (share(finding.stalls)) } " of " (words::base(finding)) ", upper bound " b.better { (words::saved(finding.gain)) } " with " (words::layout(finding.kind)) "." }
            div.bars-of aria-hidden="true" { i.bar style=(bar(finding.stalls)) {} br; i.bar.gain style=(bar(finding.gain)) {} }
            p.muted { (shortened(&words::evidence(&finding.evidence), SENTENCE)) "." }
            @if let Some(against) = words::against_model(finding) { p { b.worse { (shortened(&against, SENTENCE)) } "." } }
            @let doubt = words::doubt(finding);
            @if !doubt.is_empty() { p { b.worse { (shortened(&doubt, SENTENCE)) } "." } }
            (tried(findings, finding))
            @if let Some(by_hand) = &finding.by_hand { p { (shortened(by_hand, SENTENCE)) "." } }
            @if let Some(footprint) = findings.footprint_of(finding) {
                p { (share(footprint.time)) " of " (words::time(findings.time_source)) "; " (shortened(&words::footprint(footprint), SENTENCE)) "." }
            }
            (next(findings, index, words::before_next(finding), &finding.next))
            @if let Some(map) = &finding.map { (mapped((words::subject(finding), finding.kind), map)) }
        }
    }
}

/// A finding's next command, or the finding before that has the same.
fn next(findings: &Findings, rank: usize, first: &str, next: &str) -> Markup {
    html! {
        @if !next.is_empty() {
            p { "Next: " }
            @match findings.ranking.iter().take(rank).position(|place| next_of(findings, *place) == next) {
                Some(before) => { p { "As for " a href=(format!("#finding-{}", before + 1)) { "finding " (before + 1) } "." } }
                None => { pre.command tabindex="0" { span { (first) (next) } } }
            }
        }
    }
}

fn next_of(findings: &Findings, place: Ranked) -> &str {
    match place {
        Ranked::Findings(index) => &findings.findings[index].next,
        Ranked::Footprints(index) => &findings.footprints[index].next,
    }
}

/// Fewer lines of a type, stalling or not.
fn footprint(findings: &Findings, rank: usize, footprint: &Footprint) -> Markup {
    html! {
        article.proposal id=(format!("finding-{}", rank + 1)) {
            h3 { (rank + 1) ". " (name(&footprint.subject)) }
            p { b { (share(footprint.time)) } " of " (words::time(findings.time_source)) "; " (shortened(&words::footprint(footprint), SENTENCE)) "." }
            p.muted { (words::no_stalls(findings, footprint)) "." }
            p.muted { (shortened(&words::footprint_evidence(footprint), SENTENCE)) "." }
            @if let Some(by_hand) = &footprint.by_hand { p { (shortened(by_hand, SENTENCE)) "." } }
            (next(findings, rank, "", &footprint.next))
            @if let Some(map) = &footprint.map { (mapped((footprint.subject.clone(), footprint.kind), map)) }
        }
    }
}

/// The finding on the heap's placement.
fn placement(findings: &Findings) -> Markup {
    let lines = words::placement(findings);
    let next = lines.last().and_then(|line| line.strip_prefix(words::NEXT)).unwrap_or_default();
    html! {
        @if let Some((first, rest)) = lines.split_first() {
            article.proposal id="placement" {
                h3 { "Placement" }
                p { b { (shortened(first, SENTENCE)) } "." }
                @for line in rest.iter().filter(|line| !line.starts_with('→')) { p.muted { (shortened(line, SENTENCE)) "." } }
                p { "Next: " }
                pre.command tabindex="0" { span { (next) } }
            }
        }
    }
}

/// Every layout that was tried, and the first under every cache.
fn tried(findings: &Findings, finding: &Finding) -> Markup {
    let table = html! {
        table {
            thead { tr { th { "cache" } th.n { "change of all stalls" } } }
            tbody { @for (cache, gain) in findings.configurations.iter().zip(&finding.gains) {
                tr { td { (cache) } td.n { span class=(if *gain < 0.0 { "worse" } else { "better" }) { (words::saved(*gain)) } } }
            } }
        }
    };
    html! {
        @if finding.trials.len() > 1 {
            p { "Else: " @for (index, trial) in finding.trials.iter().skip(1).enumerate() {
                @if index > 0 { "; " } (words::layout(trial.kind)) " " (words::saved(trial.gain))
            } "." }
        }
        @if let Some((low, high)) = words::spread(finding) {
            details {
                summary { "Under " (finding.gains.len()) " caches from " (words::saved(low)) " to " (words::saved(high)) }
                (scroll("The gain under each cache", &table))
            }
        }
    }
}

fn mapped(subject: (String, Kind), map: &MemberMap) -> Markup {
    let line_map = line_map(subject, map);
    html! {
        (letters("Functions", map.functions.iter().map(String::as_str)))
        (one_map(&line_map, PER))
    }
}

fn line_map((name, kind): (String, Kind), map: &MemberMap) -> LineMap {
    let line_bytes = u32::try_from(map.line_bytes).unwrap_or(64);
    let all: f64 =
        map.members.iter().flat_map(|one| &one.uses).map(|(_, loads, stores)| loads + stores).sum();
    let member = |one: &LaidMember, offset: u64| MemberUse {
        name: one.path.clone(),
        offset,
        size_bytes: one.size_bytes,
        touched: Vec::new(),
        uses: uses(one, 1000.0 / all.max(1.0)),
        sharing: None,
    };
    let start = map.start_in_line.and_then(|start| u32::try_from(start).ok());
    let before: Vec<MemberUse> = map.members.iter().map(|one| member(one, one.offset)).collect();
    let moved = map.members.iter().filter_map(|one| Some(member(one, one.offset_after?)));
    let moved: Vec<MemberUse> = moved.collect();
    let apart = map.members.len() - moved.len();
    let is_split = matches!(kind, Kind::Split | Kind::Boxed | Kind::BoxedVariant);
    let mut notes = vec![match start {
        Some(start) => format!("Most objects seen begin {start} bytes into a line."),
        None => "Objects begin anywhere in a line; this is one that begins a line.".to_owned(),
    }];
    if is_split {
        let members = if apart == 1 { "1 member is" } else { &format!("{apart} members are") };
        let address = "Objects that do not lie in arrays hold the address of their other part.";
        notes.push(format!("After: the part that is used much; {members} apart from it. {address}"));
    }
    let after_start = if is_split { 0 } else { start.unwrap_or(0) };
    LineMap {
        owner: Owner { kind: OwnerKind::Type, name, declared_at: None },
        line_bytes,
        objects_per_call: Vec::new(),
        notes,
        before: ObjectLines::new(map.size_bytes, line_bytes, start.unwrap_or(0), &before),
        after: map.size_bytes_after.map(|size| ObjectLines::new(size, line_bytes, after_start, &moved)),
    }
}

fn uses(one: &LaidMember, scale: f64) -> Vec<RegionUse> {
    let scaled = |(region, loads, stores): &(usize, f64, f64)| RegionUse {
        region: *region,
        loads_per_call: loads * scale,
        stores_per_call: stores * scale,
    };
    one.uses.iter().map(scaled).collect()
}

/// The anchor of an owner's details.
fn anchor(findings: &Findings, wanted: &str) -> Option<String> {
    let place = findings.owners.iter().take(ROWS).position(|owner| owner.name == wanted)?;
    Some(format!("data-{}", place + 1))
}

fn stalls(findings: &Findings, root: &Node) -> Markup {
    html! {
        p.muted { "From left to right: data or code; what is accessed, or the function; the member; the function that \
                   accesses it. Heights are shares of all stalls. A link leads to the details below." }
        (boxes(root, &|wanted| anchor(findings, wanted)))
    }
}

fn contexts(findings: &Findings, all: &[ContextStalls]) -> Markup {
    let of = |cycles: u64| share(cycles as f64 / findings.stalls.cycles().max(1) as f64);
    let table = html! {
        table {
            thead { tr { th.n { "stalls" } th.n { "data" } th.n { "code" } th.n { "CPU" } th { "for" } th { "functions" } } }
            tbody { @for one in all.iter().take(ROWS) { tr {
                td.n { (share(one.share)) } td.n { (of(one.stalls.data_cycles)) } td.n { (of(one.stalls.code_cycles)) } td.n { (one.cpu) }
                td { @if one.is_interrupt { "interrupts" } @else if let Some(task) = &one.task { (name(task)) @if let Some(pid) = one.pid { " (" (pid) ")" } } @else if let Some(stack) = &one.stack { "task at " (shortened(stack, 30)) } @else { "task before the first switch" } }
                td.name { @for (index, (function, part)) in one.functions.iter().enumerate() { @if index > 0 { ", " } (name(function)) " " (share(*part)) } }
            } } }
        }
    };
    html! {
        p.muted { "For interrupts: from a hardware interrupt's entry to its return, whomever it interrupted. A task \
                   whose name was not read has the lowest address of its stack instead." }
        (scroll("Stalls by task and interrupt", &table))
        @if all.len() > ROWS { p.muted { (all.len() - ROWS) " more are in the JSON form." } }
    }
}

fn allocations(sites: &[AllocationStalls]) -> Markup {
    let table = html! {
        table {
            thead { tr { th.n { "stalls" } th { "allocated by" } th { "for" } th.n { "objects" } th.n { "bytes" } th.n { "accesses" } th.n { "first level missed" } th.n { "second too" } th.n { "used of a line" } th.n { "live of a line" } th.n { "taken" } th.n { "first touches" } th.n { "dTLB misses" } th.n { "page walks" } th.n { "visits in order" } th { "used as" } } }
            tbody { @for site in sites.iter().take(ROWS) { (site_row(site)) } }
        }
    };
    html! {
        p.muted { "The first function under way that is not for allocating, and the one that called it. Objects and bytes of the whole run." }
        (scroll("Allocation sites", &table))
        @if sites.len() > ROWS { p.muted { (sites.len() - ROWS) " more are in the JSON form." } }
    }
}

fn site_row(site: &AllocationStalls) -> Markup {
    html! {
        tr {
            td.n { (share(site.share)) }
            td.name { (name(&site.function)) @if let Some(line) = &site.line { " " span.muted { (shortened(line, 60)) } } }
            td.name { @if let Some(caller) = &site.caller { (name(caller)) } }
            td.n { (whole(site.objects)) } td.n { (whole(site.bytes)) }
            td.n { (mean(site.accesses)) } td.n { (whole(site.l1_misses)) } td.n { (whole(site.l2_misses)) }
            td.n { @match site.used_bytes_per_line { Some(bytes) => { (format!("{bytes:.0} B")) } None => { (UNKNOWN) } } }
            td.n { @match site.live_bytes_per_line { Some(bytes) => { (format!("{bytes:.0} B")) } None => { (UNKNOWN) } } }
            td.n { @match site.taken_bytes { Some(bytes) => { (whole(bytes)) } None => { (UNKNOWN) } } }
            @match site.pages {
                Some(pages) => { td.n { (whole(pages.first_touches)) } td.n { (whole(pages.dtlb_l1_misses)) } td.n { (whole(pages.dtlb_l2_misses)) } }
                None => { td.n { (UNKNOWN) } td.n { (UNKNOWN) } td.n { (UNKNOWN) } }
            }
            td.n { @match site.visits_in_order { Some(of) => { (share(of)) } None => { (UNKNOWN) } } }
            td.name { @for (index, (ty, of)) in site.types.iter().enumerate() { @if index > 0 { ", " } (name(ty)) " " (share(*of)) } }
        }
    }
}

fn functions(findings: &Findings) -> Markup {
    let has_clock = findings.clock_samples.is_some();
    let table = html! {
        table {
            thead { tr {
                th.n { "stalls" } th.n { "data" } th.n { "code" }
                th.n { "used" } th.n { "code lines" } th.n { "instructions" }
                @if has_clock { th.n { "of cycles" } th.n { "of time" } }
                th { "function" } th { "file" }
            } }
            tbody { @for one in findings.functions.iter().take(ROWS) { (function_row(findings, one, has_clock)) } }
        }
    };
    html! {
        @if let Some(samples) = findings.clock_samples {
            p.muted {
                "Of cycles: the model's share, with a cycle for each instruction. Of time: the clock's share of "
                (whole(samples)) " samples"
                @if findings.clock_event == Some(ClockEvent::Cycles) { " of the processor's cycles" }
                ", with its 95 % interval; bold where the model's share lies outside."
            }
        }
        (scroll("Functions", &table))
        @if findings.functions.len() > ROWS { p.muted { (findings.functions.len() - ROWS) " more are in the JSON form." } }
    }
}

fn function_row(findings: &Findings, one: &FunctionStalls, has_clock: bool) -> Markup {
    let of = |cycles: u64| share(cycles as f64 / findings.stalls.cycles().max(1) as f64);
    html! {
        tr {
            td.n { (share(one.share)) } td.n { (of(one.stalls.data_cycles)) } td.n { (of(one.stalls.code_cycles)) }
            td.n { @if let Some(bytes) = one.used_bytes_per_line { (format!("{bytes:.0} B")) } }
            td.n { (whole(one.code_lines)) } td.n { (whole(one.instructions)) }
            @if has_clock {
                td.n { (share(one.of_cycles)) }
                td.n { @if let Some(clock) = &one.clock {
                    @let text = format!("{} [{}, {}]", share(clock.share), share(clock.low), share(clock.high));
                    @if clock.is_explained { (text) } @else { b { (text) } }
                } @else { (UNKNOWN) } }
            }
            td.name { (name(&one.name)) }
            td { span.muted { (shortened(one.image.rsplit('/').next().unwrap_or_default(), 60)) } }
        }
    }
}

fn measured(findings: &Findings) -> Markup {
    let sample = &findings.sample;
    html! {
        dl.facts {
            dt { "command" } dd { (name(&findings.command.join(" "))) }
            dt { "recorded by" } dd { (shortened(&findings.recorder, 200)) }
            dt { "caches" } dd { (shortened(&findings.caches.join(", "), 200)) }
            dt { "a line from the second level, from memory" } dd { (findings.l2_cycles) ", " (findings.memory_cycles) " cycles" }
            dt { "windows of the run" } dd { (whole(sample.windows)) ", with " (whole(sample.accesses)) " of " (whole(sample.of_accesses)) " accesses" }
            @for class in findings.coverage.classes.iter().filter(|class| class.share > 0.0) {
                dt { "of data stalls: " (class.class) } dd { (share(class.share)) }
            }
        }
        @for note in findings.notes.iter().filter(|note| Some(*note) != findings.forked.as_ref()) { p { b { (shortened(note, SENTENCE)) } } }
    }
}
