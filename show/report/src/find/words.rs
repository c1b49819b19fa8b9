//! Findings in words, for every output.

use crate::visible::one_line;
use lineup_find::{
    AllocationPair, BetweenThreads, Bursts, CostSource, Evidence, Finding, Findings, Footprint,
    FunctionLines, HugePages, Kind, LockWaits, NoFinding, OwnerStalls, PairedSite, ParallelArrays, Sign,
    StackObject, Stalls, Stretch, TimeSource, WithoutFinding, WordChange,
};
use lineup_model::figure::{change, counted, mean, share, whole};
use lineup_model::first_names;

/// Members named at most.
const MEMBERS: usize = 6;
/// Functions of a footprint that are named.
const FUNCTIONS: usize = 4;
/// A smaller share of accesses that cross the end of a line is not worth a word.
const LEAST_SPLIT: f64 = 0.01;
/// A smaller share is left out where another is named.
const LEAST_NAMED: f64 = 0.01;
/// From this share of all stalls on, the part without a name comes first.
const MUCH_UNNAMED: f64 = 0.1;
/// A smaller share of stalls without a name hides nothing that would reach the usual threshold.
const LEAST_UNNAMED: f64 = 0.01;
/// With fewer of the modelled cycles stalling, the report says so first.
const FEW_STALLS: f64 = 0.01;
/// From this share of all stalls on, the reader has to know that they are for code.
const MUCH_OF_CODE: f64 = 0.5;
/// The most functions named that access data without a name.
const UNNAMED_FUNCTIONS: usize = 3;

/// The subject of a finding.
pub fn subject(finding: &Finding) -> String {
    match (&finding.subject, finding.kind) {
        (None, _) => "the code of the whole program".to_owned(),
        (Some(name), Kind::Code) => format!("the code of {}", one_line(name)),
        (Some(name), _) => one_line(name).into_owned(),
    }
}

/// The layout that a kind of finding proposes.
pub fn layout(kind: Kind) -> &'static str {
    match kind {
        Kind::Order => "members in the order of their use",
        Kind::Split => "hot members apart from cold ones",
        Kind::Columns => "an array for each member",
        Kind::ReprC => {
            "members in the order of their use, which takes repr(C): the compiler orders all others"
        }
        Kind::Boxed => "cold members in a Box",
        Kind::BoxedVariant => "its largest variant in a Box",
        Kind::NoHoles => "its holes filled",
        Kind::Narrow => "its wide integers and pointers half as wide",
        Kind::Prefetch => "its lines loaded ahead",
        Kind::Code => "executed code side by side",
        Kind::OwnLines => "data of each thread on lines of its own",
        Kind::OwnParts => "a part of it for each thread",
    }
}

/// The base of a finding's shares.
pub fn base(finding: &Finding) -> &'static str {
    match finding.kind.is_of_threads() {
        true => "modelled stalls and waits of threads",
        false => "modelled stalls",
    }
}

/// Where the modelled cycles of the whole program go, with one cycle for each instruction: no lever gains more than the
/// stalls that it is for.
pub fn cycles_in_words(findings: &Findings) -> String {
    let Stalls { data_cycles, code_cycles } = findings.stalls;
    let of_pages = of_pages(findings);
    let of = |cycles: u64| share(of_modelled(findings, cycles));
    format!(
        "{} stall for data beyond L1, {} for code, {} for pages; {} execute instructions on what L1 holds, \
         which neither layout nor placement makes less",
        of(data_cycles),
        of(code_cycles),
        of(of_pages),
        of(findings.instructions)
    )
}

/// The share of the modelled cycles that stall for data, code or pages.
fn stalling(findings: &Findings) -> f64 {
    of_modelled(findings, findings.stalls.cycles() + of_pages(findings))
}

/// Cycles that stall for pages.
fn of_pages(findings: &Findings) -> u64 {
    findings.pages.map_or(0, |pages| pages.stall_cycles)
}

/// The share that some cycles have of all modelled ones, with one for each instruction.
fn of_modelled(findings: &Findings, cycles: u64) -> f64 {
    let all = findings.instructions + findings.stalls.cycles() + of_pages(findings);
    cycles as f64 / all.max(1) as f64
}

/// The message that hardly anything stalls, unless threads wait for each other, which the stalls do not count.
pub fn little_to_win(findings: &Findings) -> Option<String> {
    let stalling = stalling(findings);
    let waits = findings.between_threads.is_some_and(|between| between.waits.all() >= 1.0);
    (stalling < FEW_STALLS && !waits).then(|| {
        format!(
            "{} of the modelled cycles stall, with one cycle for each instruction: layouts and placements have little to \
             gain here",
            share(stalling),
        )
    })
}

