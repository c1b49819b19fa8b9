//! The causes of a region's slowness, by intervention: calls were assigned at random to arms, so the arm's intervention
//! causes the differences between arms.
//!
//! *Removing* arms measure the cost of a cause: code fetched beforehand, data fetched beforehand, locks given up. A
//! fetch of code ends in the level that code and data share, so its effect is that of misses beyond that level. One
//! more arm removes everything at once: no tested cause explains the rest. *Adding* arms (flushes) measure how much a
//! cause could cost.
//!
//! Shares are of the time beyond a threshold, see [`tail`](crate::tail). The threshold is taken from the calls without
//! an intervention and then held fixed: a share covers calls beyond that many nanoseconds.

use crate::error::TraceError;
use crate::estimate::{Level, Moment, RareMean, difference, ratio};
use crate::event::{Arm, Event, Kind};
use crate::reader::{Rung, Trace};
use crate::tail::{Sample, Tail, Window};
use lineup_stats::interval::IntervalEstimate;
use serde::Serialize;

/// A possible cause.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Instruction fetches that missed.
    CodeMisses,
    /// Data accesses that missed.
    DataMisses,
    /// Waiting for locks.
    LockWaiting,
    /// Executing more instructions.
    MoreInstructions,
}

impl Cause {
    /// The causes, in the order of reports.
    pub const ALL: [Cause; 4] =
        [Self::CodeMisses, Self::DataMisses, Self::LockWaiting, Self::MoreInstructions];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::CodeMisses => "code misses",
            Self::DataMisses => "data misses",
            Self::LockWaiting => "lock waiting",
            Self::MoreInstructions => "more instructions",
        }
    }

    /// The arm that removes it, if one does.
    fn removed_by(self) -> Option<Arm> {
        match self {
            Self::CodeMisses => Some(Arm::PrefetchCode),
            Self::DataMisses => Some(Arm::PrefetchData),
            Self::LockWaiting => Some(Arm::GiveUpLock),
            Self::MoreInstructions => None,
        }
    }

    /// The arm that adds it, if one does.
    fn added_by(self) -> Option<Arm> {
        match self {
            Self::CodeMisses => Some(Arm::FlushCode),
            Self::DataMisses => Some(Arm::FlushData),
            Self::LockWaiting | Self::MoreInstructions => None,
        }
    }
}

/// The kind of evidence for a cause's share.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Evidence {
    /// By random assignment: the difference is causal.
    Intervention {
        /// Calls of the arm that removed the cause.
        calls: usize,
        /// Nanoseconds of the median that the cause makes up.
        median_ns: IntervalEstimate,
        /// Nanoseconds of the tail mean that it makes up.
        tail_ns: IntervalEstimate,
        /// Share of the time beyond the threshold.
        tail_share: IntervalEstimate,
    },
    /// By association with a counter: slow calls of no arm executed more instructions.
    Association {
        /// Calls looked at.
        calls: usize,
        /// Nanoseconds of the tail mean that the instructions would take at the median's rate.
        tail_ns: f64,
        /// Share of the time beyond the threshold.
        tail_share: f64,
    },
    /// Not observed, with the reason.
    Unobserved {
        /// The reason, and the next step.
        why: String,
    },
}

/// A cause and its evidence.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// The evidence.
    pub evidence: Evidence,
    /// Nanoseconds by which a flush of the region's lines raises the median; `None` where nothing was flushed.
    pub flush_raises_median_ns: Option<IntervalEstimate>,
}

impl Finding {
    /// The tail's share by intervention.
    pub fn tail_share(&self) -> Option<IntervalEstimate> {
        match &self.evidence {
            Evidence::Intervention { tail_share, .. } => Some(*tail_share),
            _ => None,
        }
    }
}

