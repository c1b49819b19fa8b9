//! `lineup study --code --hints`: hints from counts of conditions and functions, written into the sources and proven
//! like every patch.

use super::counts::Training;
use super::gates::{self, Gates, Measured};
use super::workload::Workload;
use crate::commands::study::comparison::{Compared, failure_of};
use crate::commands::study::inside::inside;
use crate::commands::study::outputs::Left;
use crate::commands::study::variant::Variant;
use crate::commands::study::{args, call_times, links, outputs, result_files};
use crate::host::facts;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_advise::hints::{Hints, hints};
use lineup_advise::sources::Sources;
use lineup_model::branch::{Evidence, UnusedCopy, UnusedPath};
use lineup_model::types::SourceLocation;
use lineup_report::hints_message;
use lineup_report::study::{
    COUNTS, CodeReport, HintsReport, Patch, ProgramFindings, StudyReport, UnusedCode, UnusedInline,
};
use lineup_study::effects::Snapshot;
use lineup_study::progress::Progress;
use lineup_study::source::scratch::{Role, Scratch};
use lineup_study::source::texts;
use std::path::Path;

/// The most inlined copies, and other paths, that the report names for each.
const MOST_UNUSED: usize = 20;

/// The hints, and the report's evidence for them.
struct Worked {
    hints: Hints,
    evidence: Evidence,
    sources: Sources,
    ways: [u64; 2],
}

/// Counts a run, writes hints, and compares the unchanged program with the one that is compiled with them.
pub(crate) fn run(options: args::Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let (mut plan, training, is_held_out) = gates::plan(options, &interrupts, &stages)?;
    stages.stage("reading the source folder");
    let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, &interrupts)?;
    let scratch = links::linked(&plan, scratch, &interrupts)?;
    let built = Variant::build(&plan, &scratch, None, &stages)?;
    let as_built = Snapshot::take(&built.tree.path).context("cannot copy the folder of the built program")?;
    let trained = gates::train(&mut plan, &training, &built.tree, &as_built, (&interrupts, &stages))?;
    stages.stage("working out hints");
    let worked = Worked::of(&trained, &scratch, scratch.built_in(&built.tree))?;
    drop(trained);
    let changed = "the program with the hints";
    let gates = Gates { plan: &plan, scratch: &scratch, interrupts: &interrupts, stages: &stages, changed };
    let before = gates.measure(built, None)?;
    let tried = match worked.hints.edited.is_empty() {
        true => None,
        false => Some(try_out(&gates, &before, &worked.hints)?),
    };
    stages.end();
    scratch.check_untouched()?;
    conclude(&gates, &before, tried, &worked, (training.in_words(&plan), is_held_out))
}

impl Worked {
    /// `folder` is the one by which debug information names the sources.
    fn of(trained: &Training, scratch: &Scratch, folder: &Path) -> Result<Worked> {
        let sources = texts::read(scratch.source(), scratch.leave_out())?;
        let code = trained.code()?;
        let mut evidence = code.evidence();
        let inside = |file: &str| inside(Path::new(file), folder);
        evidence.branches.retain_mut(|branch| match inside(&branch.file) {
            Some(path) => {
                branch.file = path;
                true
            }
            None => false,
        });
        let executed = std::mem::take(&mut evidence.executed).into_iter();
        evidence.executed = executed.filter_map(|(file, places)| Some((inside(&file)?, places))).collect();
        evidence.never_called.retain_mut(|one| match inside(&one.defined_at.file) {
            Some(path) => {
                one.defined_at.file = path.into();
                true
            }
            None => false,
        });
        let hints = hints(&evidence, &sources);
        let summary = code.summary("");
        Ok(Worked { hints, evidence, sources, ways: [summary.edges_exact, summary.edges_estimated] })
    }

    fn report(&self, folder: &Path) -> HintsReport {
        let place = |at: &SourceLocation| {
            let file = inside(Path::new(&*at.file), folder);
            format!("{}:{}", file.as_deref().unwrap_or(&at.file), at.line)
        };
        let copy = |copy: &UnusedCopy| UnusedInline {
            function: copy.function.clone(),
            into: copy.into.clone(),
            at: place(&copy.called_at),
            bytes: copy.bytes,
        };
        let path = |path: &UnusedPath| UnusedCode {
            function: path.function.clone(),
            at: place(&path.at),
            bytes: path.bytes,
            decisions: path.decisions,
        };
        let Evidence { unused_copies, unused_paths, .. } = &self.evidence;
        HintsReport {
            given: self.hints.given.clone(),
            refused: self.hints.refused.clone(),
            unused_copies: unused_copies.iter().take(MOST_UNUSED).map(copy).collect(),
            unused_paths: unused_paths.iter().take(MOST_UNUSED).map(path).collect(),
        }
    }
}

