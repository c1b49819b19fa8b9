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
use lineup_prove::{Proof, ProofPlan, ProveError, Proven, Runner, Slot, Variant as RunOf, prove};
use lineup_report::study::{Fact, Patch};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
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
    let before = Variant::study(&plan, &scratch, Role::Before, None, &stages, &interrupts)?;
    let sources = texts::read(scratch.source(), scratch.leave_out())?;
    stages.stage("working out a better layout; every candidate is compiled");
    let advice = advise(&plan, &scratch, &before, &sources)?;
    interrupts.check()?;
    let patch = lineup_advise::patch::unified_diff(&sources, &advice.edited);
    let after = match patch.is_empty() {
        true => None,
        false => {
            Some(Variant::study(&plan, &scratch, Role::After, Some(&advice.edited), &stages, &interrupts)?)
        }
    };
    let (proof, not_proven) = match &after {
        None => (None, None),
        Some(after) => match compare(&plan, &before, after, &stages, &interrupts) {
            Ok(proof) => (Some(proof), None),
            Err(error) if error.is_other_work() => (None, Some(error.to_string())),
            Err(error) => {
                interrupts.check()?;
                // The comparison failed: the patch is kept under a name that nobody applies by mistake.
                outputs::write_rejected(&plan, &patch)?;
                return Err(error.into());
            }
        },
    };
    stages.end();
    scratch.check_untouched()?;
    let report = page::fill(Found {
        title: plan.program.display().to_string(),
        commands: outputs::commands(&plan, !patch.is_empty()),
        setting: setting(&plan, &scratch),
        line: plan.line(),
        built_in: scratch.built_in(before.tree()),
        before: &before.recorded,
        // What two programs did at different work is not shown side by side.
        after: after.as_ref().filter(|_| not_proven.is_none()).map(|after| &after.recorded),
        advice: &advice,
        patch: (!patch.is_empty()).then(|| Patch { file: outputs::PATCH.into(), text: patch.clone() }),
        not_proven,
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
    let mut judge = BuildJudge::new(scratch, Path::new(&plan.program))?;
    let usage = before.recorded.usage();
    Ok(lineup_advise::advise(&usage, before.recorded.types(), sources, &plan.advice, &mut judge)?)
}

fn compare(
    plan: &Plan,
    before: &Variant,
    after: &Variant,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Proven<Proof>, ProveError> {
    stages.stage("observing what leaves the processes of both variants");
    let cannot = |error: anyhow::Error| ProveError::Run { variant: RunOf::BEFORE, source: error.into() };
    let [effects, effects_after] = variant::effects(plan, before, after, interrupts).map_err(cannot)?;
    stages.stage("running both variants in turn");
    let mut runner = variant::runner(plan, before, after, interrupts).map_err(cannot)?;
    let machine = before.recorded.abi().machine;
    let proof = ProofPlan { is_emulated: !machine.is_host(), ..plan.proof };
    let most = 2 * u64::from(proof.warm_up) + 4 * proof.max_blocks;
    let mut watched = |slot: &Slot| {
        stages.advance(slot.number, most);
        runner.run(slot)
    };
    let (before, after) = (before.as_recorded(effects), after.as_recorded(effects_after));
    prove(&before, &after, &mut watched, &proof)
}
