//! What makes a region slow, by intervention: calls were assigned at random to arms, so the differences between arms
//! are caused by what the arm did.
//!
//! *Removing* arms tell how much a cause costs: code fetched beforehand, data fetched beforehand, locks given up. A
//! fetch of code ends in the level that code and data share, so its effect is that of misses beyond that level.
//! *Adding* arms (flushes) tell how much it could cost.

use crate::bootstrap::{Estimate, RESAMPLES, Random, Sample, Shape, Tail, estimate};
use crate::error::TraceError;
use crate::event::{Arm, Event, Kind};
use crate::reader::{Rung, Trace};
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

/// How a cause's share is known.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum Evidence {
    /// By random assignment: the difference is causal.
    Intervention {
        /// Calls of the arm that removed the cause.
        calls: usize,
        /// Nanoseconds of the median that the cause makes up.
        median_ns: Estimate,
        /// Nanoseconds of the tail mean that it makes up.
        tail_ns: Estimate,
        /// Share of the tail's excess over the median.
        tail_share: Estimate,
    },
    /// By association with a counter: slow calls of no arm executed more instructions.
    Association {
        /// Calls looked at.
        calls: usize,
        /// Nanoseconds of the tail mean that the surplus of instructions would take at the median's rate.
        tail_ns: f64,
        /// Share of the tail's excess over the median.
        tail_share: f64,
    },
    /// Not observed, and why.
    Unobserved {
        /// Why, and what to do.
        why: String,
    },
}

/// A cause and what is known of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// What is known.
    pub evidence: Evidence,
    /// Nanoseconds by which a flush of the region's lines raises the median; `None` where nothing was flushed.
    pub flush_raises_median_ns: Option<Estimate>,
}

impl Finding {
    /// The tail's share by intervention.
    pub fn tail_share(&self) -> Option<Estimate> {
        match &self.evidence {
            Evidence::Intervention { tail_share, .. } => Some(*tail_share),
            _ => None,
        }
    }
}

/// What makes one region slow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Attribution {
    /// The region.
    pub region: String,
    /// How counters were read.
    pub rung: Rung,
    /// Calls to which nothing was done.
    pub calls: usize,
    /// Which of them make up the tail.
    pub tail: Tail,
    /// Their median, nanoseconds.
    pub median_ns: f64,
    /// Their tail mean, nanoseconds.
    pub tail_ns: f64,
    /// Causes, the greatest share of the tail first; those unobserved last.
    pub findings: Vec<Finding>,
    /// The first cause whose share of the tail is above zero beyond doubt.
    pub first_cause: Option<Cause>,
    /// Share of the tail's excess that no tested cause explains; `None` when none was tested.
    pub unexplained_tail_share: Option<Estimate>,
}

/// The fewest calls of an arm from which a tail is estimated.
pub const MIN_CALLS: usize = 100;

/// Explains the region called `name`: its median, and the mean of its `tail`.
///
/// # Errors
///
/// [`TraceError::UnknownRegion`].
pub fn attribute(trace: &Trace, name: &str, tail: Tail) -> Result<Attribution, TraceError> {
    let region = trace.region(name)?;
    let events: Vec<&Event> = trace.events_of(region.index, Kind::Region).collect();
    let sample = |arm: Arm| -> Sample {
        events.iter().filter(|event| event.arm == arm).map(|event| event.duration_ns as f64).collect()
    };
    let base = sample(Arm::None);
    let resamples = Resamples::draw(tail, &base, &Cause::ALL.map(|cause| cause.removed_by().map(sample)));
    let shape = base.shape(tail).unwrap_or(Shape { median: 0.0, tail_mean: 0.0 });
    let mut findings: Vec<Finding> = Cause::ALL
        .iter()
        .enumerate()
        .map(|(index, cause)| Finding {
            cause: *cause,
            evidence: match cause.removed_by() {
                Some(arm) => by_intervention(tail, &base, &sample(arm), arm, &resamples, index),
                None => by_association(trace, &events, tail, shape),
            },
            flush_raises_median_ns: cause.added_by().and_then(|arm| raise(tail, &base, &sample(arm))),
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
        median_ns: shape.median,
        tail_ns: shape.tail_mean,
        unexplained_tail_share: unexplained(&findings, &resamples),
        findings,
        first_cause,
    })
}

fn rank(finding: &Finding) -> f64 {
    match &finding.evidence {
        Evidence::Intervention { tail_share, .. } => tail_share.value,
        Evidence::Association { .. } => -1e9,
        Evidence::Unobserved { .. } => f64::NEG_INFINITY,
    }
}

/// Shapes of resamples of no arm and of each removing arm, drawn once, so that shares and what is left go together.
struct Resamples {
    base: Vec<Shape>,
    removed: Vec<Vec<Shape>>,
}

