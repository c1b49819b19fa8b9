//! The whole comparison of two variants, and its conclusion.

use crate::conduct::Recorded;
use crate::disturbance::Disturbance;
use crate::effects::EffectsAgreement;
use crate::error::ProveError;
use crate::footprint::{self, FootprintChange, LineKind, weighted_difference};
use crate::links::{LinkPlan, of_links, share_in_words};
use crate::noise::noise_in_words;
use crate::proven::{Evidence, Proven};
use crate::run::{Ending, RunResult, Runner, Slot, Variant};
use crate::schedule::{Order, Schedule};
use crate::timing::{TimeChange, TimedRun, judge_runs, paired};
use lineup_model::figure;
use lineup_model::line::LineSize;
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_stats::verdict::Verdict;

/// The extent of a proof.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ProofPlan {
    /// Changes of time below this share count as equivalent (0.01 is 1 %).
    pub margin: f64,
    /// When the interval is narrow enough.
    pub stop: WidthStop,
    /// Blocks after which to stop however wide the interval: two or more.
    pub max_blocks: u64,
    /// Time spent on all runs after which to stop, once three blocks are complete.
    pub max_time_ns: u64,
    /// Untimed runs of each variant at the start: two are made even when fewer are asked for, since
    /// they show whether the output repeats.
    pub warm_up: u32,
    /// Order and resampling follow from this.
    pub seed: Seed,
    /// The line size at which footprints are summed up in words.
    pub line: LineSize,
    /// The lines that are summed up so: those of data, or those of code where the change is one of code.
    pub lines_of: LineKind,
    /// The difference of these lines, over all regions, that runs of one variant show as well; `None` where the lines of
    /// one variant repeat.
    pub lines_noise: Option<f64>,
    /// Whether the runner runs the variants under an emulator, whose elapsed time says nothing about the machine they
    /// were built for. Output is still compared.
    pub is_emulated: bool,
    /// The share by which the calls of a region may differ between the recordings: 0 for programs, whose calls do not
    /// depend on the time. A whole guest's do: its timer ticks elsewhere when code or data moved.
    pub calls_apart: f64,
    /// The number of links of each variant that the runner has. The runs of a block use the one that
    /// [`crate::links::link_of`] gives.
    pub links: u64,
}

impl Default for ProofPlan {
    fn default() -> Self {
        Self {
            margin: 0.01,
            stop: WidthStop { first_look: 10, target_width: 0.01, level: 0.95 },
            max_blocks: 60,
            max_time_ns: 60_000_000_000,
            warm_up: 2,
            seed: Seed::default(),
            line: LineSize::B64,
            lines_of: LineKind::Data,
            lines_noise: None,
            is_emulated: false,
            calls_apart: 0.0,
            links: 1,
        }
    }
}

/// The results for two variants that behave the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Proof {
    /// Lines per call of every region, before and after.
    pub footprints: Vec<FootprintChange>,
    /// Elapsed time, or why it is not claimed.
    pub time: Result<TimeChange, NotTimed>,
    /// The equal effects of the variants' processes, or the reason why they were not observed.
    pub effects: Result<EffectsAgreement, String>,
    /// Differences between the numbers of calls that recordings of the unchanged program show as well, in words.
    pub calls_within: Vec<String>,
    /// The difference between outputs of one variant that timed runs leave out, in words. Only where a client drives the
    /// program and its effects, with the answers to the client, were compared.
    pub output_left_out: Option<String>,
    /// Weighted mean change of the plan's lines per call; `None` without regions.
    pub lines_difference: Option<f64>,
    /// The plan's noise: a difference up to this one is no result.
    pub lines_noise: Option<f64>,
    /// The kind of these lines.
    pub lines_of: LineKind,
    /// The plan's line size.
    pub line: LineSize,
}

/// The reason why no time is claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotTimed {
    /// The variants cannot be shown to do the same.
    OutputNotRepeatable(OutputNotRepeatable),
    /// The variants run under an emulator.
    Emulated,
    /// The variants do not end by themselves: they ran for as long as they were let.
    Stopped,
}

/// A program that prints something else each time: the variants cannot be shown to do the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutputNotRepeatable {
    /// The variant whose runs differ among themselves.
    pub variant: Variant,
    /// The difference, in words.
    pub difference: String,
}

/// The joint conclusion from lines and time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conclusion {
    /// Less time, beyond doubt.
    LessTime,
    /// More time, beyond doubt.
    MoreTime,
    /// No gain or loss above the margin.
    NoEndToEndChange,
    /// The runs do not say.
    TimeInconclusive,
    /// No time is claimed, see [`Proof::time`]: footprints only.
    FootprintsOnly,
}

impl Proof {
    /// The finding about time.
    pub fn time_conclusion(&self) -> Conclusion {
        match &self.time {
            Err(_) => Conclusion::FootprintsOnly,
            Ok(time) => match time.judgement.verdict {
                Verdict::Changed if time.estimate.ratio < 1.0 => Conclusion::LessTime,
                Verdict::Changed => Conclusion::MoreTime,
                Verdict::Equivalent => Conclusion::NoEndToEndChange,
                Verdict::Inconclusive => Conclusion::TimeInconclusive,
            },
        }
    }

