//! Confirming what a study chose: variants of a program in runs that did not choose them, on each input, and the
//! effects of their processes.

use super::args;
use crate::terminal::progress::{Stages, collect_shown};
use crate::terminal::typed_command;
use anyhow::{Context, Result};
use lineup_prove::ProofPlan;
use lineup_prove::compare::{ComparePlan, Contrast, Estimated, Stopped, judge_all};
use lineup_prove::effects::RepeatedEffects;
use lineup_prove::elimination::{Elimination, EliminationPlan, Round, eliminate, most_runs};
use lineup_prove::metric::{ELAPSED, PEAK_MEMORY};
use lineup_prove::run::{RunResult, Runner, Slot, Variant};
use lineup_report::placement::{Change, ConfirmedInput};
use lineup_stats::random::Seed;
use lineup_stats::verdict::Verdict;
use lineup_study::effects::{EffectsError, observe, observe_variants};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{ProcessRunner, RunnerOptions};

/// Order of runs and environments follow from this, in the runs that choose.
pub(crate) const SEED: Seed = Seed(1);

pub(crate) type BoxedError = Box<dyn std::error::Error + Send + Sync>;

/// The setting of a confirmation.
#[derive(Clone, Copy)]
pub(crate) struct Confirmation<'c> {
    pub(crate) options: &'c args::Options,
    pub(crate) interrupts: &'c Interrupts,
    pub(crate) stages: &'c Stages,
}

/// The words that show that effects agree begin with this.
pub(crate) const EQUAL: &str = "equal";

/// The words of effects that could not be observed begin with this.
pub(crate) const NOT_OBSERVED: &str = "not observed";

