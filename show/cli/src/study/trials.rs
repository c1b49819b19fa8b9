//! Trying the patch: built, recorded and compared. Halving finds the parts that fail; they are refused with their
//! reasons, and the rest is tried again.

use crate::advice_options::tell_unfounded_reviews;
use crate::progress::Stages;
use crate::study::certificate;
use crate::study::links::{self, Programs};
use crate::study::plan::Plan;
use crate::study::variant::{self, Change, Crashed, Variant};
use anyhow::{Context, Result};
use lineup_advise::meaning::Meaning;
use lineup_advise::options::FailedTrial;
use lineup_advise::proposal::{Advice, Step};
use lineup_advise::sources::Sources;
use lineup_advise::usage::Usage;
use lineup_prove::bisect::{self, Judged, Turn};
use lineup_prove::{Conclusion, Proof, ProofPlan, ProveError, Proven, Runner, Slot, Variant as RunOf, prove};
use lineup_report::study::CertificateReport;
use lineup_stats::random::Seed;
use lineup_study::effects::Snapshot;
use lineup_study::error::BuildError;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::source::judge::BuildJudge;
use lineup_study::source::meaning::Reading;
use lineup_study::source::scratch::Scratch;
use lineup_study::timing::Links;
use std::collections::BTreeMap;

/// More lines per call than this, over all regions by their weights, make a program worse.
pub(super) const MORE_LINES: f64 = 0.01;

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
}

/// A comparison, or the reason why it proves nothing.
pub(super) type Compared = Result<Proven<Proof>, String>;

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

/// A patch that is not proposed.
pub(crate) struct Rejected {
    /// Its changes.
    pub(crate) diff: String,
    /// The reason.
    pub(crate) because: String,
}

/// One changed program, tried.
enum Trial {
    Passed(Box<(Variant, Compared)>),
    Failed(Failure),
}

/// The reason why a changed program is not proposed.
pub(super) struct Failure {
    /// The reason, in words.
    pub(super) because: String,
    /// True when only timed runs showed it.
    pub(super) is_slower: bool,
    /// True when the program's effects have other bytes.
    pub(super) is_of_bytes: bool,
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
                Trial::Passed(after) => match certificate::write(self, &after, &advice)? {
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
        let cannot = |error: anyhow::Error| ProveError::Run { variant: RunOf::AFTER, source: error.into() };
        let links = links::of(self.plan, self.scratch, [self.before, after]).map_err(cannot)?;
        compare((self.plan, proof), [self.before, after], links, self.stages, self.interrupts)
    }

    /// The reason why a program with the same effects is worse: significantly more time, above the margin, or more
    /// lines. Parting data of threads may cost lines.
    fn worse(&self, proof: &Proof) -> Option<Failure> {
        let above_margin = proof.time.as_ref().is_ok_and(|time| !time.judgement.within_margin);
        let is_slower = proof.time_conclusion() == Conclusion::MoreTime && above_margin;
        let costs_lines = proof.lines_difference.is_some_and(|difference| difference > MORE_LINES);
        // The windows of time that are kept of cut calls differ between recordings.
        let is_cut = self.plan.advice.allow_growth && variant::has_cut_calls(self.before);
        let has_more_lines = costs_lines && !variant::parts_threads(self.plan, self.before) && !is_cut;
        let failure = Failure {
            because: format!("the changed program is worse: {}", proof.conclusion()),
            is_slower,
            is_of_bytes: false,
        };
        (is_slower || has_more_lines).then_some(failure)
    }
}