    /// True when calls need more lines than before: by more than `least`, and beyond the noise.
    pub fn has_more_lines(&self, least: f64) -> bool {
        let noise = self.lines_noise.unwrap_or_default();
        self.lines_difference.is_some_and(|difference| difference > least.max(noise))
    }

    /// Lines and time in one sentence, such as `fewer lines (−1.00 per call), no end-to-end gain
    /// (within 1 %)`.
    pub fn conclusion(&self) -> String {
        let lines = lines_in_words(self.lines_difference, self.lines_noise, self.lines_of);
        format!("{lines}, {}", self.time_in_words())
    }

    fn time_in_words(&self) -> String {
        let time = match &self.time {
            Err(NotTimed::OutputNotRepeatable(reason)) => {
                return format!("time not claimed: output not repeatable ({})", reason.difference);
            }
            Err(NotTimed::Emulated) => return "time not claimed: runs under an emulator".into(),
            Err(NotTimed::Stopped) => return "time not claimed: the program does not end by itself".into(),
            Ok(time) => time,
        };
        let part = figure::share((time.estimate.ratio - 1.0).abs());
        let links = of_links(time.links) + &share_in_words(time.link_share);
        let small = if time.judgement.within_margin { ", smaller than the margin" } else { "" };
        match self.time_conclusion() {
            Conclusion::LessTime => format!("{part} less time{small}, {links}"),
            Conclusion::MoreTime => format!("{part} more time{small}, {links}"),
            Conclusion::NoEndToEndChange => {
                format!("no end-to-end gain (within {}), {links}", figure::level(time.margin))
            }
            _ => format!("end-to-end time inconclusive ({}), {links}", noise_in_words(time)),
        }
    }
}

/// The change in the lines a call needs, in words.
fn lines_in_words(difference: Option<f64>, noise: Option<f64>, of: LineKind) -> String {
    let lines = match of {
        LineKind::Data => "lines",
        LineKind::Code => "lines of code",
    };
    match difference {
        None => "no region compared".into(),
        Some(difference) if noise.is_some_and(|noise| difference.abs() <= noise) => format!(
            "no change of {lines} in all beyond the noise ({difference:+.2} per call, noise {:.2})",
            noise.unwrap_or_default()
        ),
        Some(difference) if difference < 0.0 => format!("fewer {lines} (−{:.2} per call)", -difference),
        Some(difference) if difference > 0.0 => format!("more {lines} (+{difference:.2} per call)"),
        Some(_) => format!("as many {lines} as before"),
    }
}

/// Compares two variants: footprints exactly, output, exit status and other effects byte by byte, elapsed time in
/// mirrored blocks until the interval is narrow enough or the plan's limits are reached.
///
/// # Errors
/// When a variant cannot be run, is killed by a signal, or does not do the same as the other; when
/// the recorded regions do not match.
pub fn prove(
    before: &Recorded,
    after: &Recorded,
    runner: &mut dyn Runner,
    plan: &ProofPlan,
) -> Result<Proven<Proof>, ProveError> {
    let footprints = footprint::compare(&before.footprints, &after.footprints)?;
    let calls_within = before.conduct.require_same_work(&after.conduct, plan.calls_apart)?;
    let effects = before.conduct.require_same_effects(&after.conduct)?;
    let lines_of = plan.lines_of;
    let lines_difference = weighted_difference(&footprints, lines_of, plan.line);
    let is_driven = before.conduct.client_stdout.is_some();
    let mut session = Session {
        runner,
        recorded: [before, after],
        first: [None, None],
        runs: 0,
        may_print_otherwise: is_driven && effects.is_ok(),
        output_left_out: None,
    };
    let mut schedule = Schedule::new(2, Order::Mirrored, plan.seed);
    let (time, blocks) = match session.warm_up(schedule.warm_up(plan.warm_up.max(2)))? {
        Some(reason) => (Err(NotTimed::OutputNotRepeatable(reason)), 0),
        None if session.was_stopped() => (Err(NotTimed::Stopped), 0),
        None if plan.is_emulated => (Err(NotTimed::Emulated), 0),
        None => session.time(&mut schedule, plan)?,
    };
    let evidence = Evidence { runs: session.runs, blocks };
    Ok(Proven::new(
        Proof {
            footprints,
            time,
            effects,
            calls_within,
            output_left_out: session.output_left_out,
            lines_difference,
            lines_noise: plan.lines_noise,
            lines_of,
            line: plan.line,
        },
        evidence,
    ))
}

/// A comparison under way.
struct Session<'r> {
    runner: &'r mut dyn Runner,
    /// Each variant's recorded conduct.
    recorded: [&'r Recorded; 2],
    /// The first result of each variant, for comparison with all later ones.
    first: [Option<RunResult>; 2],
    runs: u64,
    /// True when output may differ from run to run: a server's log has times, and its client prints rates. The answers
    /// were compared in observed runs.
    may_print_otherwise: bool,
    /// The first such difference between runs of one variant.
    output_left_out: Option<String>,
}

