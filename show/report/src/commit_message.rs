//! The message of a patch: the gains, and the losses.

use crate::study::{HintsReport, LineKind, Proposal, ProposalStatus, StudyReport, TimeReport};
use lineup_advise::constraint::Constraint;
use lineup_advise::proposal::PART;
use lineup_prove::links::of_links;
use std::fmt::Write;

/// The message that stands above the patch of a study. It ends with the line `---`, as mailed patches have it.
pub fn commit_message(report: &StudyReport) -> String {
    let all: Vec<&Proposal> = in_patch(report).collect();
    let targets: Vec<&str> = all.iter().map(|one| one.target.as_str()).collect();
    let mut text = format!(
        "{}: {}\n\nLineup recorded calls of {}, in the unchanged and in the changed program.\n",
        targets.join(", "),
        purpose(&all),
        report.regions.iter().map(|region| region.name.as_str()).collect::<Vec<_>>().join(", ")
    );
    text.push_str(&lists(report));
    text.push_str(&predictions(&all));
    text.push_str(&judged_by_hand(&all));
    if let Some(proof) = &report.proof {
        let _ = write!(text, "\nAltogether: {}.\n", proof.conclusion);
    }
    text.push_str("---\n");
    text
}

/// The message of one commit of a series, which changes these types or variables: what is known of it alone, and the
/// result of the whole series.
pub fn series_message(report: &StudyReport, targets: &[String], [number, total]: [usize; 2]) -> String {
    let is_own = |one: &&Proposal| targets.contains(&one.target);
    let own: Vec<&Proposal> = in_patch(report).filter(is_own).collect();
    let mut text = format!("{}: {}\n", targets.join(", "), purpose(&own));
    for one in &own {
        // Writing into a String cannot fail.
        let _ = write!(text, "\n{}: {}\n", one.target, one.summary);
        for saved in &one.worth {
            let region = report.regions.get(saved.region).map_or("", |region| region.name.as_str());
            let _ = writeln!(text, "    predicted of it alone: {} per call of {region}", saved.lines());
        }
    }
    text.push_str(&predictions(&own));
    let sizes = own.iter().flat_map(|one| one.sizes.iter().map(move |size| (&one.target, size)));
    for (target, size) in sizes.filter(|(_, size)| size.before_bytes != size.after_bytes) {
        let _ = write!(
            text,
            "\nSize of {target} in bytes ({}): {} -> {}\n",
            size.data_model, size.before_bytes, size.after_bytes
        );
    }
    text.push_str(&judged_by_hand(&own));
    if let Some(proof) = &report.proof {
        let of = if total > 1 { format!("All {total} commits together") } else { "Altogether".to_owned() };
        let _ = write!(text, "\n{of}: {}.\n", proof.conclusion);
    }
    if number == total {
        text.push_str(&lists(report));
    }
    text + "---\n"
}

/// The proposals that a patch holds.
fn in_patch(report: &StudyReport) -> impl Iterator<Item = &Proposal> {
    report.proposals.iter().filter(|one| one.status == ProposalStatus::InPatch)
}

fn purpose(proposals: &[&Proposal]) -> &'static str {
    match !proposals.is_empty() && proposals.iter().all(|one| one.kind == PART) {
        true => "keep what different threads use on cache lines of their own",
        false => "put what hot paths use together on fewer cache lines",
    }
}

/// The predicted waits of threads.
fn predictions(proposals: &[&Proposal]) -> String {
    let predicted = proposals.iter().filter_map(|one| Some((&one.target, one.predicted?)));
    predicted.map(|(target, predicted)| format!("\nOf {target}: {}\n", predicted.in_words())).collect()
}

/// The figures that fell and those that rose, with headings.
fn lists(report: &StudyReport) -> String {
    let [better, worse] = changes(report);
    let list = |(heading, changes): (&str, Vec<String>)| match changes.is_empty() {
        true => format!("\n{heading}: nothing that was measured.\n"),
        false => format!("\n{heading}:\n{}", changes.concat()),
    };
    [("Better", better), ("Worse", worse)].map(list).concat()
}