/// A gain as a change of all modelled stalls.
pub fn saved(gain: f64) -> String {
    change(1.0 - gain)
}

/// The share of all stalls that is for data without a name.
fn unnamed(findings: &Findings) -> f64 {
    findings.coverage.of_all.map_or(0.0, |named| 1.0 - named)
}

/// The part of the stalls that the findings do not cover, where it is large: data without a name was not judged.
pub fn unjudged(findings: &Findings) -> Option<String> {
    let unnamed = unnamed(findings);
    if unnamed < MUCH_UNNAMED {
        return None;
    }
    let mut functions: Vec<&str> = Vec::new();
    let is_much = |owner: &&OwnerStalls| owner.class == "unnamed" && owner.share >= LEAST_NAMED;
    for owner in findings.owners.iter().filter(is_much) {
        functions.extend(owner.functions.iter().map(|(name, _)| name.as_str()));
    }
    functions.truncate(UNNAMED_FUNCTIONS);
    let functions: Vec<_> = functions.into_iter().map(one_line).collect();
    let place = if functions.is_empty() { String::new() } else { format!(" in {}", functions.join(", ")) };
    let lack = findings
        .coverage
        .lack
        .map_or_else(String::new, |lack| format!(", whose types are not known ({lack})"));
    Some(format!(
        "{} of modelled stalls are for data without a name{place}{lack}: no layout of it was tried, and the findings \
         are about the rest",
        share(unnamed)
    ))
}

/// The message that nothing reaches the threshold, and the data for which that holds.
pub fn nothing_found(findings: &Findings) -> String {
    let unnamed = unnamed(findings);
    if unnamed < LEAST_UNNAMED || unnamed * stalling(findings) < LEAST_UNNAMED * FEW_STALLS {
        let subject = match findings.forked {
            Some(_) => "nothing is worth fixing by a layout for the first process alone",
            None => "nothing is worth fixing by a layout",
        };
        let nothing = format!("{subject}: no upper bound reaches the threshold of --least");
        let of_code = findings.stalls.code_cycles as f64 / findings.stalls.cycles().max(1) as f64;
        return match of_code >= MUCH_OF_CODE && stalling(findings) >= FEW_STALLS {
            true => format!(
                "{nothing}; {} of modelled stalls are for code, and no order of it that was tried has fewer: by hand, \
                 less code on the way",
                share(of_code)
            ),
            false => nothing,
        };
    }
    format!(
        "no upper bound of data with a name reaches the threshold of --least; {} of modelled stalls have no name and \
         were not judged",
        share(unnamed)
    )
}

/// A finding's next command begins with this.
pub const NEXT: &str = "→ ";

/// Locks that threads wait for, each with its evidence and its next command: before the findings, since no layout helps
/// where threads take turns.
pub fn locks(findings: &Findings) -> Vec<[String; 3]> {
    findings.locks.iter().map(lock).collect()
}

/// Findings without a layout that was tried, each with its evidence and the edit.
pub fn habits(findings: &Findings) -> Vec<[String; 3]> {
    let pairs = findings.allocation_pairs.iter().map(pair);
    pairs
        .chain(findings.parallel_arrays.iter().map(arrays))
        .chain(findings.stack_objects.iter().map(stack_object))
        .collect()
}

fn lock(one: &LockWaits) -> [String; 3] {
    let functions: Vec<_> = one.functions.iter().map(|name| one_line(name)).collect();
    [
        format!("{}: threads wait for this lock: no layout helps where they take turns", one_line(&one.name)),
        format!(
            "they wait {} for its word, {} of all their waits for each other; most else is in {}",
            times(one.waits.all()),
            share(one.share),
            functions.join(", ")
        ),
        format!("{NEXT}{}", one_line(&one.next)),
    ]
}

fn pair(one: &AllocationPair) -> [String; 3] {
    let of = |site: &PairedSite| {
        let size_bytes = mean(site.bytes as f64 / site.objects.max(1) as f64);
        format!("{} of {size_bytes} B at {}", counted(site.objects, "object"), one_line(&site.line))
    };
    let [first, second] = one.sites.each_ref().map(of);
    [
        format!("{}: two allocations that one could be: {first}, and {second}", one_line(&one.function)),
        format!(
            "{} of accesses in the windows, {} of modelled stalls; {} of the visits of one are with the other",
            share(one.accesses),
            share(one.share),
            share(one.together)
        ),
        "by hand, if both are freed together: one allocation for both, the second behind the first"
            .to_owned(),
    ]
}