/// Compares two recorded variants: their effects, lines, and time, over these links of them.
pub(super) fn compare(
    (plan, proof): (&Plan, ProofPlan),
    [before, after]: [&Variant; 2],
    programs: Option<Programs>,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Proven<Proof>, ProveError> {
    stages.stage("observing the effects of the processes of both variants");
    let cannot = |error: anyhow::Error| ProveError::Run { variant: RunOf::BEFORE, source: error.into() };
    let [effects, effects_after] = variant::effects(plan, before, after, interrupts).map_err(cannot)?;
    before.repeat_calls(plan, after, interrupts).map_err(cannot)?;
    stages.stage("running both variants in turn");
    let links = programs.map(|programs| Links { programs, seed: proof.seed });
    let is_emulated = !before.recorded.abi().machine.is_host();
    let proof = ProofPlan { is_emulated, links: links.as_ref().map_or(1, Links::count), ..proof };
    let mut runner = variant::runner(plan, [before, after], links, interrupts).map_err(cannot)?;
    let most = 2 * u64::from(proof.warm_up) + 4 * proof.max_blocks;
    let mut watched = |slot: &Slot| {
        stages.advance(slot.number, most);
        runner.run(slot)
    };
    let (before, after) = (before.as_recorded(effects), after.as_recorded(effects_after));
    prove(&before, &after, &mut watched, &proof)
}

/// The changes that fail, found by trying the first half of the steps, and so on. All of them fail together.
///
/// # Errors
/// Those of `try_out`, which returns the failure of the program changed by a step; `None` when it passes.
pub(super) fn culprits(
    steps: &[Step],
    all: Failure,
    mut try_out: impl FnMut(&Step) -> Result<Option<Failure>>,
) -> Result<Vec<FailedTrial>> {
    let (mut because, mut is_of_bytes) = (all.because, all.is_of_bytes);
    let turn = bisect::search(steps.len(), |index| {
        let Some(step) = steps.get(index) else { return Ok(Judged::Skip) };
        anyhow::Ok(match try_out(step)? {
            None => Judged::Good,
            Some(failure) => {
                (because, is_of_bytes) = (failure.because, failure.is_of_bytes);
                Judged::Bad
            }
        })
    })?;
    let guilty = match turn {
        Turn::At(index) => vec![index],
        Turn::Among(indices) => indices,
    };
    let owners = guilty.into_iter().filter_map(|index| steps.get(index)).flat_map(|step| &step.owners);
    let owners: Vec<&String> = owners.collect();
    if is_of_bytes && let [owner] = owners[..] {
        because = format!(
            "bytes of {owner} leave the program: without its change the program does the same; with it {because}"
        );
    }
    Ok(owners
        .into_iter()
        .map(|owner| FailedTrial { owner: owner.clone(), because: because.clone() })
        .collect())
}

/// All changes, where one reason fails them together.
fn of_all(steps: &[Step], because: &str) -> Vec<FailedTrial> {
    let owners = steps.iter().flat_map(|step| &step.owners);
    owners.map(|owner| FailedTrial { owner: owner.clone(), because: because.to_owned() }).collect()
}

/// The failure that an error is.
///
/// # Errors
/// The error itself, when it says nothing about the change.
pub(super) fn failure_of(error: anyhow::Error) -> Result<Failure> {
    let is_of_the_change = match (error.downcast_ref::<BuildError>(), error.downcast_ref::<ProveError>()) {
        (Some(BuildError::Rejected { .. }), _) => true,
        (_, Some(ProveError::Run { .. } | ProveError::Stats(_))) => false,
        (_, Some(ProveError::Killed { signal, .. })) => !variant::is_sent(*signal),
        (_, Some(_)) => true,
        _ => error.downcast_ref::<Crashed>().is_some_and(|crashed| !variant::is_sent(crashed.signal)),
    };
    match is_of_the_change {
        true => {
            let is_of_bytes = matches!(error.downcast_ref::<ProveError>(), Some(ProveError::Effects { .. }));
            Ok(Failure { because: format!("{error:#}"), is_slower: false, is_of_bytes })
        }
        false => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended_by(signal: i32) -> [anyhow::Error; 2] {
        let recording = "calls.rec".into();
        [Crashed { signal, recording }.into(), ProveError::Killed { variant: RunOf::AFTER, signal }.into()]
    }

    #[test]
    fn a_crash_is_the_changes_and_a_signal_that_somebody_sent_is_not() {
        for error in ended_by(11) {
            let failure = failure_of(error).expect("the change's");
            assert!(failure.because.contains("SIGSEGV"), "{}", failure.because);
        }
        for signal in [9, 15] {
            for error in ended_by(signal) {
                assert!(failure_of(error).is_err(), "signal {signal} says nothing about the change");
            }
        }
    }
}