/// A program with hints, and its comparison.
type HintTrial = (Option<Measured>, Compared);

fn try_out(gates: &Gates<'_>, before: &Measured, hints: &Hints) -> Result<HintTrial> {
    gates.stages.stage("building the program with the hints");
    let mut tree = gates.scratch.copy(Role::After)?;
    if let Err(error) = gates.scratch.build(&mut tree, &hints.edited) {
        return Ok((None, Err(failure_of(error.into())?.because)));
    }
    let after = match gates.measure(Variant::built(tree, "after"), Some(&before.variant)) {
        Ok(after) => after,
        Err(error) => return Ok((None, Err(failure_of(error)?.because))),
    };
    let variants = [&before.variant, &after.variant];
    let compared = gates.compare(variants, links::of(gates.plan, gates.scratch, variants)?)?;
    Ok((Some(after), compared))
}

/// Writes the report and the patch.
fn conclude(
    gates: &Gates<'_>,
    before: &Measured,
    tried: Option<HintTrial>,
    worked: &Worked,
    (training, is_held_out): (String, bool),
) -> Result<Outcome> {
    let Gates { plan, scratch, interrupts, stages, .. } = *gates;
    let outcome = tried.as_ref().map_or(Outcome::Done, |(_, compared)| gates.conclude(compared));
    let (after, compared) = tried.unzip();
    let proven = compared.as_ref().and_then(|compared| compared.as_ref().ok());
    let after = after.flatten().filter(|_| proven.is_some());
    let timed = after.as_ref().zip(proven).map(|(after, proof)| {
        call_times::compare(plan, [&before.variant, &after.variant], proof.value(), interrupts, stages)
    });
    let timed = timed.transpose()?.unwrap_or_default();
    stages.end();
    let is_proposed = after.is_some() && matches!(outcome, Outcome::Done);
    let mut report = StudyReport::of_found(ProgramFindings {
        title: before.variant.program().display().to_string(),
        commands: outputs::commands(
            plan,
            before.variant.program(),
            Left { patch: is_proposed.then_some(result_files::PATCH), ..Left::default() },
        ),
        setting: gates.setting(None),
        machine: facts::of_this_machine(),
        line: plan.line(),
        built_in: scratch.built_in(before.variant.tree()),
        before: &before.variant.recorded,
        after: after.as_ref().map(|after| &after.variant.recorded),
        advice: None,
        patch: None,
        not_proven: compared.as_ref().and_then(|compared| compared.as_ref().err().cloned()),
        proof: proven,
        call_times: timed.proven.as_ref(),
        not_timed: timed.not_timed.clone(),
        contention: None,
    });
    let counted = after.as_ref().map(|after| before.counted.beside(&after.counted));
    report.code = Some(CodeReport {
        optimiser: format!("{} hints in the source", worked.hints.given.len()),
        optimiser_command: String::new(),
        not_ordered: Vec::new(),
        evidence: COUNTS,
        training,
        test: Workload::of(plan).in_words(plan),
        is_held_out,
        ways_exact: worked.ways[0],
        ways_estimated: worked.ways[1],
        whole_run: counted.unwrap_or_default(),
        calls: if after.is_some() { gates.calls()? } else { Vec::new() },
        cold: None,
        patch: None,
        hints: Some(worked.report(scratch.built_in(before.variant.tree()))),
        optimisers: None,
    });
    let diff = lineup_advise::patch::unified_diff(&worked.sources, &worked.hints.edited);
    let text = hints_message(&report) + &diff;
    report.patch = is_proposed.then(|| Patch { file: result_files::PATCH.into(), text });
    let rejected = (!is_proposed && !diff.is_empty()).then_some(diff.as_str());
    outputs::write(&plan.out, &report, rejected)?;
    output::print(&outputs::for_standard_output(plan.json, &plan.report, &plan.out, &report)?)?;
    Ok(outcome)
}