fn arrays(one: &ParallelArrays) -> [String; 3] {
    let names: Vec<_> = one.names.iter().map(|name| one_line(name)).collect();
    [
        format!(
            "{}: {} arrays with the same index: {} → {} lines for each index with one array of structs",
            one_line(&one.function),
            one.names.len(),
            mean(one.lines),
            mean(one.lines_after)
        ),
        format!(
            "{} of accesses in the windows, {} of modelled stalls; {}, at indices that jump",
            share(one.accesses),
            share(one.share),
            first_names(&names, MEMBERS)
        ),
        format!("by hand: one array of structs of {} bytes", whole(one.size_bytes)),
    ]
}

fn stack_object(one: &StackObject) -> [String; 3] {
    let names = |names: &[String]| {
        let names: Vec<_> = names.iter().map(|name| one_line(name)).collect();
        first_names(&names, MEMBERS)
    };
    let variables = match one.variables.as_slice() {
        [] => String::new(),
        variables => format!(" ({})", names(variables)),
    };
    [
        format!(
            "{}{variables}: {} bytes on the stack, of which {} are used in the windows",
            one_line(&one.name),
            whole(one.size_bytes),
            whole(one.used_bytes)
        ),
        format!("{} of accesses in the windows, in {}", share(one.accesses), names(&one.functions)),
        "by hand: a smaller object, and memory elsewhere for the rare case that needs more".to_owned(),
    ]
}

/// Shares of the time, by their source.
pub fn time(source: TimeSource) -> &'static str {
    match source {
        TimeSource::Clock => "the time",
        TimeSource::Model => "the modelled cycles",
    }
}

/// Lines in one stretch of a function.
fn per(function: &str, per: Stretch) -> String {
    match per {
        Stretch::Call => format!("a call of {}", one_line(function)),
        Stretch::Window => format!("{} in a window of the run", one_line(function)),
    }
}

/// The change of a function's lines.
fn fewer_lines(one: &FunctionLines) -> String {
    let per = match one.per {
        Stretch::Call => "per call",
        Stretch::Window => "per window",
    };
    format!("{} → {} {per} of {}", mean(one.lines), mean(one.lines_after), one_line(&one.function))
}

/// The lines that a footprint's layout saves where it saves most: they may be lines of the first level, which do not
/// stall.
pub fn footprint(one: &Footprint) -> String {
    let saved = |lines: &FunctionLines| lines.time * (1.0 - lines.lines_after / lines.lines);
    let first = one.lines.iter().max_by(|one, other| saved(one).total_cmp(&saved(other)));
    let first = first.map_or_else(String::new, fewer_lines);
    format!("lines {first}, at best, with {}", layout(one.kind))
}

/// The limit of a footprint's promise, with the stalls of the type where it has any.
pub fn no_stalls(findings: &Findings, one: &Footprint) -> String {
    let is_it = |owner: &&OwnerStalls| owner.class == "member" && owner.name == one.subject;
    let stalls = findings.owners.iter().find(is_it).map_or(0.0, |owner| owner.share);
    let stalls = match stalls >= LEAST_NAMED {
        true => format!("of the {} of modelled stalls that the type has, none is promised", share(stalls)),
        false => "these are no stalls".to_owned(),
    };
    format!("fewer lines, in the L1 or beyond it; {stalls}, and no time is promised")
}

/// The evidence of a footprint: the other functions, and the use of the type.
pub fn footprint_evidence(one: &Footprint) -> String {
    let functions: Vec<String> = one.lines.iter().take(FUNCTIONS).map(fewer_lines).collect();
    let split = if one.split_accesses >= LEAST_SPLIT {
        format!("; {} of its accesses cross the end of a line", share(one.split_accesses))
    } else {
        String::new()
    };
    format!("{}{split}; {}", functions.join(", "), evidence(&one.evidence))
}

