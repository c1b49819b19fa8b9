//! `lineup study --code`: the program's code in another order, made by an installed `llvm-bolt` from Lineup's counts,
//! and proven like a patch.

use super::cold::Cold;
use super::counts::Training;
use super::gates::{Gates, Measured};
use super::optimisers::{Others, Trained};
use super::ordering::{Order, Study, name};
use super::patched::Patched;
use super::workload::Workload;
use super::{gates, hints, optimisers};
use crate::commands::study::comparison::failure_of;
use crate::commands::study::outputs::Left;
use crate::commands::study::plan::Plan;
use crate::commands::study::variant::Variant;
use crate::commands::study::{args, call_times, outputs};
use crate::host::facts;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_prove::{Proof, Proven};
use lineup_report::study::{
    CALLS, COUNTS, CodeReport, NotObserved, Optimisers, ProgramFindings, StudyReport,
};
use lineup_study::bolt::Bolt;
use lineup_study::effects::Snapshot;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::linkers::Linkers;
use lineup_study::source::scratch::{Role, Scratch, Tree};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A study that was written.
pub(crate) struct Studied {
    pub(crate) plan: Plan,
    pub(crate) report: StudyReport,
    /// The program in the new order, where it was compared; its folder goes with these copies.
    pub(crate) ordered: Option<(Variant, Scratch)>,
    /// The reason why the order is no gain, after the program's name; `None` where it may be used.
    worse: Option<&'static str>,
}

/// Studies, and prints the report.
pub(crate) fn run(options: args::Options) -> Result<Outcome> {
    if options.code.hints {
        return hints::run(options);
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let Studied { plan, report, worse, .. } = study(options, (&interrupts, &stages))?;
    output::print(&outputs::for_standard_output(plan.json, &plan.report, &plan.out, &report)?)?;
    Ok(gates::outcome(changed(report.code.as_ref().is_some_and(|code| code.patch.is_some())), worse))
}

/// The changed program's name.
fn changed(is_patched: bool) -> &'static str {
    match is_patched {
        true => "the program with the patch and in the new order",
        false => "the program in the new order",
    }
}