impl Confirmation<'_> {
    /// A runner of these variants.
    pub(crate) fn runner(&self, variants: Vec<Run>) -> Result<ProcessRunner> {
        let options = RunnerOptions {
            placing: self.options.cpus.clone(),
            vary_environment: Some(SEED),
            ..RunnerOptions::default()
        };
        Ok(ProcessRunner::new(variants, options, self.interrupts)?)
    }

    /// Chooses among `among`, candidates in words, by rounds of paired runs with the first of the variants.
    pub(crate) fn eliminated(
        &self,
        variants: Vec<Run>,
        plan: &EliminationPlan,
        among: &str,
    ) -> Result<Elimination> {
        let mut runner = self.runner(variants)?;
        self.stages.stage(&format!("running the program as it is and {among} in turn"));
        let (mut done, total) = (0, most_runs(plan.candidates));
        let mut shown = |slot: &Slot| {
            self.stages.advance(done, total);
            done += 1;
            runner.run(slot)
        };
        Ok(eliminate(&mut shown, plan))
    }

    /// Compares variants with the first one in new runs: a result for each other variant, and the error that cut the
    /// runs short. Output is not compared where `is_unrepeatable`.
    pub(crate) fn on_input(
        &self,
        runs: Vec<Run>,
        (is_second, is_unrepeatable): (bool, bool),
    ) -> Result<(Vec<ConfirmedInput>, Option<BoxedError>)> {
        let command = runs.first().map(|run| self.in_words(run)).unwrap_or_default();
        let variants: Vec<Variant> = (0..runs.len()).map(Variant).collect();
        let mut runner = self.runner(runs)?;
        let plan = ComparePlan {
            variants: variants.len(),
            margin: self.options.margin.0,
            max_blocks: ProofPlan::default().max_blocks,
            max_time_ns: self.options.max_time.saturating_mul(1_000_000_000),
            // Not the order of the runs that chose.
            seed: Seed(SEED.part(u64::from(is_second) + 1000).0),
            ..ComparePlan::default()
        };
        let collected = collect_shown(&mut runner, &plan, self.stages);
        let (comparison, cut_short) = match (judge_all(&collected, &plan), collected.stopped) {
            (Err(_), Stopped::Failed(error)) => return Ok((Vec::new(), Some(error))),
            (comparison, Stopped::Failed(error)) => (comparison?, Some(error)),
            (comparison, _) => (comparison?, None),
        };
        let round = Round { variants: variants.clone(), comparison };
        let confirmed = variants.into_iter().skip(1).map(|variant| {
            let contrast = round.contrast(variant, ELAPSED).context("the elapsed time was not compared")?;
            Ok(ConfirmedInput {
                command: command.clone(),
                is_second,
                blocks: round.comparison.blocks,
                verdict: contrast.verdict.word(),
                elapsed: change_of(contrast).context("the elapsed time was not compared")?,
                smallest_detectable: contrast.smallest_detectable,
                peak_memory_ratio: ratio(&round, variant, PEAK_MEMORY),
                page_faults_ratio: ratio(&round, variant, "page-faults"),
                difference: difference(&collected.runs, variant, is_unrepeatable),
            })
        });
        Ok((confirmed.collect::<Result<_>>()?, cut_short))
    }

    /// The effects of the processes of two variants, compared, in words that begin with [`EQUAL`] where they agree.
    pub(crate) fn effects(&self, variants: [&Run; 2]) -> Result<String> {
        self.stages.stage("observing the effects of the processes");
        let [before, after] = variants;
        let seen = match before.directory.is_some() {
            true => observe_variants(before, after, self.interrupts)?,
            // In the user's own folder nothing is put back.
            false => self.twice(variants)?,
        };
        let [before, after] = match seen {
            Ok(both) => both,
            Err(why) => return Ok(format!("{NOT_OBSERVED}: {why}")),
        };
        Ok(match before.agreement(&after) {
            Ok(_) => format!("{EQUAL}: output, files, system calls, signals, exit"),
            Err(difference) => format!("{} differs: {}", difference.effect, difference.how),
        })
    }

    /// Both variants, each in two runs.
    fn twice(&self, variants: [&Run; 2]) -> Result<std::result::Result<[RepeatedEffects; 2], EffectsError>> {
        let mut seen = variants.map(|_| Vec::new());
        for (effects, run) in seen.iter_mut().zip(variants) {
            for _ in 0..2 {
                match observe(run, false, self.interrupts)? {
                    Ok(observed) => effects.push(observed.effects),
                    Err(why) => return Ok(Err(why)),
                }
            }
        }
        Ok(Ok(seen.map(|mut both| RepeatedEffects { first: both.remove(0), others: both })))
    }

    /// A run's command as the user's shell takes it.
    pub(crate) fn in_words(&self, run: &Run) -> String {
        let program = self.options.command.first().cloned();
        typed_command::line(program.into_iter().chain(run.command.iter().skip(1).cloned()))
    }
}

/// True when an input takes less time beyond doubt and the margin, and nothing differs.
pub(crate) fn is_less(input: &ConfirmedInput, margin: f64) -> bool {
    input.difference.is_none()
        && input.verdict == Verdict::Changed.word()
        && input.elapsed.ratio < 1.0 - margin
}

pub(crate) fn change_of(contrast: &Contrast) -> Option<Change> {
    match &contrast.estimate {
        Estimated::Ratio { judged, .. } => {
            Some(Change { ratio: judged.ratio, interval: [judged.interval.low, judged.interval.high] })
        }
        Estimated::Difference(_) => None,
    }
}

/// A metric's mean ÷ that of the unchanged program.
pub(crate) fn ratio(round: &Round, variant: Variant, metric: &str) -> Option<f64> {
    let (before, after) = (round.mean(Variant::BEFORE, metric)?, round.mean(variant, metric)?);
    (before > 0.0).then(|| after / before)
}

/// The first difference of a variant from the unchanged program in output or ending. Output is not compared where it
/// differs between runs of the unchanged program.
fn difference(runs: &[(Slot, RunResult)], variant: Variant, is_unrepeatable: bool) -> Option<String> {
    let of =
        |wanted: Variant| runs.iter().filter(move |(slot, _)| slot.variant == wanted).map(|(_, run)| run);
    let first = of(Variant::BEFORE).next()?;
    let is_unrepeatable = is_unrepeatable || of(Variant::BEFORE).any(|run| first.difference(run).is_some());
    of(variant).find_map(|run| match is_unrepeatable {
        false => first.difference(run),
        true => first.ending_difference(run),
    })
}