/// The message above a patch of hints, likewise.
pub fn hints_message(report: &StudyReport) -> String {
    let mut text = "Mark likely and unlikely conditions, and cold functions\n".to_owned();
    let Some(code) = &report.code else { return text + "---\n" };
    let _ = write!(
        text,
        "\nExecutions were counted in `{}`, and both programs judged by `{}`.\n\n",
        code.training, code.test
    );
    for hint in code.hints.iter().flat_map(|hints| &hints.given) {
        let _ = writeln!(text, "    {}", HintsReport::hint_in_words(hint));
    }
    if !code.whole_run.is_empty() {
        text.push_str("\nThe whole run:\n");
    }
    for one in &code.whole_run {
        let _ = writeln!(text, "    {}: {} -> {}", one.what, one.before, one.after);
    }
    if let Some(proof) = &report.proof {
        let _ = write!(text, "\nAltogether: {}.\n", proof.conclusion);
    }
    text + "---\n"
}

/// The message above a patch to the order of a kernel's code.
pub fn kernel_order_message(report: &StudyReport) -> String {
    let mut text = "vmlinux.lds.h: put the functions of hot paths into one row\n".to_owned();
    let Some(code) = &report.code else { return text + "---\n" };
    let _ = write!(
        text,
        "\nTheir units get a section for each function, and the linker script puts those\nthat calls go into before all others.\n\n\
         By {}.\nRecorded under workload {}, mean of a call, before -> after:\n\n",
        code.optimiser, code.training
    );
    for one in &code.calls {
        let ([lines, lines_after], [pages, pages_after]) = (one.lines, one.pages);
        let _ = writeln!(
            text,
            "    {}: {lines:.1} -> {lines_after:.1} lines of code, {pages:.1} -> {pages_after:.1} pages",
            one.region
        );
    }
    for costs in report.guest.iter().flat_map(|guest| &guest.costs) {
        let misses = costs.means.iter().filter(|cost| cost.name.contains("L1I"));
        for cost in misses {
            let _ =
                writeln!(text, "    {}: {:.1} -> {:.1} {}", costs.region, cost.before, cost.after, cost.name);
        }
    }
    if let Some(proof) = &report.proof {
        let _ = write!(text, "\nAltogether: {}.\n", proof.conclusion);
    }
    text + "---\n"
}

/// Uses that would have held a type, had nobody judged them.
fn judged_by_hand(proposals: &[&Proposal]) -> String {
    let judged = proposals.iter().flat_map(|one| {
        let notes = one.constraints.iter().filter(|note| note.rule == Constraint::Reviewed.describe());
        notes.map(move |note| {
            let at = note.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
            format!("    {}{at}: {}\n", one.target, note.detail.as_deref().unwrap_or_default())
        })
    });
    let judged: String = judged.collect();
    if judged.is_empty() { judged } else { format!("\nJudged harmless by hand:\n{judged}") }
}

/// Whether a figure of the study fell that a commit message names, or threads took less time on some number of CPUs.
pub fn is_anything_better(report: &StudyReport) -> bool {
    let points = report.contention.iter().flat_map(|contention| &contention.points);
    let is_faster =
        points.flat_map(|point| &point.regions).any(|region| region.time.all_calls.ratio_high < 1.0);
    is_faster || !changes(report)[0].is_empty()
}