/// Counts a run, lets `llvm-bolt` order the program by that, compares both programs by another run, and writes the
/// report.
pub(crate) fn study(options: args::Options, (interrupts, stages): (&Interrupts, &Stages)) -> Result<Studied> {
    let asked = options.code.clone();
    let bolt = Bolt::find(asked.bolt.as_deref())?;
    let (mut plan, training, is_held_out) = gates::plan(options, interrupts, stages)?;
    stages.stage("reading the source folder");
    let linkers = match plan.proof.links {
        0 | 1 => Linkers::that_keep_relocations(interrupts)?,
        links => Linkers::that_link_again_and_keep_relocations(links, plan.proof.seed.0, interrupts)?,
    };
    let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, interrupts)?.linked_by(linkers);
    let built = Variant::build(&plan, &scratch, None, stages)?;
    require_relocations(&plan, &built.tree)?;
    let patch = asked.patch.as_deref().map(|file| Patched::read(file, &scratch)).transpose()?;
    let patched = patch.as_ref().map(|patch| patch.build(&scratch, stages)).transpose()?;
    let ordered_from = patched.as_ref().unwrap_or(&built.tree);
    let as_built =
        Snapshot::take(&ordered_from.path).context("cannot copy the folder of the built program")?;
    let trained = gates::train(&mut plan, &training, ordered_from, &as_built, (interrupts, stages))?;
    let changed = changed(patch.is_some());
    let gates = Gates { plan: &plan, scratch: &scratch, interrupts, stages, changed };
    let study = Study { gates, bolt: &bolt, skipped: RefCell::default() };
    let profile = plan.out.join(format!("{}.fdata", name(&plan.started).display()));
    let ways = study.write_profile(&trained, &profile)?;
    let by_counts = Order { profile, functions: None };
    let cold = asked.cold.then(|| Cold::of(&study, &training, &trained, &built.tree)).transpose()?;
    as_built.restore()?;
    let order = cold.as_ref().map_or(&by_counts, |cold| &cold.order);
    let unedited = BTreeMap::new();
    let edited = patch.as_ref().map_or(&unedited, |patch| &patch.edited);
    let ordered = study.ordered((ordered_from, edited), order, Role::After)?;
    let before = study.measure(built, None)?;
    let after = study.measure(Variant::built(ordered, "after"), Some(&before.variant));
    let (after, compared) = match after {
        Ok(after) => {
            let variants = [&before.variant, &after.variant];
            let compared = study.compare(variants, study.links(order, variants)?)?;
            (Some(after), compared)
        }
        Err(error) => (None, Err(failure_of(error)?.because)),
    };
    let proven = compared.as_ref().ok();
    let timed = after.as_ref().zip(proven).map(|(after, proof)| {
        call_times::compare(&plan, [&before.variant, &after.variant], proof.value(), interrupts, stages)
    });
    let timed = timed.transpose()?.unwrap_or_default();
    let judged = cold.as_ref().zip(after.as_ref().filter(|_| proven.is_some()));
    let judged =
        judged.map(|(cold, after)| cold.judge(&study, &by_counts, [&before.variant, &after.variant]));
    let cold_calls = judged.transpose()?;
    let compared_runs = after.as_ref().filter(|_| proven.is_some());
    let others = Others { optimisers: asked.against_optimisers, patched: patched.as_ref() };
    let others = (others.optimisers || others.patched.is_some()).then_some(others);
    let peers = others.zip(compared_runs).map(|(others, after)| {
        beside_others(&study, others, (&training, &trained), proven, [&before, after])
    });
    let peers = peers.transpose()?;
    stages.end();
    scratch.check_untouched()?;
    let mut report = StudyReport::of_found(ProgramFindings {
        title: before.variant.program().display().to_string(),
        commands: outputs::commands(&plan, before.variant.program(), Left::default()),
        setting: study.setting(Some("with --emit-relocs, by linkers that COMPILER_PATH names")),
        machine: facts::of_this_machine(),
        line: plan.line(),
        built_in: scratch.built_in(before.variant.tree()),
        before: &before.variant.recorded,
        after: after.as_ref().filter(|_| proven.is_some()).map(|after| &after.variant.recorded),
        advice: None,
        patch: None,
        not_proven: compared.as_ref().err().cloned(),
        proof: proven,
        call_times: timed.proven.as_ref(),
        not_timed: timed.not_timed.clone(),
        contention: None,
    });
    let (optimisers, why_not) =
        peers.map_or((None, None), |peers| (peers.as_ref().ok().cloned(), peers.err()));
    report.not_observed.extend(why_not);
    report.code = match compared_runs {
        Some(after) => Some(CodeReport {
            optimiser: bolt.version().to_owned(),
            optimiser_command: study.command(order),
            not_ordered: study.not_ordered(),
            evidence: if cold.is_some() { CALLS } else { COUNTS },
            training: training.in_words(&plan),
            test: Workload::of(&plan).in_words(&plan),
            is_held_out,
            ways_exact: ways[0],
            ways_estimated: ways[1],
            whole_run: before.counted.beside(&after.counted),
            calls: study.calls()?,
            cold: cold_calls,
            patch: patch.as_ref().map(Patched::in_words),
            hints: None,
            optimisers,
        }),
        None => None,
    };
    outputs::write(&plan.out, &report, None)?;
    let worse = gates::worse(&compared);
    let ordered = after.filter(|_| compared.is_ok()).map(|after| (after.variant, scratch));
    Ok(Studied { plan, report, ordered, worse })
}

/// Without relocations no code can be moved.
fn require_relocations(plan: &Plan, tree: &Tree) -> Result<()> {
    let program = tree.path.join(&plan.started);
    if !program.is_file() {
        bail!(
            "--code orders the code of the program that is started, and the build did not make {}",
            plan.started.display()
        );
    }
    if lineup_study::companions::load(&program)?.keeps_relocations() {
        return Ok(());
    }
    bail!(
        "the build linked {} without relocations, which ordering its code needs. GCC and Clang were given linkers that \
         keep them, by COMPILER_PATH; this build links otherwise, or strips the program. Link it with \
         -Wl,--emit-relocs and without -s, as in --build 'make LDFLAGS=-Wl,--emit-relocs'",
        plan.started.display()
    )
}

/// The optimisers' programs, or the reason why they are not compared: that needs a program whose runs can be
/// compared.
fn beside_others(
    study: &Study<'_>,
    others: Others<'_>,
    (run, counted): (&Workload, &Training),
    proven: Option<&Proven<Proof>>,
    programs: [&Measured; 2],
) -> Result<Result<Optimisers, NotObserved>> {
    let time = proven.map(|proof| &proof.value().time);
    if !matches!(time, Some(Ok(_))) {
        return Ok(Err(NotObserved {
            what: "comparison with other optimisers".into(),
            consequence: "no time is claimed for the unchanged program, so none is compared".into(),
        }));
    }
    optimisers::table(study, others, &Trained { run, counted }, programs).map(Ok)
}
