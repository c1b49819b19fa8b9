//! A trace in numbers: per region, mark and lock.

use crate::event::{Arm, Kind};
use crate::histogram::Histogram;
use crate::layout::{COUNTERS, mode};
use crate::modes::{Mode, modes};
use crate::reader::{HighWater, Losses, NameKind, Rung, Trace};
use serde::Serialize;

/// A trace in numbers. In JSON: `lineup.trace/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Name and version of this form.
    pub schema: &'static str,
    /// The traced process.
    pub pid: u32,
    /// The way counters were read.
    pub rung: Rung,
    /// The counters' names.
    pub counters: Vec<String>,
    /// The recorded data: `events`, `high_water`, `histograms`.
    pub modes: Vec<&'static str>,
    /// True when times come from the cycle counter.
    pub uses_counter: bool,
    /// Threads with their events and losses.
    pub threads: Vec<ThreadSummary>,
    /// Regions, marks and locks.
    pub names: Vec<NameSummary>,
    /// The losses in all.
    pub losses: Losses,
    /// Threads that found no room.
    pub threads_refused: u32,
    /// Names that found no room.
    pub names_refused: u32,
}

/// A thread in numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ThreadSummary {
    /// The system's thread number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Events left in its ring.
    pub events: usize,
    /// Its losses.
    pub losses: Losses,
}

/// A region, mark or lock in numbers.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NameSummary {
    /// The name.
    pub name: String,
    /// The kind of object it stands for.
    pub kind: NameKind,
    /// Calls by arm, for arms that have any.
    pub calls_by_arm: Vec<(Arm, usize)>,
    /// Duration, or hold of a lock, nanoseconds.
    pub duration_ns: Distribution,
    /// The durations around which calls gather; `None` for too few events.
    pub modes: Option<Vec<Mode>>,
    /// Lock wait, nanoseconds.
    pub lock_wait_ns: Distribution,
    /// Each counter.
    pub counters: Vec<(String, Distribution)>,
    /// New maxima with the events inside them.
    pub high_water: Vec<HighWater>,
}

/// A distribution in numbers; nothing is zero for want of values.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Distribution {
    /// The number of values.
    pub count: u64,
    /// Quantiles by name.
    pub quantiles: Option<Quantiles>,
    /// Non-empty buckets: least value, greatest value, count.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// Quantiles to within one part in 32.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Quantiles {
    /// Least.
    pub min: u64,
    /// Half lie below.
    pub median: u64,
    /// 90 % lie below.
    pub p90: u64,
    /// 99 % lie below.
    pub p99: u64,
    /// 99.9 % lie below.
    pub p999: u64,
    /// Greatest.
    pub max: u64,
}

impl Distribution {
    fn of(histogram: &Histogram) -> Self {
        let at = |q| histogram.quantile(q);
        let quantiles = || {
            Some(Quantiles {
                min: at(0.0)?,
                median: at(0.5)?,
                p90: at(0.9)?,
                p99: at(0.99)?,
                p999: at(0.999)?,
                max: at(1.0)?,
            })
        };
        Self {
            count: histogram.total(),
            quantiles: if histogram.total() == 0 { None } else { quantiles() },
            buckets: histogram.buckets().collect(),
        }
    }
}

/// Sums a trace up.
pub fn summarise(trace: &Trace) -> Summary {
    let modes =
        [(mode::EVENTS, "events"), (mode::HIGH_WATER, "high_water"), (mode::HISTOGRAMS, "histograms")];
    Summary {
        schema: "lineup.trace/1",
        pid: trace.pid,
        rung: trace.rung,
        counters: trace.counters.iter().flatten().cloned().collect(),
        modes: modes.iter().filter(|(bit, _)| trace.modes & bit != 0).map(|(_, name)| *name).collect(),
        uses_counter: trace.uses_counter,
        threads: trace
            .threads
            .iter()
            .map(|thread| ThreadSummary {
                tid: thread.tid,
                name: thread.name.clone(),
                events: thread.events.len(),
                losses: thread.losses,
            })
            .collect(),
        names: trace.names.iter().filter_map(|name| summarise_name(trace, name.index)).collect(),
        losses: trace.losses(),
        threads_refused: trace.threads_refused,
        names_refused: trace.names_refused,
    }
}

fn summarise_name(trace: &Trace, index: u16) -> Option<NameSummary> {
    let name = trace.name(index)?;
    let calls = |arm: Arm| trace.events_of(index, Kind::Region).filter(|event| event.arm == arm).count();
    let counter = |position: usize| {
        let label = trace.counters.get(position)?.clone()?;
        Some((label, Distribution::of(&trace.histogram(index, 2 + position as u64))))
    };
    Some(NameSummary {
        name: name.text.clone(),
        kind: name.kind,
        calls_by_arm: Arm::ALL
            .iter()
            .map(|arm| (*arm, calls(*arm)))
            .filter(|(_, calls)| *calls > 0)
            .collect(),
        duration_ns: Distribution::of(&trace.histogram(index, 0)),
        modes: modes(trace, index),
        lock_wait_ns: Distribution::of(&trace.histogram(index, 1)),
        counters: (0..COUNTERS).filter_map(counter).collect(),
        high_water: trace
            .threads
            .iter()
            .flat_map(|thread| &thread.high_water)
            .filter(|entry| entry.event.name == index)
            .cloned()
            .collect(),
    })
}