impl Resamples {
    fn draw(tail: Tail, base: &Sample, removed: &[Option<Sample>]) -> Self {
        let mut random = Random::new(1);
        let mut shapes = |sample: &Sample| -> Vec<Shape> {
            let count = if sample.len() < MIN_CALLS { 0 } else { RESAMPLES };
            (0..count).filter_map(|_| sample.resampled_shape(tail, &mut random)).collect()
        };
        Self {
            base: shapes(base),
            removed: removed
                .iter()
                .map(|sample| sample.as_ref().map_or_else(Vec::new, &mut shapes))
                .collect(),
        }
    }

    /// `f(base, removed)` of every pair of resamples.
    fn map(&self, index: usize, f: impl Fn(&Shape, &Shape) -> f64) -> Vec<f64> {
        let removed = self.removed.get(index).map_or(&[][..], Vec::as_slice);
        self.base.iter().zip(removed).map(|(base, removed)| f(base, removed)).collect()
    }
}

fn tail_share(base: &Shape, removed: &Shape) -> f64 {
    (base.tail_mean - removed.tail_mean) / base.excess()
}

fn by_intervention(
    tail: Tail,
    base: &Sample,
    removed: &Sample,
    arm: Arm,
    resamples: &Resamples,
    index: usize,
) -> Evidence {
    let few = |what: &str, calls: usize| Evidence::Unobserved {
        why: format!("{calls} calls {what}, {MIN_CALLS} needed: trace longer, or with a larger ring"),
    };
    if removed.is_empty() {
        return Evidence::Unobserved {
            why: format!("no call was assigned to {}: declare what the region may be tried with", arm.name()),
        };
    }
    match (base.shape(tail), removed.shape(tail)) {
        (Some(_), _) if base.len() < MIN_CALLS => few("without intervention", base.len()),
        (Some(_), Some(_)) if removed.len() < MIN_CALLS => {
            few(&format!("with {}", arm.name()), removed.len())
        }
        (Some(b), Some(r)) => Evidence::Intervention {
            calls: removed.len(),
            median_ns: estimate(b.median - r.median, resamples.map(index, |b, r| b.median - r.median)),
            tail_ns: estimate(
                b.tail_mean - r.tail_mean,
                resamples.map(index, |b, r| b.tail_mean - r.tail_mean),
            ),
            tail_share: estimate(tail_share(&b, &r), resamples.map(index, tail_share)),
        },
        _ => few("without intervention", base.len()),
    }
}

/// How far a flush raises the median.
fn raise(tail: Tail, base: &Sample, flushed: &Sample) -> Option<Estimate> {
    if base.len() < MIN_CALLS || flushed.len() < MIN_CALLS {
        return None;
    }
    let mut random = Random::new(2);
    let resampled = (0..RESAMPLES)
        .filter_map(|_| {
            let flushed = flushed.resampled_shape(tail, &mut random)?;
            Some(flushed.median - base.resampled_shape(tail, &mut random)?.median)
        })
        .collect();
    Some(estimate(flushed.shape(tail)?.median - base.shape(tail)?.median, resampled))
}

fn by_association(trace: &Trace, events: &[&Event], tail: Tail, shape: Shape) -> Evidence {
    let position = trace.counters.iter().position(|name| name.as_deref() == Some("instructions"));
    let Some(position) = position else {
        return Evidence::Unobserved {
            why: "no instruction counter on this machine or in this run".to_owned(),
        };
    };
    let untouched = || events.iter().filter(|event| event.arm == Arm::None);
    let instructions = |event: &&&Event| event.counters.get(position).map_or(0.0, |count| f64::from(*count));
    let counts: Sample = untouched().map(|event| instructions(&event)).collect();
    let slow: Sample = untouched()
        .filter(|event| event.duration_ns as f64 >= shape.tail_mean)
        .map(|event| instructions(&event))
        .collect();
    match (counts.shape(tail), slow.shape(tail)) {
        (Some(all), Some(slow)) if all.median > 0.0 && shape.excess() > 0.0 => {
            let tail_ns = (slow.median - all.median) * shape.median / all.median;
            Evidence::Association { calls: counts.len(), tail_ns, tail_share: tail_ns / shape.excess() }
        }
        _ => Evidence::Unobserved { why: "too few calls without intervention".to_owned() },
    }
}

/// What is left of the tail's excess when every tested cause is taken away.
fn unexplained(findings: &[Finding], resamples: &Resamples) -> Option<Estimate> {
    let tested: Vec<usize> = Cause::ALL
        .iter()
        .enumerate()
        .filter(|(_, cause)| findings.iter().any(|f| f.cause == **cause && f.tail_share().is_some()))
        .map(|(index, _)| index)
        .collect();
    let value = 1.0
        - findings.iter().filter_map(|finding| finding.tail_share()).map(|share| share.value).sum::<f64>();
    let left = |draw: usize| {
        let base = resamples.base.get(draw)?;
        let removed: Option<Vec<f64>> = tested
            .iter()
            .map(|index| resamples.removed.get(*index)?.get(draw).map(|removed| tail_share(base, removed)))
            .collect();
        Some(1.0 - removed?.iter().sum::<f64>())
    };
    (!tested.is_empty()).then(|| estimate(value, (0..resamples.base.len()).filter_map(left).collect()))
}
