//! Everything that was found out about a program → the report of its study.

use super::contention::Contention;
use super::coverage::{Coverage, NotObserved};
use super::from_explain::{VariantUse, maps};
use super::proof::ProofReport;
use super::proposal::Patch;
use super::region::RegionReport;
use super::setting::{CommandLine, Fact};
use super::side_effects::moved_variables;
use super::study_report::StudyReport;
use lineup_advise::proposal::Advice;
use lineup_explain::Explained;
use lineup_explain::explanation::RegionExplanation;
use lineup_model::line::LineSize;
use lineup_prove::region_time::RegionTime;
use lineup_prove::{Proof, Proven, Variant};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Everything that was found out about a program.
pub struct ProgramFindings<'a> {
    /// Its title.
    pub title: String,
    /// Commands that repeat it, and commands for next steps.
    pub commands: Vec<CommandLine>,
    /// Facts on its build and run that the recording does not hold.
    pub setting: Vec<Fact>,
    /// The machine that it was timed on.
    pub machine: Vec<Fact>,
    /// The line size that decides.
    pub line: LineSize,
    /// The folder that the program was built in; declarations are placed relative to it.
    pub built_in: &'a Path,
    /// The unchanged program.
    pub before: &'a Explained,
    /// The changed program; `None` when it does not exist.
    pub after: Option<&'a Explained>,
    /// The advice; `None` when the change does not concern the sources.
    pub advice: Option<&'a Advice>,
    /// The change as text, and the file it was written to; `None` when nothing changes.
    pub patch: Option<Patch>,
    /// The reason why the two variants cannot be compared, when they cannot.
    pub not_proven: Option<String>,
    /// The comparison's result.
    pub proof: Option<&'a Proven<Proof>>,
    /// The times of the regions' calls in both variants; `None` when they were not compared.
    pub call_times: Option<&'a Proven<Vec<RegionTime>>>,
    /// Regions whose calls were not timed, with the reasons.
    pub not_timed: Vec<NotObserved>,
    /// The times of the threads' calls on one CPU and on more, in both variants; `None` when they were not compared.
    pub contention: Option<Contention>,
}

impl StudyReport {
    /// The report of all that was found.
    pub fn of_found(found: ProgramFindings<'_>) -> Self {
        let mut report = StudyReport::new(found.title.clone());
        report.line_bytes = u32::try_from(found.line.bytes()).unwrap_or(64);
        report.data_model = found.before.abi().data_model().to_owned();
        report.side_effects.extend(side_effects(&found));
        report.regions = regions(&found);
        report.coverage = Some(Coverage::of_explained(&found.before.explanation));
        report.shared_lines = found.before.explanation.shared_lines.iter().map(Into::into).collect();
        report.maps = drawn(found.before, |before| match found.after {
            None => maps(before, None, found.line),
            Some(after) => drawn(after, |after| maps(before, Some(after), found.line)),
        });
        for at in report.maps.iter_mut().filter_map(|map| map.owner.declared_at.as_mut()) {
            if let Ok(inside) = Path::new(at.as_str()).strip_prefix(found.built_in) {
                *at = inside.display().to_string();
            }
        }
        if let Some(advice) = found.advice {
            report.add_advice(advice);
        }
        report.contention = found.contention.clone();
        report.proof = found.proof.map(ProofReport::from);
        report.not_proven = found.not_proven.clone();
        report.not_observed.extend(not_observed(&found));
        report.setting = setting(&found);
        report.commands = found.commands;
        report.patch = found.patch;
        report
    }

    /// The report of one recording: the lines that its calls touch. It proposes and compares nothing.
    pub fn of_recording(title: String, recorded: &Explained, line: LineSize) -> Self {
        let mut report = StudyReport::new(title);
        report.line_bytes = u32::try_from(line.bytes()).unwrap_or(64);
        report.data_model = recorded.abi().data_model().to_owned();
        let region =
            |one: &RegionExplanation| RegionReport::of_explained(one, None, recorded.calls_made(one.id));
        report.regions = recorded.explanation.regions.iter().map(region).collect();
        report.coverage = Some(Coverage::of_explained(&recorded.explanation));
        report.shared_lines = recorded.explanation.shared_lines.iter().map(Into::into).collect();
        report.maps = drawn(recorded, |recorded| maps(recorded, None, line));
        report.not_observed = NotObserved::of_explained(recorded);
        report
    }

