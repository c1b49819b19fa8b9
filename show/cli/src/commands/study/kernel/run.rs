//! `lineup study --kernel-source`: from a kernel's sources to a patch that was built, booted, recorded and compared.

use super::plan::{KernelPlan, commands};
use super::trials::{Settled, Trials};
use super::variant::{Booted, Variant};
use super::{order, variant};
use crate::commands::study::{args, output_folder, outputs, result_files};
use crate::host::facts;
use crate::kernels::commit_message::{BootedKernel, Ground, series};
use crate::options::advice::outcome_of_orders;
use crate::options::pins::check_pins;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_prove::footprint::LineKind;
use lineup_report::study::{Fact, Patch, ProgramFindings, SOURCES, StudyReport};
use lineup_study::progress::Progress;
use lineup_study::recorder::require_recorder;
use lineup_study::source::kernel_configuration::{KernelPlaces, randomisation};
use lineup_study::source::kernel_tree::KernelTree;
use lineup_study::source::meaning::Reading;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Studies the kernel whose sources are in `tree`.
pub(crate) fn run(tree: &Path, typed: &args::Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let out = output_folder::prepare(&typed.out, tree, typed.overwrite)?;
    let canonical =
        |folder: &Path| folder.canonicalize().with_context(|| format!("cannot find {}", folder.display()));
    // Results of an earlier study may stay in the folder that was named; its builds are used again.
    let (out, named) = (canonical(&out)?, canonical(&typed.out)?);
    let mut plan = KernelPlan::of(typed, &out)?;
    let (configuration, configured) = plan.options.configuration(tree)?;
    // A kernel takes long to build, and is of no use where no kernel can be recorded.
    require_recorder()?;
    stages.stage("copying the kernel's sources");
    let mut copy = KernelTree::copy(plan.options.source(tree, &out, &named)?, &interrupts)?;
    stages.stage(&format!("configuring the kernel: {configured}"));
    let log = out.join("configure.log");
    fs::write(&log, "").with_context(|| format!("cannot write {}", log.display()))?;
    let remarks = copy.configure(&configuration, &log, &stages)?;
    let places = KernelPlaces { folder: Some(copy.objects()), ..KernelPlaces::default() };
    plan.advice.randomisation = randomisation(&places);
    let built = variant::build(&plan, &mut copy, &BTreeMap::new(), &stages)?;
    let as_it_is = "the unchanged kernel";
    let booted = Booted::boot(&plan, &built, &stages, &interrupts).context(as_it_is)?;
    let varying = &booted.varying(&stages, &interrupts).context(as_it_is)?;
    let recorded = booted.record_called(&mut plan, &stages, &interrupts).context(as_it_is)?;
    let (before, silent) = (&recorded.0, recorded.1);
    let plan = plan;
    let remarks: Vec<String> = remarks.into_iter().chain(silent).collect();
    check_pins(&plan.advice.pins, before.recorded.types())?;
    let compiler = compiler(before);
    let mut trials = Trials {
        plan: &plan,
        tree: &mut copy,
        before,
        varying,
        boots: None,
        stages: &stages,
        interrupts: &interrupts,
    };
    if plan.lines_of == LineKind::Code {
        return order::run(&mut trials, facts(&compiler, &configured, &remarks, None));
    }
    let settled = trials.settle()?;
    stages.end();
    copy.check_untouched()?;
    let facts = facts(&compiler, &configured, &remarks, settled.reading.as_ref());
    conclude(&plan, &copy, before, settled, facts)
}

/// The compiler that built the kernel, as it reports it.
fn compiler(before: &Variant) -> String {
    let banner = before.printed().kernel.iter().find(|line| line.contains("Linux version"));
    let words = banner.and_then(|line| line.split_once(") (")).map(|(_, rest)| rest);
    words.and_then(|rest| rest.split_once(") #")).map_or("", |(compiler, _)| compiler).to_owned()
}

fn facts(compiler: &str, configured: &str, remarks: &[String], reading: Option<&Reading>) -> Vec<Fact> {
    let fact = |name: &str, value: String| Fact { name: name.into(), value };
    let read = reading.into_iter().map(|reading| fact(SOURCES, reading.in_words()));
    let compiler = (!compiler.is_empty()).then(|| fact("built with", compiler.to_owned()));
    std::iter::once(fact("configured with", configured.to_owned()))
        .chain(compiler)
        .chain(read)
        .chain(remarks.iter().map(|remark| fact("configuration", remark.clone())))
        .collect()
}

/// Writes report, figures and patch, and returns the study's outcome.
fn conclude(
    plan: &KernelPlan<'_>,
    copy: &KernelTree,
    before: &Variant,
    settled: Settled,
    setting: Vec<Fact>,
) -> Result<Outcome> {
    let Settled { advice, sources, after, guest, rejected, .. } = settled;
    let (after, compared) = after.unzip();
    // Where the rest of a patch passed, the failed parts are among the refusals.
    let rejected = rejected.filter(|_| after.is_none());
    let (proof, not_proven) = match compared {
        None => (None, rejected.as_ref().map(|rejected| format!("the change failed: {}", rejected.because))),
        Some(Ok(proof)) => (Some(proof), None),
        Some(Err(reason)) => (None, Some(reason)),
    };
    let release = before.recorded.header().command.first().cloned().unwrap_or_default();
    let name = if proof.is_some() { result_files::PATCH } else { result_files::UNPROVEN };
    let mut report = StudyReport::of_found(ProgramFindings {
        title: format!("Linux {release} under workload {}", plan.options.workload()),
        commands: commands(plan, copy.tree(), proof.is_some()),
        setting,
        machine: facts::of_this_machine(),
        line: plan.advice.primary,
        built_in: copy.copied_to(),
        before: &before.recorded,
        after: after.as_ref().filter(|_| proof.is_some()).map(|after| &after.recorded),
        advice: Some(&advice),
        patch: None,
        not_proven,
        proof: proof.as_ref(),
        call_times: None,
        not_timed: Vec::new(),
        contention: None,
    });
    report.keep_maps_of(&advice);
    if let (Some(_), Some(guest)) = (&after, &guest) {
        let (bound, why) = (before.recorded.emulator(), report.not_proven.as_deref());
        let calls = |region| before.recorded.calls_made(region);
        let tried = BootedKernel { emulator: bound, guest, not_proven: why };
        let ground = Ground {
            release: &release,
            workload: plan.options.workload(),
            calls: &calls,
            tried: Some(tried),
        };
        report.patch = Some(Patch { file: name.into(), text: series(&advice, &sources, &ground) });
    }
    report.guest = guest;
    let failed = rejected.as_ref().map(|rejected| rejected.diff.as_str());
    outputs::write(plan.out, &report, failed)?;
    output::print(&outputs::for_standard_output(plan.json, plan.report, plan.out, &report)?)?;
    let applied = outcome_of_orders(&plan.advice.orders, &advice);
    match rejected {
        None => Ok(applied),
        Some(_) => {
            let path = plan.out.join(result_files::REJECTED);
            eprintln!("lineup: the change failed and is not proposed; it is kept in {}", path.display());
            Ok(Outcome::Finding)
        }
    }
}
