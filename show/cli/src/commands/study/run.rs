//! Runs `lineup study`.

use super::args::Options;
use super::audit::Audited;
use super::levers::{Levers, Programs};
use super::outputs::Left;
use super::plan::Plan;
use super::result_files::{LOCK, PAGE, PATCH, RECORDING, REJECTED, UNPROVEN, VARIANTS};
use super::sanitized::Sanitized;
use super::trials::{Settled, Trials, kept_patch};
use super::variant::Variant;
use super::{
    audit, call_times, code, contention, found_regions, from_caches, kernel, levers, links, outputs,
    placement, result_files, series, variant,
};
use crate::host::facts;
use crate::options::advice::outcome_of_orders;
use crate::options::pins::check_pins;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::types::guard;
use anyhow::{Context, Result};
use lineup_model::{figure, first_names};
use lineup_report::effects::EffectsCheck;
use lineup_report::study::{
    CYCLES, Fact, LAYOUT, LeverReport, NotObserved, Patch, ProgramFindings, SOURCES, StudyReport,
};
use lineup_report::{commit_message, is_anything_better};
use lineup_study::effects::Snapshot;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::meaning::Units;
use lineup_study::source::scratch::Scratch;
use lineup_study::source::texts;
use lineup_study::timing::{Placing, allowed_cpus};
use lineup_study::transfers::Transfers;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Records the unchanged program, works out a better layout, and tries it in a copy (recorded again and compared). Then
/// it writes report, patch and figures.
pub(crate) fn run(mut options: Options) -> Result<Outcome> {
    if let Some(tree) = &options.kernel.kernel_source {
        return kernel::run(tree, &options);
    }
    if options.code.code {
        return code::run(options);
    }
    if options.placement.placement {
        return placement::run(&options);
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let begun = SystemTime::now();
    let levers = Levers::of(&mut options, &interrupts)?;
    let mut plan = Plan::of(options, &interrupts, &stages)?;
    if levers.as_ref().is_some_and(|levers| levers.layout_left_out().is_some()) {
        plan.units = Units::Unread;
    }
    let of_layout = levers.as_ref().map_or_else(|| interrupts.clone(), Levers::interrupts_of_layout);
    let stages_of_layout = stages.of_part(&of_layout);
    let result = match (study(&mut plan, levers.as_ref(), &of_layout, &stages_of_layout), &levers) {
        (Err(error), Some(levers)) if levers.is_layout_cut(&of_layout) => {
            levers.without_layout(&plan, &format!("{error:#}"), &stages)
        }
        (result, _) => result,
    };
    result.map_err(|error| match interrupts.check() {
        Ok(()) => error,
        Err(_) => with_kept(error, &plan.out, begun),
    })
}

/// Names the recordings that a study has made before it was ended.
fn with_kept(error: anyhow::Error, out: &Path, begun: SystemTime) -> anyhow::Error {
    let is_new = |recording: &PathBuf| {
        let modified = recording.metadata().and_then(|about| about.modified());
        modified.is_ok_and(|modified| modified >= begun)
    };
    let recordings = VARIANTS.map(|name| out.join(name).join(RECORDING));
    let kept: Vec<String> =
        recordings.iter().filter(|path| is_new(path)).map(|path| path.display().to_string()).collect();
    let error = match is_new(&out.join(UNPROVEN)) {
        true => error.context(kept_patch(out)),
        false => error,
    };
    let said = format!("{error:#}");
    match kept.is_empty() || kept.iter().all(|recording| said.contains(recording)) {
        true => error,
        false => error.context(format!(
            "the study was ended early; what was recorded is kept, with its program: read it by `lineup explain {}`",
            kept.join("` and `lineup explain ")
        )),
    }
}

/// Studies the layout, and where no region was named all other levers.
fn study(
    plan: &mut Plan,
    levers: Option<&Levers>,
    interrupts: &Interrupts,
    stages: &Stages,
) -> Result<Outcome> {
    stages.stage("reading the source folder");
    let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, interrupts)?;
    let scratch = links::linked(plan, scratch, interrupts)?;
    let built = Variant::build(plan, &scratch, None, stages)?;
    let (mut why_found, mut cycles, mut modelled, mut stalling) = (None, None, None, None);
    if let Some(levers) = levers {
        let found = match levers.layout_left_out() {
            Some(why) => Err(why),
            None => {
                let found = found_regions::regions(plan, &built, stages, interrupts)?;
                cycles = Some(Fact { name: CYCLES.into(), value: found.cycles });
                modelled = found.placements;
                stalling = Some(found.stalling);
                found.regions
            }
        };
        match found {
            Ok(found) => {
                plan.regions = found.regions;
                why_found = Some(found.why);
            }
            Err(nothing) => {
                let layout = LeverReport::without_time(LAYOUT, first_line(&nothing));
                let programs = Programs { modelled, stalling, ..Programs::unchanged(&built.tree) };
                let levers = levers.try_all(layout, plan, programs, stages)?;
                let _keeping = interrupts.keeping();
                outputs::write_without_layout(plan, &nothing, levers, cycles)?;
                return Ok(Outcome::Done);
            }
        }
    }
    let left_out = plan.leave_out_inlined(&built.tree)?;
    left_out.iter().for_each(|region| stages.line(&format!("lineup: {region}")));
    let before = Variant::record((plan, None), &scratch, built, stages, interrupts)?;
    check_pins(&plan.advice.pins, before.recorded.types())?;
    let audited = audit::run(plan, &before, stages, interrupts)?;
    let sources = texts::read(scratch.source(), scratch.leave_out())?;
    let sources =
        before.reading.as_ref().map_or(sources.clone(), |reading| reading.in_their_languages(&sources));
    let (plan, scratch) = (&*plan, &scratch);
    let as_recorded =
        &Snapshot::take(&before.tree().path).context("cannot copy the folder of the built program")?;
    let seen = audited.as_ref().map(|audited| &audited.meaning);
    let sanitized = Sanitized::of((plan, scratch), (interrupts, stages));
    let trials = Trials {
        plan,
        scratch,
        before: &before,
        as_recorded,
        seen,
        sources: &sources,
        stages,
        interrupts,
        sanitized,
    };
    let Settled { advice, after, rejected, certificate } = trials.settle()?;
    let sanitized = trials.sanitized.as_ref().and_then(Sanitized::in_words);
    stages.end();
    scratch.check_untouched()?;
    let (after, compared) = after.unzip();
    // Where the rest of a patch passed, the failed parts are among the refusals.
    let rejected = rejected.filter(|_| after.is_none());
    let (proof, not_proven) = match compared {
        None => (None, rejected.as_ref().map(|rejected| format!("the change failed: {}", rejected.because))),
        Some(Ok(proof)) => (Some(proof), None),
        Some(Err(reason)) => (None, Some(reason)),
    };
    let rest = levers.map_or_else(|| interrupts.clone(), Levers::interrupts_of_the_rest);
    let (interrupts, stages) = (&rest, &stages.of_part(&rest));
    let proven = after.as_ref().zip(proof.as_ref());
    let timed = proven
        .map(|(after, proof)| call_times::compare(plan, [&before, after], proof.value(), interrupts, stages));
    let mut timed = timed.transpose()?.unwrap_or_default();
    let contention = match after.as_ref() {
        Some(after) => contention::compare(plan, [&before, after], &mut timed, interrupts, stages)?,
        None => None,
    };
    let fetched = match after.as_ref().filter(|_| contention::applies(plan, &before)) {
        Some(after) => Some(from_caches::compare(plan, [&before, after], interrupts, stages)?),
        None => None,
    };
    let fetched = fetched.and_then(|fetched| fetched.map_err(|missing| timed.not_timed.push(missing)).ok());
    stages.end();
    let keeping = interrupts.keeping();
    let built = &after.as_ref().unwrap_or(&before).recorded;
    // The one that was kept for an early end.
    result_files::remove(&plan.out, UNPROVEN)?;
    stages.keep(None);
    // A comparison that ended without a proof leaves a patch that nobody should take for a proven one.
    let name = if proof.is_some() { PATCH } else { UNPROVEN };
    let lock = plan
        .guard
        .then(|| guard::write(&plan.out.join(LOCK), &advice.guard, Some((built.types(), built.abi()))));
    let left = Left {
        patch: after.as_ref().map(|_| name),
        recording: after.is_none(),
        lock: lock.transpose()?.unwrap_or_default(),
    };
    let mut report = StudyReport::of_found(ProgramFindings {
        title: before.program().display().to_string(),
        commands: outputs::commands(plan, before.program(), left),
        setting: setting(plan, scratch, &before, audited.as_ref(), why_found)
            .into_iter()
            .chain(left_out.into_iter().map(|value| Fact { name: "left out".into(), value }))
            .chain(sanitized.map(|value| Fact { name: "sanitizers".into(), value }))
            .chain(serialised(&before))
            .chain(waits([Some(&before), after.as_ref()]))
            .chain(fetched)
            .chain(cycles)
            .collect(),
        machine: facts::of_this_machine(),
        line: plan.line(),
        built_in: scratch.built_in(before.tree()),
        before: &before.recorded,
        // Figures of two programs at different work are not shown side by side.
        after: after.as_ref().filter(|_| proof.is_some()).map(|after| &after.recorded),
        advice: Some(&advice),
        patch: None,
        not_proven,
        proof: proof.as_ref(),
        call_times: timed.proven.as_ref(),
        not_timed: timed.not_timed.clone(),
        contention,
    });
    let mut name = name;
    let pair = after.as_ref().filter(|_| proof.is_some()).map(|after| [&before, after]);
    if let Some(why) = pair.and_then(|pair| unproven_because(&report, pair)) {
        name = UNPROVEN;
        let left = Left { patch: Some(name), ..left };
        report.commands = outputs::commands(plan, before.program(), left);
        report.not_proven = Some(why.into());
    }
    // The first screen has room for the first ones.
    if let Some(cut) = variant::cut_calls(&before) {
        report.not_observed.insert(0, cut);
    }
    if let Some(outside) = variant::types_outside(&before) {
        report.not_observed.insert(0, outside);
    }
    if let Some(few) = few_waits(plan, &before) {
        report.not_observed.insert(0, few);
    }
    let diff = lineup_advise::patch::unified_diff(&sources, &advice.edited);
    let text = commit_message(&report) + &diff;
    report.patch = after.is_some().then(|| Patch { file: name.into(), text });
    report.certificate = certificate;
    let diff = rejected.as_ref().map(|rejected| rejected.diff.as_str());
    // Commits are for a patch that is proven.
    if after.is_some() && name == PATCH {
        let commits = series::write(plan, &report, &advice, &sources)?;
        report.commands.extend(series::command(plan, commits));
    }
    outputs::write(&plan.out, &report, diff)?;
    drop(keeping);
    if let Some(levers) = levers {
        let layout = levers::layout(&report);
        let patched = after.as_ref().map(Variant::tree);
        let programs = Programs { built: before.tree(), patched, modelled, stalling };
        let tried = levers.try_all(layout, plan, programs, stages);
        report.levers =
            tried.with_context(|| format!("the layout was studied: {}", plan.out.join(PAGE).display()))?;
        series::write_settings(&plan.out, &report)?;
        outputs::write(&plan.out, &report, diff)?;
    }
    let _keeping = interrupts.keeping();
    output::print(&outputs::for_standard_output(plan.json, &plan.report, &plan.out, &report)?)?;
    let applied = outcome_of_orders(&plan.advice.orders, &advice);
    match rejected {
        None => Ok(applied),
        Some(_) => {
            let path = plan.out.join(REJECTED);
            eprintln!("lineup: the change failed and is not proposed; it is kept in {}", path.display());
            Ok(Outcome::Finding)
        }
    }
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or(message)
}