/// The reason why data that takes or stalls for much time has no finding.
pub fn without_finding(one: &WithoutFinding, source: TimeSource) -> String {
    let reason = match &one.reason {
        NoFinding::LittleGain { layout: kind, gain } => {
            format!("{} gains less than --least, {}", layout(*kind), saved(*gain))
        }
        NoFinding::NoGain => "no layout that was tried needs fewer lines".to_owned(),
        NoFinding::NothingToMove => {
            "no other layout was tried: it has one member, or members that keep their places".to_owned()
        }
        NoFinding::NotInWindows => {
            "no other layout was tried: the windows of the run have none of its objects; --windows keeps more"
                .to_owned()
        }
        NoFinding::NoMembers => {
            "it has no members that could lie elsewhere; by hand, smaller elements, or visits in their order"
                .to_owned()
        }
        NoFinding::Stack => {
            "it lies on the stack, where the compiler places it; by hand, fewer or smaller local variables"
                .to_owned()
        }
        NoFinding::Library => "code of a library accesses it, and its type is unknown there".to_owned(),
        NoFinding::Allocator => {
            "it is what malloc adds to objects; lineup study --placement tries other allocators".to_owned()
        }
        NoFinding::OfLibrary { declared_in } => {
            format!("its layout is not yours to change: it is declared in {}", one_line(declared_in))
        }
        NoFinding::Full { size_bytes } => {
            format!("its {} bytes are used, and no layout needs fewer lines", whole(*size_bytes))
        }
        NoFinding::OneLine { function, per: stretch } => {
            format!("{} uses one line of it", per(function, *stretch))
        }
        NoFinding::FewLines { function, per: stretch, layout: kind, lines, lines_after } => format!(
            "{} saves little: {} uses {} lines of it instead of {}",
            layout(*kind),
            per(function, *stretch),
            mean(*lines_after),
            mean(*lines)
        ),
        NoFinding::NoFewerLines { function, per: stretch, lines } => format!(
            "{} uses {} lines of it, and no layout that was tried needs fewer there without more elsewhere",
            per(function, *stretch),
            mean(*lines)
        ),
    };
    let of_time = format!("{} of {}", share(one.time), time(source));
    let of_stalls = format!("{} of modelled stalls", share(one.share));
    let shares = match (one.time >= LEAST_NAMED, one.share >= LEAST_NAMED) {
        (true, false) => of_time,
        (true, true) => format!("{of_time}, {of_stalls}"),
        (false, _) => of_stalls,
    };
    let by_hand = one.by_hand.as_ref().map_or_else(String::new, |edit| format!("; {}", one_line(edit)));
    format!("{}, {shares}, has no finding: {reason}{by_hand}", one_line(&one.name))
}

/// The clock's contradiction of a finding's model.
pub fn against_model(finding: &Finding) -> Option<String> {
    let clock = finding.clock.as_ref()?;
    Some(format!(
        "the clock contradicts the model: {} takes {} of the time [{}, {}], and {} of the modelled cycles",
        one_line(&clock.function),
        share(clock.share),
        share(clock.low),
        share(clock.high),
        share(clock.of_cycles)
    ))
}

/// The effects of threads on each other.
pub fn between_threads(between: &BetweenThreads) -> String {
    format!(
        "{} threads, side by side at one pace, wait {} for bytes of each other and {} for lines alone, which is in none of the \
         stalls; at {} cycles a wait",
        whole(between.threads),
        times(between.waits.of_same_bytes),
        times(between.waits.of_line_alone),
        between.wait_cycles
    )
}