/// The causes of one region's slowness.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attribution {
    /// The region.
    pub region: String,
    /// The way counters were read.
    pub rung: Rung,
    /// Calls without an intervention.
    pub calls: usize,
    /// The calls among them that form the tail.
    pub tail: Tail,
    /// The same in nanoseconds.
    pub window: Window,
    /// Confidence level of every interval.
    pub level: Level,
    /// Their median, nanoseconds.
    pub median_ns: f64,
    /// The mean of the slow ones, each counted up to the end of the window, nanoseconds.
    pub tail_ns: f64,
    /// Causes, the greatest share of the tail first; unobserved causes last.
    pub findings: Vec<Finding>,
    /// The first cause whose share of the tail is above zero beyond doubt.
    pub first_cause: Option<Cause>,
    /// Share of the time beyond the threshold that stays when every tested cause is removed at once; `None` when the
    /// trace has too few such calls.
    pub unexplained_tail_share: Option<IntervalEstimate>,
}

impl Attribution {
    /// The amount by which the shares, with the unexplained one, exceed one: calls that two causes strike at once are
    /// in the share of each. Negative where removing one cause alone leaves another to take its place.
    pub fn overlap(&self) -> Option<f64> {
        let shares = self.findings.iter().filter_map(Finding::tail_share).map(|share| share.value);
        Some(shares.sum::<f64>() + self.unexplained_tail_share?.value - 1.0)
    }
}

/// The fewest calls of an arm from which a tail is estimated.
pub const MIN_CALLS: usize = 100;

/// The amount by which the median of treated calls lies above that of untreated ones, assigned at random; `None` for
/// too few calls of either.
pub fn raised_median(treated: &Sample, untreated: &Sample, level: Level) -> Option<IntervalEstimate> {
    Some(difference(&median(treated)?, &median(untreated)?, 1.0, level))
}

fn median(sample: &Sample) -> Option<Moment> {
    (sample.len() >= MIN_CALLS).then(|| sample.median()).flatten()
}

/// Explains the region called `name`: its median, and the time its calls spend in `tail`, with intervals of `level`.
///
/// # Errors
///
/// [`TraceError::UnknownRegion`].
pub fn attribute(trace: &Trace, name: &str, tail: Tail, level: Level) -> Result<Attribution, TraceError> {
    let region = trace.region(name)?;
    let events: Vec<&Event> = trace.events_of(region.index, Kind::Region).collect();
    let sample = |arm: Arm| -> Sample {
        events.iter().filter(|event| event.arm == arm).map(|event| event.duration_ns as f64).collect()
    };
    let samples = Arm::ALL.map(sample);
    let base = &samples[usize::from(Arm::None.number())];
    let window = tail.window(base).unwrap_or(Window { from_ns: 0.0, to_ns: 0.0 });
    let study = Study { tail, window, level, samples: &samples };
    let beyond_ns = base.time_beyond(&window).map_or(0.0, |beyond| beyond.mean.value);
    let mut findings: Vec<Finding> = Cause::ALL
        .iter()
        .map(|cause| Finding {
            cause: *cause,
            evidence: match cause.removed_by() {
                Some(arm) => study.by_intervention(arm),
                None => study.by_association(trace, &events),
            },
            flush_raises_median_ns: cause.added_by().and_then(|arm| study.raise(arm)),
        })
        .collect();
    findings.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
    let first_cause = findings
        .iter()
        .find(|finding| finding.tail_share().is_some_and(|share| share.is_above_zero()))
        .map(|finding| finding.cause);
    Ok(Attribution {
        region: name.to_owned(),
        rung: trace.rung,
        calls: base.len(),
        tail,
        window,
        level,
        median_ns: base.quantile(0.5).unwrap_or(0.0),
        tail_ns: window.from_ns + beyond_ns / (1.0 - tail.from),
        findings,
        first_cause,
        unexplained_tail_share: study.left_share(Arm::RemoveAll),
    })
}

fn rank(finding: &Finding) -> f64 {
    match &finding.evidence {
        Evidence::Intervention { tail_share, .. } => tail_share.value,
        Evidence::Association { .. } => -1e9,
        Evidence::Unobserved { .. } => f64::NEG_INFINITY,
    }
}

/// The calls of one region by arm, and the parameters of the analysis.
struct Study<'a> {
    tail: Tail,
    window: Window,
    level: Level,
    samples: &'a [Sample; Arm::ALL.len()],
}

