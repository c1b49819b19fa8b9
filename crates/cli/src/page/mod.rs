//! Findings → the values that `report` shows.

mod machine;

use crate::recorded::Recorded;
use lineup_advise::proposal::Advice;
use lineup_model::line::LineSize;
use lineup_prove::{Proof, Proven, Variant};
use lineup_report::study::{
    CommandLine, Coverage, Fact, NotObserved, Patch, ProofReport, RegionReport, StudyReport, maps,
    moved_variables,
};
use std::collections::BTreeSet;
use std::path::Path;

/// Everything that was found out about a program.
pub(crate) struct Found<'a> {
    /// What to call it.
    pub(crate) title: String,
    /// The commands that repeat it and go on from it.
    pub(crate) commands: Vec<CommandLine>,
    /// How it was built and run, beyond what the recording tells.
    pub(crate) setting: Vec<Fact>,
    /// The line size that decides.
    pub(crate) line: LineSize,
    /// The folder that the program was built in; declarations are placed relative to it.
    pub(crate) built_in: &'a Path,
    /// The program as it is.
    pub(crate) before: &'a Recorded,
    /// The changed program; `None` when there is none.
    pub(crate) after: Option<&'a Recorded>,
    /// What is advised.
    pub(crate) advice: &'a Advice,
    /// The change as text, and the file it was written to; `None` when nothing changes.
    pub(crate) patch: Option<Patch>,
    /// Why the two variants cannot be compared, when they cannot.
    pub(crate) not_proven: Option<String>,
    /// What the comparison showed.
    pub(crate) proof: Option<&'a Proven<Proof>>,
}

/// The report.
pub(crate) fn fill(found: Found<'_>) -> StudyReport {
    let mut report = StudyReport::new(found.title.clone());
    report.line_bytes = u32::try_from(found.line.bytes()).unwrap_or(64);
    report.data_model = found.before.abi().data_model().to_owned();
    report.side_effects = side_effects(&found);
    report.regions = regions(&found);
    report.coverage = Some(Coverage::of_explained(&found.before.explanation));
    report.shared_lines = found.before.explanation.shared_lines.iter().map(Into::into).collect();
    report.maps = found.before.drawn(|before| match found.after {
        None => maps(before, None, found.line),
        Some(after) => after.drawn(|after| maps(before, Some(after), found.line)),
    });
    for at in report.maps.iter_mut().filter_map(|map| map.owner.declared_at.as_mut()) {
        if let Ok(inside) = Path::new(at.as_str()).strip_prefix(found.built_in) {
            *at = inside.display().to_string();
        }
    }
    report.add_advice(found.advice);
    report.proof = found.proof.map(ProofReport::from);
    report.not_proven = found.not_proven.clone();
    report.not_observed.extend(not_observed(&found));
    report.setting = setting(&found);
    report.commands = found.commands;
    report.patch = found.patch;
    report
}

/// Variables that moved without being named by a proposal.
fn side_effects(found: &Found<'_>) -> Vec<String> {
    let Some(after) = found.after else { return Vec::new() };
    let changed: BTreeSet<&str> =
        found.advice.gathers.iter().flat_map(|gather| gather.variables.iter().map(String::as_str)).collect();
    moved_variables(&found.before.variables(), &after.variables(), &changed, found.line).into_iter().collect()
}

fn regions(found: &Found<'_>) -> Vec<RegionReport> {
    let before = &found.before.explanation.regions;
    let seconds = found.proof.and_then(|proof| seconds_of(proof.value()));
    let region = |(index, region): (usize, &lineup_explain::explanation::RegionExplanation)| {
        let after = found.after.and_then(|after| after.explanation.regions.get(index));
        let calls_made = found.before.calls_made(index);
        let mut report = RegionReport::of_explained(region, after, calls_made);
        report.calls_per_second = calls_made.zip(seconds).map(|(calls, seconds)| calls as f64 / seconds);
        report
    };
    before.iter().enumerate().map(region).collect()
}

/// The mean elapsed time of the program as it is, in seconds.
fn seconds_of(proof: &Proof) -> Option<f64> {
    let time = proof.time.as_ref().ok()?;
    let runs: Vec<u64> =
        time.runs.iter().filter(|run| run.variant == Variant::BEFORE).map(|run| run.wall_ns).collect();
    let mean_ns = runs.iter().map(|wall_ns| *wall_ns as f64).sum::<f64>() / runs.len() as f64;
    (mean_ns > 0.0).then(|| mean_ns / 1e9)
}

fn setting(found: &Found<'_>) -> Vec<Fact> {
    let abi = found.before.abi();
    let mut facts = found.setting.clone();
    facts.push(Fact { name: "machine".into(), value: format!("{}, {}", abi.machine, abi.data_model()) });
    facts.push(Fact { name: "emulator".into(), value: found.before.emulator().to_owned() });
    facts.extend(machine::facts());
    facts
}

fn not_observed(found: &Found<'_>) -> Vec<NotObserved> {
    let mut all = found.before.not_observed();
    if found.proof.is_none() && found.not_proven.is_none() {
        let what = "a changed program".into();
        all.push(NotObserved {
            what,
            consequence: "no two variants were compared; nothing here is proven".into(),
        });
    }
    all
}