/// The locks that keep the threads from running side by side: no layout changes that.
fn serialised(before: &Variant) -> Option<Fact> {
    let locks = before.recorded.explanation.between.as_ref()?.serialising();
    let value: Vec<String> = locks.iter().map(lineup_report::threads::serialising_sentence).collect();
    (!value.is_empty()).then(|| Fact { name: "locks".into(), value: value.join("; ") })
}

/// The reason why data of threads are not parted, where the user asked for it: the recorded calls hardly contend for
/// these data, or for any.
fn few_waits(plan: &Plan, before: &Variant) -> Option<NotObserved> {
    const MOST: usize = 3;
    let between = before.recorded.explanation.between.as_ref().filter(|_| plan.advice.allow_growth)?;
    let rarely: Vec<String> = between
        .rarely_waited_for()
        .into_iter()
        .map(|(owner, waits)| format!("{owner} ({})", figure::counted(waits, "wait")))
        .collect();
    let next = "more --calls, or a --region that all threads run, may show more";
    let (waits, accesses) = (between.waits.recorded.of_line_alone, between.accesses);
    if between.false_sharing.is_empty() {
        let of =
            if rarely.is_empty() { String::new() } else { format!(": of {}", first_names(&rarely, MOST)) };
        return Some(NotObserved {
            what: "contention worth a change between threads".into(),
            consequence: format!(
                "{waits} of {accesses} accesses of the recorded calls waited for bytes beside their own, so no data of threads \
                 are parted{of}; {next}"
            ),
        });
    }
    (!rarely.is_empty()).then(|| NotObserved {
        what: format!("contention worth a change for {}", first_names(&rarely, MOST)),
        consequence: format!(
            "less than 1 in a thousand of the {accesses} accesses of the recorded calls, or less than 100 in all, waited for \
             bytes beside their own there, so these data are not parted; {next}"
        ),
    })
}