impl Study<'_> {
    fn sample(&self, arm: Arm) -> &Sample {
        &self.samples[usize::from(arm.number())]
    }

    /// Time beyond the threshold per call of `arm`; `None` for too few calls.
    fn beyond(&self, arm: Arm) -> Option<RareMean> {
        let sample = self.sample(arm);
        (sample.len() >= MIN_CALLS).then(|| sample.time_beyond(&self.window)).flatten()
    }

    fn median(&self, arm: Arm) -> Option<Moment> {
        median(self.sample(arm))
    }

    /// The share of the time beyond the threshold that `arm` leaves.
    fn left_share(&self, arm: Arm) -> Option<IntervalEstimate> {
        ratio(&self.beyond(arm)?, &self.beyond(Arm::None)?, self.level)
    }

    fn by_intervention(&self, arm: Arm) -> Evidence {
        let removed = self.sample(arm);
        if removed.is_empty() {
            let why =
                format!("no call was assigned to {}: declare what the region may be tried with", arm.name());
            return Evidence::Unobserved { why };
        }
        self.removal(arm).unwrap_or_else(|| {
            let base = self.sample(Arm::None).len();
            let why = if base < MIN_CALLS || removed.len() < MIN_CALLS {
                format!(
                    "{base} calls without intervention and {} with {}, {MIN_CALLS} of each needed: trace longer, or \
                     with a larger ring",
                    removed.len(),
                    arm.name()
                )
            } else {
                "no time beyond the threshold that is above zero at this level: trace longer".to_owned()
            };
            Evidence::Unobserved { why }
        })
    }

    fn removal(&self, arm: Arm) -> Option<Evidence> {
        let left = self.left_share(arm)?;
        let (base, removed) = (self.beyond(Arm::None)?, self.beyond(arm)?);
        let scale = 1.0 / (1.0 - self.tail.from);
        Some(Evidence::Intervention {
            calls: self.sample(arm).len(),
            median_ns: difference(&self.median(Arm::None)?, &self.median(arm)?, 1.0, self.level),
            tail_ns: difference(&base.mean, &removed.mean, scale, self.level),
            tail_share: IntervalEstimate {
                value: 1.0 - left.value,
                low: 1.0 - left.high,
                high: 1.0 - left.low,
            },
        })
    }

    /// The amount by which a flush raises the median.
    fn raise(&self, arm: Arm) -> Option<IntervalEstimate> {
        raised_median(self.sample(arm), self.sample(Arm::None), self.level)
    }

    /// The time that calls would spend beyond the threshold if each executed its instructions at the median's rate.
    fn by_association(&self, trace: &Trace, events: &[&Event]) -> Evidence {
        let position = trace.counters.iter().position(|name| name.as_deref() == Some("instructions"));
        let Some(position) = position else {
            return Evidence::Unobserved {
                why: "no instruction counter on this machine or in this run".to_owned(),
            };
        };
        let instructions =
            |event: &&Event| event.counters.get(position).map_or(0.0, |count| f64::from(*count));
        let untouched = events.iter().filter(|event| event.arm == Arm::None);
        let counts: Sample = untouched.map(instructions).collect();
        let per_instruction = self
            .sample(Arm::None)
            .quantile(0.5)
            .zip(counts.quantile(0.5).filter(|median| *median > 0.0))
            .map(|(duration_ns, count)| duration_ns / count);
        let predicted: Option<Sample> =
            per_instruction.map(|rate_ns| counts.values().map(|count| count * rate_ns).collect());
        let beyond = predicted
            .filter(|predicted| predicted.len() >= MIN_CALLS)
            .and_then(|predicted| predicted.time_beyond(&self.window));
        match (beyond, self.beyond(Arm::None)) {
            (Some(predicted), Some(base)) if base.mean.value > 0.0 => Evidence::Association {
                calls: counts.len(),
                tail_ns: predicted.mean.value / (1.0 - self.tail.from),
                tail_share: predicted.mean.value / base.mean.value,
            },
            _ => Evidence::Unobserved { why: "too few calls without intervention".to_owned() },
        }
    }
}
