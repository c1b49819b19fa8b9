//! Trying the patch: built, recorded and compared. Halving finds the parts that fail; they are refused with their
//! reasons, and the rest is tried again.

use super::comparison::{Compared, Failure, MORE_LINES, Rejected, compare, culprits, failure_of, of_all};
use super::plan::Plan;
use super::result_files::{self, UNPROVEN};
use super::sanitized::Sanitized;
use super::variant::{Change, Variant};
use super::{certificate, links, variant};
use crate::options::advice::tell_unfounded_reviews;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result};
use lineup_advise::meaning::Meaning;
use lineup_advise::options::FailedTrial;
use lineup_advise::proposal::{Advice, Step};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_prove::{Conclusion, Proof, ProofPlan, ProveError, Proven, Variant as RunOf};
use lineup_report::study::CertificateReport;
use lineup_stats::random::Seed;
use lineup_study::effects::Snapshot;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::judge::BuildJudge;
use lineup_study::source::meaning::Reading;
use lineup_study::source::scratch::Scratch;
use std::collections::BTreeMap;
use std::path::Path;

/// The state of a study before anything is changed.
pub(crate) struct Trials<'t> {
    pub(crate) plan: &'t Plan,
    pub(crate) scratch: &'t Scratch,
    pub(crate) before: &'t Variant,
    /// The folder of the unchanged program, before any trial ran in it: all trials find the same files.
    pub(crate) as_recorded: &'t Snapshot,
    /// An audit's constraints on types.
    pub(crate) seen: Option<&'t Meaning>,
    pub(crate) sources: &'t Sources,
    pub(crate) stages: &'t Stages,
    pub(crate) interrupts: &'t Interrupts,
    /// The sanitizers, where the user asks for them.
    pub(crate) sanitized: Option<Sanitized<'t>>,
}

/// The outcome of the advice.
pub(crate) struct Settled {
    pub(crate) advice: Advice,
    /// The changed program and its comparison; `None` when nothing is changed.
    pub(crate) after: Option<(Variant, Compared)>,
    /// The first patch that failed; `None` when none did.
    pub(crate) rejected: Option<Rejected>,
    /// The changed program's certificate, or why there is none.
    pub(crate) certificate: Option<CertificateReport>,
}

/// The place of a patch whose comparison was ended early.
pub(crate) fn kept_patch(out: &Path) -> String {
    let path = out.join(UNPROVEN).display().to_string();
    format!(
        "the study was ended early; its patch, built and recorded but not compared to the end, is kept in {path}"
    )
}

/// One changed program, tried.
enum Trial {
    Passed(Box<(Variant, Compared)>),
    Failed(Failure),
}

