//! The results of comparing the two variants.

use crate::effects::EffectsCheck;
use lineup_prove::disturbance::Disturbance;
use lineup_prove::links::{of_links, share_in_words};
use lineup_prove::noise::noise_in_words;
use lineup_prove::timing::TimeChange;
use lineup_prove::{NotTimed, Proof, Proven, Variant};
use lineup_stats::verdict::Verdict;
use serde::Serialize;

/// A completed comparison: it can only be made from the comparison's proof.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[non_exhaustive]
pub struct ProofReport {
    /// Lines and time in one sentence.
    pub conclusion: String,
    /// The runs of all variants.
    pub runs: u64,
    /// The number of complete timed blocks.
    pub blocks: u64,
    /// The agreement of the variants' output and exit.
    pub output: OutputCheck,
    /// The comparison of the variants' effects; `None` when they were not observed.
    pub effects: Option<EffectsCheck>,
    /// The reason why effects beyond output and exit were not observed.
    pub effects_not_observed: Option<String>,
    /// Differences between the numbers of calls that recordings of the unchanged program show as well.
    pub calls_within: Vec<String>,
    /// The finding about time; `None` when time is not claimed.
    pub time: Option<TimeReport>,
    /// The reason why time is not claimed, when output is not the reason.
    pub time_not_claimed: Option<String>,
}

impl ProofReport {
    /// The meaning of output that does not repeat, up to the difference.
    pub fn not_repeatable(&self) -> &'static str {
        match self.time {
            Some(_) => "differs from run to run, and is not compared in timed runs",
            None => "does not repeat, so no time is claimed",
        }
    }

    /// The compared effects of the variants, and those that were not compared, in one sentence.
    pub fn effects_sentence(&self) -> String {
        match (&self.effects, &self.effects_not_observed) {
            (Some(check), _) => check.sentence(),
            (None, Some(why)) => format!("not compared beyond output and exit: {why}"),
            (None, None) => "not compared beyond output and exit".into(),
        }
    }
}

/// The agreement of outputs and exit status.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "difference")]
pub enum OutputCheck {
    /// Every run of both variants printed the same and ended the same.
    Equal,
    /// Runs of one variant differ among themselves. Time is claimed only where a client drives the program and its
    /// answers were compared.
    NotRepeatable(String),
}

/// Whole-process time of both variants.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TimeReport {
    /// Elapsed time of each run of the unchanged program, in nanoseconds.
    pub before_ns: Vec<f64>,
    /// Elapsed time of each run of the changed program, in nanoseconds.
    pub after_ns: Vec<f64>,
    /// after ÷ before.
    pub ratio: f64,
    /// Lower end of the ratio's interval.
    pub ratio_low: f64,
    /// Upper end of the ratio's interval.
    pub ratio_high: f64,
    /// The interval's level, such as 0.95.
    pub level: f64,
    /// Changes below this share count as equivalent.
    pub margin: f64,
    /// The verdict.
    pub verdict: TimeVerdict,
    /// The smallest change, as a share, that these runs would have shown.
    pub smallest_detectable: f64,
    /// The number of links of each program.
    pub links: u64,
    /// The share of the spread of blocks that lies between these links; `None` with one link, and where it cannot be
    /// determined.
    pub link_share: Option<f64>,
    /// True where the later half of the blocks changes to the other side: such a change is inconclusive.
    pub is_contradicted: bool,
    /// The time of runs that would show a change above the margin, in nanoseconds; `None` where these decided, and where
    /// none would do.
    pub needed_ns: Option<f64>,
    /// The part of the runs' CPUs that other programs had; `None` where that was not observed.
    pub others: Option<f64>,
    /// The part that the host of this machine had.
    pub stolen: Option<f64>,
    /// All that in words; `None` where the runs decided and nothing disturbed them.
    pub noise: Option<String>,
}

impl TimeReport {
    /// The number of links, and their share of the spread.
    pub fn links_in_words(&self) -> String {
        of_links(self.links) + &share_in_words(self.link_share)
    }
}

impl From<&Proven<Proof>> for ProofReport {
    fn from(proven: &Proven<Proof>) -> Self {
        let (proof, evidence) = (proven.value(), proven.evidence());
        let (output, time_not_claimed) = match &proof.time {
            Ok(_) => match &proof.output_left_out {
                Some(difference) => (OutputCheck::NotRepeatable(difference.clone()), None),
                None => (OutputCheck::Equal, None),
            },
            Err(NotTimed::OutputNotRepeatable(reason)) => {
                (OutputCheck::NotRepeatable(reason.difference.clone()), None)
            }
            Err(NotTimed::Emulated) => (OutputCheck::Equal, Some("runs under an emulator".into())),
            Err(NotTimed::Stopped) => (OutputCheck::Equal, Some("the program does not end by itself".into())),
        };
        Self {
            conclusion: proof.conclusion(),
            runs: evidence.runs,
            blocks: evidence.blocks,
            output,
            effects: proof.effects.as_ref().ok().map(EffectsCheck::from),
            effects_not_observed: proof.effects.as_ref().err().cloned(),
            calls_within: proof.calls_within.clone(),
            time: proof.time.as_ref().ok().map(TimeReport::from),
            time_not_claimed,
        }
    }
}

impl From<&TimeChange> for TimeReport {
    fn from(time: &TimeChange) -> Self {
        let runs = |variant| -> Vec<f64> {
            time.runs.iter().filter(|run| run.variant == variant).map(|run| run.wall_ns as f64).collect()
        };
        let interval = time.estimate.interval;
        Self {
            before_ns: runs(Variant::BEFORE),
            after_ns: runs(Variant::AFTER),
            ratio: time.estimate.ratio,
            ratio_low: interval.low,
            ratio_high: interval.high,
            level: interval.level,
            margin: time.margin,
            verdict: time.judgement.verdict.into(),
            smallest_detectable: time.judgement.smallest_detectable,
            links: time.links,
            link_share: time.link_share,
            is_contradicted: time.judgement.is_contradicted,
            needed_ns: time.needed_ns(),
            others: time.disturbance.map(Disturbance::others),
            stolen: time.disturbance.map(Disturbance::stolen),
            noise: match time.judgement.verdict {
                Verdict::Inconclusive => Some(noise_in_words(time)),
                _ => time.disturbance.and_then(Disturbance::in_words),
            },
        }
    }
}

/// The three verdicts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeVerdict {
    /// The interval excludes no change.
    Changed,
    /// The interval lies within the margin.
    Equivalent,
    /// Neither.
    Inconclusive,
}

impl TimeVerdict {
    /// The verdict in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }
}

impl From<Verdict> for TimeVerdict {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Changed => Self::Changed,
            Verdict::Equivalent => Self::Equivalent,
            Verdict::Inconclusive => Self::Inconclusive,
        }
    }
}