/// The reason why a patch that was compared is not proven.
fn unproven_because(report: &StudyReport, [before, after]: [&Variant; 2]) -> Option<&'static str> {
    let waits = |variant: &Variant| {
        let between = variant.recorded.explanation.between.as_ref();
        between.map_or(0, |between| between.waits.of_line_alone_at_most())
    };
    let effects = report.proof.as_ref().and_then(|proof| proof.effects.as_ref());
    // Threads that wait half as often at most have gained something, whatever the clock could see.
    if !is_anything_better(report) && 2 * waits(after) >= waits(before) {
        Some("nothing that was measured is better")
    } else if effects.is_some_and(EffectsCheck::has_only_ends) {
        Some("all that the program writes differs from run to run, so none of it was compared")
    } else {
        None
    }
}

/// The coherence model's counts of waits for lines in both variants, where threads were parted.
fn waits(variants: [Option<&Variant>; 2]) -> Option<Fact> {
    let [before, after] = variants.map(|variant| variant?.recorded.explanation.between.as_ref());
    let (before, after) = (before.filter(|between| !between.false_sharing.is_empty())?, after?);
    let [before, after] = [before, after].map(|between| {
        let per_thousand = |waits: u64| 1000.0 * waits as f64 / between.accesses.max(1) as f64;
        let most = between.waits.of_line_alone_at_most();
        format!("{:.1} to {:.1}", per_thousand(between.waits.recorded.of_line_alone), per_thousand(most))
    });
    let value = format!(
        "for lines alone, modelled: {before} in a thousand accesses before, {after} after (as recorded, and in the order with most)"
    );
    Some(Fact { name: "waits between threads".into(), value })
}