/// The figures that fell and those that rose, a line each.
fn changes(report: &StudyReport) -> [Vec<String>; 2] {
    let mut lists = [Vec::new(), Vec::new()];
    let mut add = |what: String, before: f64, after: f64| {
        let list = usize::from(after > before);
        if (after - before).abs() >= 0.005 {
            lists[list].push(format!("    {what}: {before:.2} -> {after:.2}\n"));
        }
    };
    for region in &report.regions {
        for footprint in &region.footprints {
            let kind = match footprint.kind {
                LineKind::Data => "data",
                LineKind::Code => "code",
            };
            let what = format!("{}, {kind} lines of {} bytes per call", region.name, footprint.line_bytes);
            if let Some(after) = &footprint.after {
                add(what, footprint.before.mean(), after.mean());
            }
        }
        for misses in &region.misses {
            let what = format!(
                "{}, modelled misses per call in {} after {} bytes of other data",
                region.name, misses.cache, misses.pressure_bytes
            );
            if let Some(after) = misses.after {
                add(what, misses.before, after);
            }
        }
    }
    for proposal in &report.proposals {
        for size in proposal.sizes.iter().filter(|_| proposal.status == ProposalStatus::InPatch) {
            let what = format!("size of {} in bytes ({})", proposal.target, size.data_model);
            add(what, size.before_bytes as f64, size.after_bytes as f64);
        }
    }
    let of_program = report.proof.iter().filter_map(|proof| proof.time.as_ref());
    let of_program = of_program.map(|time| ("time of the whole program".to_owned(), time));
    let of_calls = report.regions.iter().filter_map(|region| {
        Some((format!("{}, time of its calls", region.name), &region.time.as_ref()?.all_calls))
    });
    for (what, time) in of_program.chain(of_calls) {
        // Without doubt: the interval is on one side of no change.
        let is_worse = time.ratio_low > 1.0;
        if is_worse || time.ratio_high < 1.0 {
            let TimeReport { ratio, ratio_low, ratio_high, level, links, .. } = time;
            lists[usize::from(is_worse)].push(format!(
                "    {what}: {ratio:.3} of what it was, {ratio_low:.3} to {ratio_high:.3} at {}, {}\n",
                lineup_model::figure::level(*level),
                of_links(*links)
            ));
        }
    }
    lists
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{MissesPerCall, OutputCheck, ProofReport, RegionReport, TimeVerdict};

    #[test]
    fn what_got_worse_stands_beside_what_got_better() {
        let misses = |cache: &str, before: f64, after: f64| MissesPerCall {
            cache: cache.into(),
            pressure_bytes: 0,
            before,
            after: Some(after),
        };
        let region = RegionReport {
            id: lineup_model::region::RegionId(0),
            name: "walk".into(),
            weight: 1.0,
            calls_recorded: 1,
            calls_made: None,
            calls_abandoned: 0,
            calls_per_second: None,
            instructions_per_call: None,
            footprints: Vec::new(),
            misses: vec![misses("L1D", 3.0, 2.0), misses("L2", 1.0, 1.5), misses("L3", 1.0, 1.0)],
            time: None,
        };
        let mut report = StudyReport::new("demo");
        report.regions = vec![region];
        let message = commit_message(&report);
        let (better, worse) = message.split_once("\nWorse:\n").expect("both lists");
        assert!(better.contains("L1D after 0 bytes of other data: 3.00 -> 2.00"), "{message}");
        assert!(worse.contains("L2 after 0 bytes of other data: 1.00 -> 1.50"), "{message}");
        assert!(!message.contains("L3"), "{message}");
        assert!(message.ends_with("---\n"));
    }

    #[test]
    fn time_is_better_or_worse_where_its_interval_says_so() {
        let message = |ratio_low: f64, ratio_high: f64| {
            let time = TimeReport {
                before_ns: vec![10.0],
                after_ns: vec![7.0],
                ratio: 0.7,
                ratio_low,
                ratio_high,
                level: 0.95,
                margin: 0.01,
                verdict: TimeVerdict::Inconclusive,
                smallest_detectable: 0.1,
                links: 1,
                link_share: None,
                is_contradicted: false,
                needed_ns: None,
                others: None,
                stolen: None,
                noise: None,
            };
            let mut report = StudyReport::new("demo");
            report.proof = Some(ProofReport {
                conclusion: "less time".into(),
                runs: 2,
                blocks: 1,
                output: OutputCheck::Equal,
                effects: None,
                effects_not_observed: None,
                calls_within: Vec::new(),
                time: Some(time),
                time_not_claimed: None,
            });
            commit_message(&report)
        };
        let better = message(0.6, 0.8);
        let line = "Better:\n    time of the whole program: 0.700 of what it was, 0.600 to 0.800 at 95 %, of this one link\n";
        assert!(better.contains(line), "{better}");
        assert!(message(1.1, 1.2).contains("Worse:\n    time of the whole program"));
        assert!(!message(0.9, 1.1).contains("time of the whole program"));
    }
}
