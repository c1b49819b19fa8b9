//! `lineup study`: from an unmodified program to a proven source patch.

mod outputs;
pub(crate) mod plan;
mod variant;

use crate::files;
use crate::outcome::Outcome;
use crate::page::{self, Found};
use crate::progress::Stages;
use anyhow::Result;
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_prove::{Proof, ProofPlan, Proven, prove};
use lineup_report::study::{Fact, Patch};
use lineup_study::interrupt::Interrupts;
use lineup_study::source::judge::BuildJudge;
use lineup_study::source::scratch::{Role, Scratch};
use lineup_study::source::texts;
pub(crate) use plan::Options;
use plan::Plan;
use std::path::Path;
use variant::Variant;

/// Records the program as it is, works out a better layout, applies it to a copy, records again, compares,
/// and writes report, patch and figures.
pub(crate) fn run(options: Options) -> Result<Outcome> {
    let interrupts = Interrupts::watch()?;
    let stages = Stages::new();
    let plan = Plan::of(options, &interrupts, &stages)?;
    let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, &interrupts)?;
    let before = Variant::study(&plan, &scratch, Role::Before, None, &interrupts)?;
    let sources = texts::read(scratch.source(), scratch.leave_out())?;
    let advice = advise(&plan, &scratch, &before, &sources)?;
    let patch = lineup_advise::patch::unified_diff(&sources, &advice.edited);
    let after = match patch.is_empty() {
        true => None,
        false => Some(Variant::study(&plan, &scratch, Role::After, Some(&advice.edited), &interrupts)?),
    };
    let proof = match &after {
        None => None,
        Some(after) => Some(compare(&plan, &before, after, &interrupts).inspect_err(|_| {
            // The comparison failed: the patch is kept under a name that nobody applies by mistake.
            let _ = outputs::write_rejected(&plan, &patch);
        })?),
    };
    scratch.check_untouched()?;
    let report = page::fill(Found {
        title: plan.program.display().to_string(),
        commands: outputs::commands(&plan, !patch.is_empty()),
        setting: setting(&plan, &scratch),
        line: plan.line(),
        built_in: scratch.built_in(before.tree()),
        before: &before.recorded,
        after: after.as_ref().map(|after| &after.recorded),
        advice: &advice,
        patch: (!patch.is_empty()).then(|| Patch { file: outputs::PATCH.into(), text: patch.clone() }),
        proof: proof.as_ref(),
    });
    outputs::write(&plan, &report, &advice, &patch)?;
    files::print(&outputs::for_standard_output(&plan, &report)?)?;
    Ok(Outcome::Done)
}

/// How the program was built.
fn setting(plan: &Plan, scratch: &Scratch) -> Vec<Fact> {
    let remarks = scratch.remarks().into_iter().map(|value| Fact { name: "copies".into(), value });
    std::iter::once(Fact { name: "build".into(), value: plan.build.clone() }).chain(remarks).collect()
}

fn advise(plan: &Plan, scratch: &Scratch, before: &Variant, sources: &Sources) -> Result<Advice> {
    plan.progress("working out a better layout; every candidate is compiled");
    let mut judge = BuildJudge::new(scratch, Path::new(&plan.program))?;
    let usage = before.recorded.usage();
    Ok(lineup_advise::advise(&usage, before.recorded.types(), sources, &plan.advice, &mut judge)?)
}

fn compare(plan: &Plan, before: &Variant, after: &Variant, interrupts: &Interrupts) -> Result<Proven<Proof>> {
    plan.progress("running both variants in turn");
    let mut runner = variant::runner(plan, before, after, interrupts)?;
    let machine = before.recorded.abi().machine;
    let proof = ProofPlan { is_emulated: !machine.is_host(), ..plan.proof };
    Ok(prove(&before.recorded.footprints(), &after.recorded.footprints(), &mut runner, &proof)?)
}