/// The CPUs of threads that are timed apart, and the time that a line takes between these CPUs.
fn apart() -> String {
    let cpus = allowed_cpus().unwrap_or_default();
    let journey = Transfers::of(&cpus).range_ns().map(|(least, most)| {
        format!(
            "; a line takes {least:.0} to {most:.0} ns from one CPU to another, and neighbours are far apart"
        )
    });
    format!("each thread on a CPU of its own{}", journey.unwrap_or_default())
}

/// The program's build.
fn setting(
    plan: &Plan,
    scratch: &Scratch,
    before: &Variant,
    audited: Option<&Audited>,
    why_found: Option<String>,
) -> Vec<Fact> {
    let found = why_found.map(|value| Fact { name: "found".into(), value });
    let audited = audited.map(|audited| Fact { name: "audited".into(), value: audited.summary.clone() });
    let read = before.reading.iter().map(|reading| Fact { name: SOURCES.into(), value: reading.in_words() });
    let placed = match variant::placing(plan, before) {
        Placing::ThreadsApart => Some(apart()),
        Placing::ThreadsTogether => Some("all threads on one CPU, another for each block".to_owned()),
        Placing::Auto | Placing::Anywhere | Placing::Cpus(_) => None,
    };
    let placed = placed.map(|value| Fact { name: "timed runs".into(), value });
    let remarks = scratch.remarks().into_iter().map(|value| Fact { name: "copies".into(), value });
    std::iter::once(Fact { name: "build".into(), value: plan.build.clone() })
        .chain(found)
        .chain(read)
        .chain(audited)
        .chain(placed)
        .chain(remarks)
        .collect()
}