/// That all counts are of bursts of a running process: how they were taken, their cost, and how sure shares are.
pub fn bursts(bursts: &Bursts) -> Vec<String> {
    let Bursts { taken, shares } = bursts;
    let per_thousand = |cycles: f64| {
        let instructions = taken.instructions as f64 * taken.kept as f64 / taken.bursts.max(1) as f64;
        format!("{:.0}", 1000.0 * cycles / instructions.max(1.0))
    };
    let first = format!(
        "sampled from running process {}: {} with {} instructions on {} in {:.1} s, in which the process used \
         {:.2} s of processor time",
        taken.process,
        counted(taken.bursts, "burst"),
        whole(taken.instructions),
        counted(taken.threads, "thread"),
        taken.watched_seconds,
        taken.process_seconds
    );
    let cost = format!(
        "cost: {} of its processor time ({:.1} ms in bursts, {:.1} ms stopped; {} allowed); the longest burst took {:.0} µs, the \
         longest stop {:.0} µs",
        share(taken.cost),
        1e3 * taken.burst_seconds,
        1e3 * taken.stopped_seconds,
        share(taken.allowed),
        taken.longest_burst_us,
        taken.longest_stop_us
    );
    let content = format!(
        "what the caches held before a burst is not known: stalls of a thousand instructions are {} cycles if a thread's bursts \
         followed each other (the estimate below), {} if all lines used in a burst were there, {} if none were",
        per_thousand(shares.stall_cycles),
        per_thousand(shares.stall_cycles_if_hits),
        per_thousand(shares.stall_cycles_if_misses)
    );
    let widest =
        shares.owners.iter().chain(&shares.functions).filter_map(|one| Some((one, one.high? - one.low?)));
    let widest = widest.max_by(|(_, one), (_, other)| one.total_cmp(other));
    let sure = widest.map(|(one, width)| {
        format!(
            "the widest 95 % interval is that of {}, ±{}; another {:.0} s would halve it",
            one_line(&one.name),
            share(width / 2.0),
            3.0 * taken.watched_seconds
        )
    });
    let mut seen = vec![
        "not seen: allocations, waits between threads".to_owned(),
        format!("{} ended early", counted(taken.lost, "burst")),
        format!("{} reached their longest time", whole(taken.cut)),
        format!("{} had not ended", whole(taken.unended)),
    ];
    if taken.kept < taken.bursts {
        seen.push(format!("{} of them were kept for want of memory (--windows)", whole(taken.kept)));
    }
    seen.extend(
        taken
            .not_begun
            .iter()
            .map(|one| format!("not begun {} times, since {}", whole(one.times), one.reason)),
    );
    [first, cost, content].into_iter().chain(sure).chain([seen.join("; ")]).collect()
}

/// An estimate as a number of times.
fn times(estimate: f64) -> String {
    match estimate.round() as u64 {
        1 => "once".to_owned(),
        times => format!("{} times", whole(times)),
    }
}

/// The least and the most that a finding gains under any of its caches.
pub fn spread(finding: &Finding) -> Option<(f64, f64)> {
    if finding.gains.len() < 2 {
        return None;
    }
    let low = finding.gains.iter().copied().min_by(f64::total_cmp)?;
    Some((low, finding.gains.iter().copied().max_by(f64::total_cmp)?))
}

/// The costs of pages for the program, where they were counted.
pub fn pages(findings: &Findings) -> Option<String> {
    let (pages, costs) = (findings.pages?, &findings.page_costs);
    let source = match costs.source {
        CostSource::Usual => "usual costs",
        CostSource::Measured => "as measured here",
        CostSource::Given => "as given",
    };
    Some(format!(
        "pages: {} first touches of {} cycles, {} dTLB misses of {} and {} page walks of {}, {source}: {} cycles more",
        whole(pages.first_touches),
        costs.first_touch_cycles,
        whole(pages.dtlb_l1_misses - pages.dtlb_l2_misses),
        costs.dtlb_l1_cycles,
        whole(pages.dtlb_l2_misses),
        costs.dtlb_l2_cycles,
        whole(pages.stall_cycles),
    ))
}

fn huge_pages(found: &HugePages) -> Vec<String> {
    vec![
        format!(
            "pages: {} of the modelled cycles, at best {} with huge pages for all memory",
            share(found.share),
            saved(found.gain)
        ),
        "for the heap by a setting, which the study tries; for memory from mmap by madvise with MADV_HUGEPAGE, by hand"
            .to_owned(),
        format!("{NEXT}{}", one_line(&found.next)),
    ]
}

