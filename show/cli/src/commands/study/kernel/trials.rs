//! Trying the patch to a kernel: built, booted, its offsets read back, recorded and compared. Halving finds the parts
//! that fail; they are refused with their reasons, and the rest is tried again.

use super::boots::{Boots, LinesVerdict};
use super::plan::KernelPlan;
use super::variant::{Booted, DoesNotRun, GuestRunner, Variant};
use super::{figures, variant};
use crate::commands::study::comparison::{Compared, Failure, Rejected, culprits};
use crate::kernels::advice::{KernelAdvice, advise_on};
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_advise::proposal::Advice;
use lineup_advise::sources::Sources;
use lineup_kernel::guest::Varying;
use lineup_prove::{ProofPlan, prove};
use lineup_report::study::GuestComparison;
use lineup_study::error::BuildError;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::kernel_tree::KernelTree;
use lineup_study::source::meaning::Reading;
use std::collections::BTreeMap;

/// The share by which the calls of a region may differ between two guests: their timers tick at different points.
const CALLS_APART: f64 = 0.1;

/// The state of a study before anything is changed.
pub(crate) struct Trials<'t> {
    pub(crate) plan: &'t KernelPlan<'t>,
    pub(crate) tree: &'t mut KernelTree,
    pub(crate) before: &'t Variant,
    pub(crate) varying: &'t Varying,
    /// Further recorded boots of the unchanged kernel, once they were made.
    pub(crate) boots: Option<Boots>,
    pub(crate) stages: &'t Stages,
    pub(crate) interrupts: &'t Interrupts,
}

/// The outcome of the advice.
pub(crate) struct Settled {
    pub(crate) advice: Advice,
    pub(crate) sources: Sources,
    /// Clang's reading of the units; `None` when the build noted none.
    pub(crate) reading: Option<Reading>,
    /// The changed kernel and its comparison; `None` when nothing is changed.
    pub(crate) after: Option<(Variant, Compared)>,
    /// Both kernels side by side; `None` when nothing is changed.
    pub(crate) guest: Option<GuestComparison>,
    /// The first patch that failed; `None` when none did.
    pub(crate) rejected: Option<Rejected>,
}

/// A changed kernel that was tried.
struct KernelTrial {
    after: Variant,
    compared: Compared,
    guest: GuestComparison,
}