impl Session<'_> {
    /// Runs the warm-up. Checks whether each variant repeats its own output, and only then whether the two variants
    /// agree.
    fn warm_up(&mut self, slots: Vec<Slot>) -> Result<Option<OutputNotRepeatable>, ProveError> {
        let mut unsteady = None;
        for slot in slots {
            let (_, unlike) = self.run(&slot)?;
            unsteady = unsteady.or(unlike);
        }
        if unsteady.is_some() {
            return Ok(unsteady);
        }
        if self.output_left_out.is_some() {
            return match &self.first {
                [Some(before), Some(after)] => match before.ending_difference(after) {
                    Some(difference) => Err(ProveError::Differs { difference }),
                    None => Ok(None),
                },
                _ => Ok(None),
            };
        }
        if let [Some(before), Some(after)] = &self.first
            && let Some(difference) = before.difference(after)
        {
            return Err(ProveError::Differs { difference });
        }
        let [before, after] = self.recorded.map(|recorded| &recorded.conduct);
        match before.difference(after) {
            Some(difference) => Err(ProveError::Differs { difference }),
            None => Ok(None),
        }
    }

    /// True when a variant was ended after its time, and not by a client that was done.
    fn was_stopped(&self) -> bool {
        let stopped = |run: &RunResult| run.ending == Ending::Stopped && run.client_stdout.is_none();
        self.first.iter().flatten().any(stopped)
    }

    /// Times blocks until the plan is fulfilled.
    fn time(
        &mut self,
        schedule: &mut Schedule,
        plan: &ProofPlan,
    ) -> Result<(Result<TimeChange, NotTimed>, u64), ProveError> {
        let links = LinkPlan { links: plan.links.max(1), seed: plan.seed };
        let mut timed: Vec<TimedRun> = Vec::new();
        let mut spent_ns = 0u64;
        let mut blocks = 0u64;
        let mut disturbance = Some(Disturbance::default());
        while blocks < plan.max_blocks.max(2) && !(blocks >= 3 && spent_ns >= plan.max_time_ns) {
            for slot in schedule.block() {
                let (result, unlike) = self.run(&slot)?;
                if let Some(reason) = unlike {
                    return Ok((Err(NotTimed::OutputNotRepeatable(reason)), blocks));
                }
                spent_ns = spent_ns.saturating_add(result.spent_ns());
                disturbance = disturbance.zip(result.disturbance).map(|(sum, one)| sum.plus(one));
                timed.push(TimedRun { variant: slot.variant, block: blocks, wall_ns: result.wall_ns });
            }
            blocks += 1;
            // Looks are by blocks: of links there are no more after the first pass.
            let is_look = plan.stop.looks_at(usize::try_from(blocks).unwrap_or(usize::MAX));
            if is_look && blocks >= links.links && plan.stop.is_narrow(&paired(&timed, links)?)? {
                break;
            }
        }
        let judged = judge_runs(timed, &plan.stop, plan.margin, links)?;
        Ok((Ok(TimeChange { disturbance, ..judged }), blocks))
    }

    /// One run, with its difference from the first run of the same variant, if any.
    fn run(&mut self, slot: &Slot) -> Result<(RunResult, Option<OutputNotRepeatable>), ProveError> {
        let variant = slot.variant;
        let result = self.runner.run(slot).map_err(|source| ProveError::Run { variant, source })?;
        self.runs += 1;
        if let Ending::Killed(signal) = result.ending {
            return Err(ProveError::Killed { variant, signal });
        }
        if let Some(recorded) = self.recorded.get(variant.0)
            && let Some(input) = &result.input
            && let Some(difference) = recorded.conduct.input.difference(input)
        {
            return Err(ProveError::TimedInput { variant, difference });
        }
        let mut unlike = None;
        if let Some(first) = self.first.get_mut(variant.0) {
            let first = first.get_or_insert_with(|| result.clone());
            unlike = first.difference(&result).map(|difference| OutputNotRepeatable { variant, difference });
            if self.may_print_otherwise && first.ending == result.ending {
                let left_out = unlike.take().map(|unlike| unlike.difference);
                self.output_left_out = self.output_left_out.take().or(left_out);
            }
        }
        Ok((result, unlike))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_with_their_sign() {
        let said = [Some(-1.5), Some(0.25), Some(0.0), None]
            .map(|difference| lines_in_words(difference, None, LineKind::Data));
        let expected = [
            "fewer lines (−1.50 per call)",
            "more lines (+0.25 per call)",
            "as many lines as before",
            "no region compared",
        ];
        assert_eq!(said, expected);
        assert_eq!(lines_in_words(Some(-2.0), None, LineKind::Code), "fewer lines of code (−2.00 per call)");
        let within = "no change of lines in all beyond the noise (+0.30 per call, noise 0.90)";
        assert_eq!(lines_in_words(Some(0.3), Some(0.9), LineKind::Data), within);
        assert_eq!(lines_in_words(Some(1.5), Some(0.9), LineKind::Data), "more lines (+1.50 per call)");
    }
}
