//! Judging one commit: build it, compare it with the good one.

use super::args::Bisect;
use super::state::{State, Verdict};
use crate::builds::commit::How;
use crate::terminal::progress::{Stages, collect_shown};
use crate::terminal::typed_command::split;
use anyhow::{Result, bail};
use lineup_prove::bisect::Judged;
use lineup_prove::compare::{ComparePlan, Estimated, Stopped, judge_all};
use lineup_stats::paired::RatioEstimate;
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_study::counters;
use lineup_study::git::Scratch;
use lineup_study::interrupt::Interrupts;
use lineup_study::printed::PrintedMetrics;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{ProcessRunner, RunnerOptions};
use std::path::{Path, PathBuf};

/// Everything needed to judge commits.
pub(crate) struct Trials<'b> {
    pub(crate) options: &'b Bisect,
    pub(crate) scratch: Scratch,
    pub(crate) state: State,
    pub(crate) interrupts: Interrupts,
    pub(crate) stages: Stages,
    pub(crate) good: String,
    /// Half of the whole range's change, as ln(ratio): it separates good from bad.
    pub(crate) half_effect: f64,
}

impl Trials<'_> {
    /// Compares a commit with the good one, from memory or by measuring.
    pub(crate) fn judge(&mut self, commit: &str) -> Result<Judged> {
        if commit == self.good {
            return Ok(Judged::Good);
        }
        if let Some(known) = self.state.get(commit) {
            return Ok(known.judged);
        }
        let verdict = match self.measure(commit)? {
            Err(because) => Verdict { judged: Judged::Skip, because, ratio: None },
            Ok(estimate) => self.verdict(&estimate),
        };
        self.say(&format!("{}: {}", self.scratch.title(commit)?, verdict.because));
        let judged = verdict.judged;
        self.state.put(commit, verdict)?;
        Ok(judged)
    }

    /// Good or bad only when the whole interval lies on one side of half the effect.
    fn verdict(&self, estimate: &RatioEstimate) -> Verdict {
        let interval = estimate.interval;
        let (near, far) = if self.half_effect > 0.0 {
            (interval.low.ln(), interval.high.ln())
        } else {
            (-interval.high.ln(), -interval.low.ln())
        };
        let bound = self.half_effect.abs();
        let (judged, word) = if near > bound {
            (Judged::Bad, "bad")
        } else if far < bound {
            (Judged::Good, "good")
        } else {
            (Judged::Skip, "inconclusive, skipped")
        };
        Verdict {
            judged,
            because: format!("{} {word}", in_words(estimate)),
            ratio: Some([estimate.ratio, interval.low, interval.high]),
        }
    }

    /// Builds and compares; the inner error says why a commit cannot be judged.
    pub(crate) fn measure(&mut self, commit: &str) -> Result<Result<RatioEstimate, String>> {
        self.interrupts.check()?;
        let Some(good) = self.build(&self.good)? else {
            bail!("the good revision does not build with {:?}", self.options.build);
        };
        let Some(candidate) = self.build(commit)? else {
            return Ok(Err("does not build, skipped".into()));
        };
        self.compare(good, candidate)
    }

    /// A directory with the commit built in it; `None` when it does not build.
    fn build(&self, commit: &str) -> Result<Option<PathBuf>> {
        let how = How {
            build: self.options.build.as_deref(),
            streams: if self.options.show_build { Streams::Shown } else { Streams::Captured },
        };
        Ok(how.built(&self.scratch, commit, &self.stages, &self.interrupts)?.ok())
    }

    fn compare(&self, good: PathBuf, candidate: PathBuf) -> Result<Result<RatioEstimate, String>> {
        let options = self.options;
        let events = match options.events.as_slice() {
            [] => Vec::new(),
            events => counters::parse(&events.join(","))?,
        };
        let runner_options = RunnerOptions {
            placing: options.pin.clone(),
            events,
            printed: PrintedMetrics::new(&options.metrics)?,
            ..RunnerOptions::default()
        };
        let invocation = |directory: &Path| -> Result<Run> {
            Ok(Run { command: self.command()?, directory: Some(directory.to_owned()), ..Run::default() })
        };
        let variants = vec![invocation(&good)?, invocation(&candidate)?];
        let mut runner = ProcessRunner::new(variants, runner_options, &self.interrupts)?;
        let plan = self.plan();
        self.stages.stage("running the good commit and this one in turn");
        let collected = collect_shown(&mut runner, &plan, &self.stages);
        self.stages.end();
        if let Stopped::Failed(error) = collected.stopped {
            return Err(anyhow::Error::from_boxed(error));
        }
        let comparison = judge_all(&collected, &plan)?;
        if comparison.failed_runs != [0, 0] {
            return Ok(Err("runs that fail, skipped".into()));
        }
        let primary = comparison.metrics.iter().find(|metric| metric.name == plan.primary);
        let contrast = primary.and_then(|metric| metric.contrasts.first());
        Ok(match contrast.map(|contrast| &contrast.estimate) {
            Some(Estimated::Ratio { judged, .. }) => Ok(*judged),
            Some(Estimated::Difference(_)) => Err(format!("{} is zero or below, skipped", plan.primary)),
            None => Err(format!("{} was not observed, skipped", plan.primary)),
        })
    }

    fn command(&self) -> Result<Vec<std::ffi::OsString>> {
        match self.options.command.as_slice() {
            [line] => split(&line.to_string_lossy(), false),
            words => Ok(words.to_vec()),
        }
    }

    fn plan(&self) -> ComparePlan {
        let target_width = self.options.until_width.map(|width| width.0).unwrap_or_default();
        ComparePlan {
            stop: WidthStop { first_look: 10, target_width, level: 0.95 },
            primary: self.options.primary(),
            max_blocks: self.options.blocks,
            seed: Seed::default(),
            ..ComparePlan::default()
        }
    }

    /// Progress, for a watching user.
    pub(crate) fn say(&self, sentence: &str) {
        if !self.options.json {
            eprintln!("{sentence}");
        }
    }
}

/// An estimate in words: `+4.99 % [+4.80 %, +5.20 %]`.
pub(crate) fn in_words(estimate: &RatioEstimate) -> String {
    use lineup_model::figure;
    let interval = estimate.interval;
    format!(
        "{} [{}, {}]",
        figure::change(estimate.ratio),
        figure::change(interval.low),
        figure::change(interval.high)
    )
}