impl Trials<'_> {
    /// Works out advice until the program with all of its changes passes, or nothing is left to change.
    pub(crate) fn settle(&self) -> Result<Settled> {
        let mut options = self.plan.advice.clone();
        let read = self.before.reading.as_ref().map(Reading::meaning).unwrap_or_default();
        options.meaning = read.and(options.meaning).and(self.seen.cloned().unwrap_or_default());
        tell_unfounded_reviews(&options.meaning);
        let calls = self.before.reading.as_ref().map_or(&[][..], |reading| &reading.calls);
        let (built, program) = (&self.before.tree().path, self.before.program());
        let mut judge = BuildJudge::new(self.scratch, program, built, calls, self.interrupts)?;
        let mut rejected = None;
        loop {
            self.stages.stage("working out a better layout; the compiler judges every candidate");
            let usage = Usage::of_explained(&self.before.recorded);
            let types = self.before.recorded.types();
            let advice = lineup_advise::advise(&usage, types, self.sources, &options, &mut judge)?;
            self.interrupts.check()?;
            let steps = advice.steps();
            let Some(last) = steps.last() else {
                return Ok(Settled { advice, after: None, rejected, certificate: None });
            };
            let culprits = match self.try_out(&last.edited, self.plan.proof, &mut judge)? {
                Trial::Passed(after) => match self.certificate(&after, &advice)? {
                    Ok(certificate) => {
                        let certificate = Some(certificate);
                        return Ok(Settled { advice, after: Some(*after), rejected, certificate });
                    }
                    Err(because) => of_all(&steps, &because),
                },
                Trial::Failed(failure) => self.culprits(&steps, failure, &mut judge)?,
            };
            rejected.get_or_insert_with(|| Rejected {
                diff: lineup_advise::patch::unified_diff(self.sources, &last.edited),
                because: culprits.iter().map(|one| one.because.clone()).next().unwrap_or_default(),
            });
            options.failed.extend(culprits);
        }
    }

    /// The certificate of a changed program that passed. The inner error is a difference that the new layout does not
    /// explain.
    fn certificate(
        &self,
        (after, compared): &(Variant, Compared),
        advice: &Advice,
    ) -> Result<Result<CertificateReport, String>> {
        let (study, work) = ((self.plan, self.scratch), (self.interrupts, self.stages));
        certificate::write(study, [self.before, after], compared, advice, work)
    }

    /// The changes that make the program fail.
    fn culprits(
        &self,
        steps: &[Step],
        failure: Failure,
        judge: &mut BuildJudge<'_>,
    ) -> Result<Vec<FailedTrial>> {
        let proof = match failure.is_slower {
            true => self.plan.proof,
            // A failure to build, to run or to do the same shows without a long comparison of times.
            false => ProofPlan { max_time_ns: 0, ..self.plan.proof },
        };
        culprits(steps, failure, |step| {
            self.stages.stage(&format!("looking for the change that fails: with {}", step.owners.join(", ")));
            Ok(match self.try_out(&step.edited, proof, judge)? {
                Trial::Passed(_) => None,
                Trial::Failed(failure) => Some(failure),
            })
        })
    }

    /// Builds, records and compares the program with these texts.
    fn try_out(
        &self,
        edited: &BTreeMap<String, String>,
        proof: ProofPlan,
        judge: &mut BuildJudge<'_>,
    ) -> Result<Trial> {
        let (plan, stages) = (self.plan, self.stages);
        self.as_recorded.restore().context("cannot restore the folder of the unchanged program")?;
        let change = Some(Change { edited, judge });
        let changed = Variant::study((plan, self.before), self.scratch, change, stages, self.interrupts);
        let after = match changed {
            Ok(after) => after,
            Err(error) => return failure_of(error).map(Trial::Failed),
        };
        let fault = self.sanitized.as_ref().map(|sanitized| sanitized.judge(edited)).transpose()?.flatten();
        if let Some(because) = fault {
            return Ok(Trial::Failed(Failure { because, is_slower: false, is_of_bytes: false }));
        }
        self.keep_early(edited)?;
        match self.compare_confirmed(&after, proof) {
            Ok(proven) => Ok(match self.worse(proven.value()) {
                Some(failure) => Trial::Failed(failure),
                None => Trial::Passed(Box::new((after, Ok(proven)))),
            }),
            Err(error) if error.is_other_work() => {
                Ok(Trial::Passed(Box::new((after, Err(error.to_string())))))
            }
            Err(error) => {
                self.interrupts.check()?;
                failure_of(error.into()).map(Trial::Failed)
            }
        }
    }

    /// Writes the changes that are about to be compared: a study that is ended early leaves them.
    fn keep_early(&self, edited: &BTreeMap<String, String>) -> Result<()> {
        let out = &self.plan.out;
        result_files::put(out, UNPROVEN, &lineup_advise::patch::unified_diff(self.sources, edited))?;
        self.stages.keep(Some(kept_patch(out)));
        Ok(())
    }

    /// Compares, and where the program seems slower once more in another order: one comparison in forty takes noise for
    /// more time at the usual level, and a good patch is not thrown away for that.
    fn compare_confirmed(&self, after: &Variant, proof: ProofPlan) -> Result<Proven<Proof>, ProveError> {
        let proven = self.compare(after, proof)?;
        match self.worse(proven.value()) {
            Some(failure) if failure.is_slower => {
                self.compare(after, ProofPlan { seed: Seed(!proof.seed.0), ..proof })
            }
            _ => Ok(proven),
        }
    }

    fn compare(&self, after: &Variant, proof: ProofPlan) -> Result<Proven<Proof>, ProveError> {
        // A comparison of fewer blocks is worth more than one that is cut off.
        let most = self.interrupts.time_left().map_or(u64::MAX, |left| (left / 2).as_nanos() as u64);
        let proof = ProofPlan { max_time_ns: proof.max_time_ns.min(most), ..proof };
        let cannot = |error: anyhow::Error| ProveError::Run { variant: RunOf::AFTER, source: error.into() };
        let links = links::of(self.plan, self.scratch, [self.before, after]).map_err(cannot)?;
        compare((self.plan, proof), [self.before, after], links, self.stages, self.interrupts)
    }

    /// The reason why a program with the same effects is worse: significantly more time, above the margin, or more
    /// lines. Parting data of threads may cost lines.
    fn worse(&self, proof: &Proof) -> Option<Failure> {
        let above_margin = proof.time.as_ref().is_ok_and(|time| !time.judgement.within_margin);
        let is_slower = proof.time_conclusion() == Conclusion::MoreTime && above_margin;
        // The windows of time that are kept of cut calls differ between recordings.
        let is_cut = self.plan.advice.allow_growth && variant::has_cut_calls(self.before);
        let has_more_lines =
            proof.has_more_lines(MORE_LINES) && !variant::parts_threads(self.plan, self.before) && !is_cut;
        let failure = Failure {
            because: format!("the changed program is worse: {}", proof.conclusion()),
            is_slower,
            is_of_bytes: false,
        };
        (is_slower || has_more_lines).then_some(failure)
    }
}