impl Trials<'_> {
    /// Works out advice until the kernel with all of its changes passes, or nothing is left to change.
    pub(crate) fn settle(&mut self) -> Result<Settled> {
        let kbuild = self.tree.kbuild()?.context("the build noted no compiler's call, as kbuild does")?;
        let sources = kbuild.texts();
        let mut options = self.plan.advice.clone();
        let mut rejected = None;
        loop {
            let wanted = (&options, &self.plan.units);
            let advised =
                advise_on(&self.before.recorded, (sources.clone(), Some(&kbuild)), wanted, self.stages)?;
            self.interrupts.check()?;
            let KernelAdvice { mut advice, sources, reading } = advised;
            let steps = advice.steps();
            let Some(last) = steps.last() else {
                return Ok(Settled { advice, sources, reading, after: None, guest: None, rejected });
            };
            let failure = match self.try_out(&last.edited, &mut advice)? {
                Ok(KernelTrial { after, compared, guest }) => {
                    let (after, guest) = (Some((after, compared)), Some(guest));
                    return Ok(Settled { advice, sources, reading, after, guest, rejected });
                }
                Err(failure) => failure,
            };
            self.stages.line(&format!("lineup: the change failed: {}", failure.because));
            let because = failure.because.clone();
            let guilty = culprits(&steps, failure, |step| {
                let owners = step.owners.join(", ");
                self.stages.line(&format!("lineup: looking for the change that fails: up to {owners}"));
                Ok(self.try_out(&step.edited, &mut advice.up_to(step))?.err())
            })?;
            rejected.get_or_insert_with(|| Rejected {
                diff: lineup_advise::patch::unified_diff(&sources, &last.edited),
                because,
            });
            options.failed.extend(guilty);
        }
    }

    /// Builds, boots, records and compares the kernel with these texts. `advice` is their basis.
    fn try_out(
        &mut self,
        edited: &BTreeMap<String, String>,
        advice: &mut Advice,
    ) -> Result<Result<KernelTrial, Failure>> {
        let after = match self.changed(edited) {
            Ok(after) => after,
            Err(error) => return failure_of(error).map(Err),
        };
        if let Err(missing) = advice.hold_against(after.recorded.types()) {
            let because =
                format!("the built image has another layout of {} than predicted", missing.join(", "));
            return Ok(Err(failure(because)));
        }
        let (plan, before) = (self.plan, self.before);
        let mut guest = figures::side_by_side(plan, advice, [before, &after], self.varying);
        let lines = match self.lines_verdict(advice, &after) {
            Ok(lines) => lines,
            Err(error) => return failure_of(error).map(Err),
        };
        let because = match &lines {
            Some(lines) => lines.failure(),
            None => figures::no_gain(&guest.types),
        };
        if let Some(because) = because {
            return Ok(Err(failure(because)));
        }
        guest.compared.extend(lines.as_ref().map(LinesVerdict::fact));
        let noise = lines.as_ref().map(LinesVerdict::noise_in_all);
        let compared = match self.compare(&after, noise) {
            Ok(compared) => compared,
            Err(error) => return failure_of(error).map(Err),
        };
        if lines.is_none()
            && let Ok(proof) = &compared
            && let Some(because) = figures::more_lines([before, &after], proof.value(), plan.advice.primary)
        {
            return Ok(Err(failure(because)));
        }
        Ok(Ok(KernelTrial { after, compared, guest }))
    }

    /// Boots both kernels further times, and compares the lines of the changed types and of all.
    fn lines_verdict(&mut self, advice: &Advice, after: &Variant) -> Result<Option<LinesVerdict>> {
        let (plan, stages, interrupts) = (self.plan, self.stages, self.interrupts);
        if self.boots.is_none() {
            self.boots = Some(Boots::of(self.before, plan, stages, interrupts)?);
        }
        let Some(before) = &self.boots else { return Ok(None) };
        let changed = Boots::of(after, plan, stages, interrupts)?;
        let [old, new] = [self.before, after].map(|variant| variant.recorded.types());
        LinesVerdict::of(advice, [(before, old), (&changed, new)], plan.advice.primary)
    }

    /// The changed kernel, recorded. Before it is, it has to boot and to do the same.
    pub(crate) fn changed(&mut self, edited: &BTreeMap<String, String>) -> Result<Variant> {
        let (plan, stages, interrupts) = (self.plan, self.stages, self.interrupts);
        let built = variant::build(plan, self.tree, edited, stages)?;
        let booted = Booted::boot(plan, &built, stages, interrupts)?;
        if let Some(difference) = self.before.printed().difference(&booted.printed, self.varying) {
            return Err(DoesOther(difference).into());
        }
        booted.record(plan, stages, interrupts)
    }

    pub(crate) fn compare(&self, after: &Variant, lines_noise: Option<f64>) -> Result<Compared> {
        self.stages.stage("booting both kernels in turn");
        let variants = [self.before, after];
        let mut runner =
            GuestRunner { variants, varying: self.varying, stages: self.stages, interrupts: self.interrupts };
        let proof = ProofPlan {
            line: self.plan.advice.primary,
            lines_of: self.plan.lines_of,
            lines_noise,
            is_emulated: true,
            calls_apart: CALLS_APART,
            ..ProofPlan::default()
        };
        let [before, after] = variants.map(|variant| variant.as_recorded(self.varying));
        match prove(&before, &after, &mut runner, &proof) {
            Ok(proven) => Ok(Ok(proven)),
            Err(error) if error.is_other_work() => Ok(Err(error.to_string())),
            Err(error) => {
                self.interrupts.check()?;
                Err(error.into())
            }
        }
    }
}

/// A changed kernel that prints something else.
#[derive(Debug, thiserror::Error)]
#[error("the kernels do not do the same: {0}")]
struct DoesOther(String);

fn failure(because: String) -> Failure {
    Failure { because, is_slower: false, is_of_bytes: false }
}

/// The failure that an error is.
///
/// # Errors
/// The error itself, when it says nothing about the change.
pub(crate) fn failure_of(error: anyhow::Error) -> Result<Failure> {
    let is_of_the_change = error.is::<DoesNotRun>()
        || error.is::<DoesOther>()
        || matches!(error.downcast_ref::<BuildError>(), Some(BuildError::Rejected { .. }))
        || error.is::<lineup_prove::ProveError>();
    match is_of_the_change {
        true => Ok(failure(format!("{error:#}"))),
        false => Err(error),
    }
}