    /// Leaves out the maps of types that nothing is proposed for: a kernel has hundreds on every hot path.
    pub fn keep_maps_of(&mut self, advice: &Advice) {
        let is_proposed = |name: &str| {
            advice.orders.iter().any(|order| name.rsplit(' ').next() == Some(order.type_name.as_str()))
        };
        self.maps.retain(|map| is_proposed(&map.owner.name));
    }
}

/// Lends the data of line maps: the program's own types and variables.
fn drawn<T>(explained: &Explained, draw: impl FnOnce(VariantUse<'_>) -> T) -> T {
    let usage = explained.own_usage().map(std::slice::from_ref).unwrap_or_default();
    let types = BTreeMap::from([(explained.program(), explained.types())]);
    let variables = BTreeMap::from([(explained.program(), explained.variables())]);
    draw(VariantUse { usage, types: &types, variables: &variables })
}

/// Variables that moved without being named by a proposal.
fn side_effects(found: &ProgramFindings<'_>) -> Vec<String> {
    let Some((after, advice)) = found.after.zip(found.advice) else { return Vec::new() };
    let changed: BTreeSet<&str> = advice
        .gathers
        .iter()
        .map(|one| &one.variables)
        .chain(advice.variables.iter().map(|one| &one.variables))
        .flatten()
        .map(String::as_str)
        .collect();
    moved_variables(&found.before.variables(), &after.variables(), &changed, found.line).into_iter().collect()
}

fn regions(found: &ProgramFindings<'_>) -> Vec<RegionReport> {
    let before = &found.before.explanation.regions;
    let seconds = found.proof.and_then(|proof| seconds_of(proof.value()));
    let region = |region: &RegionExplanation| {
        let after = found.after.map(|after| after.explanation.regions.iter());
        let after = after.and_then(|mut after| after.find(|after| after.id == region.id));
        let calls_made = found.before.calls_made(region.id);
        let mut report = RegionReport::of_explained(region, after, calls_made);
        let times = found.call_times.map_or(&[][..], |times| times.value().as_slice());
        report.time = times.iter().find(|time| time.id == region.id).map(Into::into);
        report.calls_per_second = calls_made.zip(seconds).map(|(calls, seconds)| calls as f64 / seconds);
        report
    };
    before.iter().map(region).collect()
}

/// The mean elapsed time of the unchanged program, in seconds.
fn seconds_of(proof: &Proof) -> Option<f64> {
    let time = proof.time.as_ref().ok()?;
    let runs: Vec<u64> =
        time.runs.iter().filter(|run| run.variant == Variant::BEFORE).map(|run| run.wall_ns).collect();
    let mean_ns = runs.iter().map(|wall_ns| *wall_ns as f64).sum::<f64>() / runs.len() as f64;
    (mean_ns > 0.0).then(|| mean_ns / 1e9)
}

fn setting(found: &ProgramFindings<'_>) -> Vec<Fact> {
    let abi = found.before.abi();
    let mut facts = found.setting.clone();
    facts.push(Fact { name: "machine".into(), value: format!("{}, {}", abi.machine, abi.data_model()) });
    facts.push(Fact { name: "recorded by".into(), value: found.before.emulator().to_owned() });
    facts.extend(found.machine.iter().cloned());
    facts
}

fn not_observed(found: &ProgramFindings<'_>) -> Vec<NotObserved> {
    let mut all = NotObserved::of_explained(found.before);
    all.extend(found.not_timed.iter().cloned());
    if found.proof.is_none() && found.not_proven.is_none() {
        let what = "a changed program".into();
        all.push(NotObserved {
            what,
            consequence: "no two variants were compared; nothing here is proven".into(),
        });
    }
    all
}