/// The finding on the heap's placement: its first line, details, and the next command. Empty where there is none.
pub fn placement(findings: &Findings) -> Vec<String> {
    let found = findings.placements.as_ref().and_then(|placements| Some((placements, placements.best()?)));
    let Some((placements, best)) = found else {
        return findings.huge_pages.as_ref().map_or_else(Vec::new, huge_pages);
    };
    let as_is = &placements.as_is;
    let of = |now: u64, then: u64| format!("{} → {}", whole(now), whole(then));
    let low = placements.gains.iter().copied().min_by(f64::total_cmp);
    let high = placements.gains.iter().copied().max_by(f64::total_cmp);
    let others = placements.trials.iter().filter(|trial| trial.kind != best.kind);
    let others = others.map(|trial| {
        let bound = if trial.can_be_made { "" } else { ", which no allocator can make" };
        format!("{} {}{bound}", trial.kind.words(), saved(trial.gain))
    });
    let memory = match best.more_bytes {
        bytes if bytes < 0 => format!("about {} KiB of memory less", whole(bytes.unsigned_abs() >> 10)),
        bytes => format!("about {} KiB of memory more", whole(bytes.unsigned_abs() >> 10)),
    };
    let mut lines = vec![
        format!(
            "heap: upper bound {} of stalls for caches and pages with {}; {memory}",
            saved(best.gain),
            best.kind.words()
        ),
        format!(
            "in the windows {}; lines fetched {}, from memory {}, dTLB misses {}, pages {}",
            counted(placements.objects, "small object"),
            of(as_is.l1_misses, best.l1_misses),
            of(as_is.l2_misses, best.l2_misses),
            of(as_is.dtlb_l1_misses, best.dtlb_l1_misses),
            of(as_is.pages, best.pages),
        ),
        format!("else {}", others.collect::<Vec<_>>().join("; ")),
    ];
    if placements.unobserved >= MUCH_UNNAMED {
        lines.push(format!(
            "{} of the stalls for data are of instructions that the windows hardly have; they count as unchanged",
            share(placements.unobserved)
        ));
    }
    if let Some((low, high)) = low.zip(high).filter(|_| placements.gains.len() > 1) {
        let caches = placements.gains.len();
        lines.push(format!("under {caches} caches from {} to {}", saved(low), saved(high)));
    }
    lines.push(format!("→ {}", placements.next));
    lines
}

/// The caches that lose; empty when none loses.
pub fn doubt(finding: &Finding) -> String {
    match &finding.sign {
        Sign::Steady => String::new(),
        Sign::DependsOn(losing) => format!("depends on the cache: worse with {}", losing.join(", ")),
    }
}

/// The evidence for a finding.
pub fn evidence(evidence: &Evidence) -> String {
    match evidence {
        Evidence::Type {
            size_bytes,
            largest_variant,
            lines,
            lines_needed,
            used,
            unused,
            objects,
            in_arrays,
            used_bytes_per_line,
            hole_bytes,
            ..
        } => {
            let per_line = used_bytes_per_line
                .map_or_else(String::new, |bytes| format!(", {bytes:.0} bytes used of each line fetched"));
            let used: Vec<_> = used.iter().map(|name| one_line(name)).collect();
            let variant = largest_variant.as_ref().map_or_else(String::new, |largest| {
                format!(
                    "{} takes {} bytes, every other variant at most {}: {} an object instead of {size_bytes}; ",
                    one_line(&largest.name),
                    largest.size_bytes,
                    largest.others_bytes,
                    largest.size_bytes_boxed
                )
            });
            let holes = match hole_bytes {
                0 => String::new(),
                bytes => format!("{bytes} of {size_bytes} bytes are holes; "),
            };
            format!(
                "{variant}{holes}{lines_needed} of {} needed{per_line}; used: {}; {} unused; {}, {} in arrays",
                counted(*lines, "line"),
                first_names(&used, MEMBERS),
                counted(*unused as u64, "member"),
                counted(*objects, "object"),
                share(*in_arrays)
            )
        }
        Evidence::Code { executed_bytes, lines, lines_needed } => {
            format!(
                "{lines_needed} of {} needed for {} executed",
                counted(*lines, "line"),
                counted(*executed_bytes, "byte")
            )
        }
        Evidence::Fight { lines, threads, of_one_object, members, waits } => {
            let members: Vec<_> = members.iter().map(|name| one_line(name)).collect();
            format!(
                "{threads} threads wait {} for {lines} {} of which none uses another's bytes, and {} for bytes of each other, \
                 side by side at one pace; {}{}",
                times(waits.of_line_alone),
                if *lines == 1 { "line" } else { "lines" },
                times(waits.of_same_bytes),
                if *of_one_object { "in one object: " } else { "" },
                first_names(&members, MEMBERS)
            )
        }
        Evidence::Shared { word, change, writers, waiting, waits, of_waits } => {
            let change = match change {
                WordChange::Adds => format!("{writers} threads add to it or change it after reading it"),
                WordChange::Stores => format!("{writers} threads store to it"),
                WordChange::ByOne => "one thread writes it".to_owned(),
            };
            format!(
                "{waiting} threads wait {} for the bytes of {}, {} of all waits of threads for each other; {change}, \
                 side by side at one pace",
                times(*waits),
                one_line(word),
                share(*of_waits)
            )
        }
    }
}

/// A step before the next command of a finding: a comparison needs a second program.
pub fn before_next(finding: &Finding) -> &'static str {
    match finding.next.starts_with("lineup compare ") {
        true => "build with -fprofile-use to .profiled, then ",
        false => "",
    }
}
