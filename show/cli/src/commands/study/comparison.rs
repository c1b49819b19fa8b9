//! The comparison of the unchanged and the changed program, and its failures.

use super::links::Programs;
use super::plan::Plan;
use super::variant::{self, Crashed, Variant};
use crate::terminal::progress::Stages;
use anyhow::Result;
use lineup_advise::options::FailedTrial;
use lineup_advise::proposal::Step;
use lineup_prove::bisect::{self, Judged, Turn};
use lineup_prove::{Proof, ProofPlan, ProveError, Proven, Runner, Slot, Variant as RunOf, prove};
use lineup_study::error::BuildError;
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::timing::Links;

/// More lines per call than this, over all regions by their weights, make a program worse.
pub(crate) const MORE_LINES: f64 = 0.01;

/// A comparison, or the reason why it proves nothing.
pub(crate) type Compared = Result<Proven<Proof>, String>;

/// A patch that is not proposed.
pub(crate) struct Rejected {
    /// Its changes.
    pub(crate) diff: String,
    /// The reason.
    pub(crate) because: String,
}

/// The reason why a changed program is not proposed.
pub(crate) struct Failure {
    /// The reason, in words.
    pub(crate) because: String,
    /// True when only timed runs showed it.
    pub(crate) is_slower: bool,
    /// True when the program's effects have other bytes.
    pub(crate) is_of_bytes: bool,
}

/// Compares two recorded variants: their effects, lines, and time, over these links of them.
pub(crate) fn compare(
    (plan, proof): (&Plan, ProofPlan),
    [before, after]: [&Variant; 2],
    programs: Option<Programs>,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Proven<Proof>, ProveError> {
    stages.stage("observing the effects of the processes of both variants");
    let cannot = |error: anyhow::Error| ProveError::Run { variant: RunOf::BEFORE, source: error.into() };
    let [effects, effects_after] = variant::effects(plan, before, after, interrupts).map_err(cannot)?;
    before.repeat(plan, after, stages, interrupts).map_err(cannot)?;
    stages.stage("running both variants in turn");
    let links = programs.map(|programs| Links { programs, seed: proof.seed });
    let is_emulated = !before.recorded.abi().machine.is_host();
    let lines_noise = before.lines_noise(&proof);
    let proof =
        ProofPlan { is_emulated, links: links.as_ref().map_or(1, Links::count), lines_noise, ..proof };
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
pub(crate) fn culprits(
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
pub(crate) fn of_all(steps: &[Step], because: &str) -> Vec<FailedTrial> {
    let owners = steps.iter().flat_map(|step| &step.owners);
    owners.map(|owner| FailedTrial { owner: owner.clone(), because: because.to_owned() }).collect()
}

/// The failure that an error is.
///
/// # Errors
/// The error itself, when it says nothing about the change.
pub(crate) fn failure_of(error: anyhow::Error) -> Result<Failure> {
    let is_of_the_change = match (error.downcast_ref::<BuildError>(), error.downcast_ref::<ProveError>()) {
        (Some(BuildError::Rejected { .. }), _) => true,
        (_, Some(ProveError::Run { .. } | ProveError::Stats(_))) => false,
        (_, Some(ProveError::Killed { signal, .. })) => !variant::is_sent(*signal),
        // The unchanged program did not call it.
        (_, Some(ProveError::RegionEmpty { side, .. })) => *side == "after",
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
    fn a_region_that_the_unchanged_program_did_not_call_says_nothing_about_the_change() {
        let empty = |side| ProveError::RegionEmpty { region: "work".into(), side, line_bytes: 64 };
        assert!(failure_of(empty("before").into()).is_err());
        assert!(failure_of(empty("after").into()).is_ok());
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
