//! The known facts about the regions of several runs.

use crate::distribution::{
    COMPARED, Correlation, Difference, Distribution, Mode, arm_name, correlation, differences, modes_of,
};
use crate::high_water::{Mark, high_water};
use crate::metric::Metric;
use crate::run::{Facts, Measured, Run, of_arm};
use crate::second::{SecondTail, second_tail};
use crate::spans::{Spans, spans};
use lineup_model::access::CallEnd;
use lineup_model::region::{Region, RegionId};
use lineup_recording::Arm;
use rayon::prelude::*;
use serde::Serialize;

/// The schema that [`Analysis`] follows as JSON.
pub const SCHEMA: &str = "lineup.calls/1";

/// The cost of recorded calls. In JSON: `lineup.calls/1`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Analysis {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// The recordings, in the order in which they were given.
    pub runs: Vec<Facts>,
    /// Regions by name, in the order of the first recording that has them.
    pub regions: Vec<RegionAnalysis>,
}

/// A region over all runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionAnalysis {
    /// Its name.
    pub name: String,
    /// True for spans of execution that are no calls: with interrupts off.
    pub is_span: bool,
    /// One entry for each run with calls of it.
    pub runs: Vec<RegionRun>,
    /// The difference of each further run from another, among calls without a treatment: from one with other caches
    /// that executed as many instructions, where there is one, else from the first.
    pub between_runs: Vec<RunDifference>,
}

/// A region in one run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionRun {
    /// Position of the run.
    pub run: usize,
    /// Calls that returned.
    pub calls: usize,
    /// Calls that were left otherwise.
    pub abandoned: usize,
    /// Calls under way when the recording ended.
    pub unfinished: usize,
    /// Calls whose accesses and code were kept.
    pub kept: usize,
    /// By the treatment before the call.
    pub arms: Vec<ArmCalls>,
    /// The difference between the calls of each further arm and those of the first. Calls were assigned to arms at
    /// random, so the treatment is the cause.
    pub between_arms: Vec<ArmDifference>,
    /// Correlations of counts with cycles, among calls without a treatment.
    pub correlations: Vec<Correlation>,
    /// Groups of calls by their cycles, among calls before which nothing was done.
    pub modes: Vec<Mode>,
    /// Calls with more instructions than usual; `None` for spans and for fewer than 20 calls.
    pub second_tail: Option<SecondTail>,
    /// New maxima of cycles.
    pub high_water: Vec<Mark>,
    /// The places where spans begin and end; `None` for calls.
    pub spans: Option<Spans>,
}

impl RegionRun {
    /// Calls of an arm.
    pub fn arm(&self, arm: Arm) -> Option<&ArmCalls> {
        self.arms.iter().find(|calls| calls.arm == arm)
    }

    /// A distribution among calls before which nothing was done, or else of the first arm there is.
    pub fn distribution(&self, metric: Metric) -> Option<&Distribution> {
        let arm = self.arm(Arm::Untouched).or(self.arms.first())?;
        arm.distributions.iter().find(|distribution| distribution.metric == metric)
    }
}

/// Calls before which the same was done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ArmCalls {
    /// The treatment before each call.
    #[serde(serialize_with = "arm_name")]
    pub arm: Arm,
    /// Distributions of every count.
    pub distributions: Vec<Distribution>,
}

/// The difference between the calls of two arms.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ArmDifference {
    /// The arm compared with.
    #[serde(serialize_with = "arm_name")]
    pub from: Arm,
    /// The arm.
    #[serde(serialize_with = "arm_name")]
    pub to: Arm,
    /// The differences.
    pub differences: Vec<Difference>,
}

/// The difference between the calls of two runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RunDifference {
    /// Position of the run compared with.
    pub from: usize,
    /// Position of the run.
    pub to: usize,
    /// The differences.
    pub differences: Vec<Difference>,
}

/// The counts held against cycles.
const CORRELATED: [Metric; 4] =
    [Metric::CodeStallCycles, Metric::DataStallCycles, Metric::Instructions, Metric::CodeMissesL1];

/// Analyses runs together.
pub fn analyse(runs: &[Run]) -> Analysis {
    let mut names: Vec<(&str, bool)> = Vec::new();
    for (_, region) in runs.iter().flat_map(|run| run.regions.iter()) {
        if !names.iter().any(|(name, _)| *name == region.name) {
            names.push((&region.name, region.is_span()));
        }
    }
    Analysis {
        schema: SCHEMA,
        runs: runs.iter().map(|run| run.facts.clone()).collect(),
        regions: names.into_par_iter().map(|(name, is_span)| region(runs, name, is_span)).collect(),
    }
}

fn region(runs: &[Run], name: &str, is_span: bool) -> RegionAnalysis {
    let found: Vec<RegionRun> = runs
        .par_iter()
        .enumerate()
        .filter_map(|(index, run)| {
            let position = run.region(name)?;
            run.calls(position).next()?;
            Some(region_run(run, index, position))
        })
        .collect();
    let untouched: Vec<(usize, Vec<&Measured>)> = runs
        .iter()
        .enumerate()
        .filter_map(|(index, run)| Some((index, of_arm(run, run.region(name)?, Arm::Untouched))))
        .filter(|(_, calls)| !calls.is_empty())
        .collect();
    let between_runs = untouched.par_iter().skip(1).map(|(to, calls)| {
        let mut earlier = untouched.iter().take_while(|(from, _)| from < to);
        let same_work = earlier.find(|(from, _)| is_other_model(&runs[*from], &runs[*to]));
        let (from, base) = same_work.unwrap_or(&untouched[0]);
        RunDifference { from: *from, to: *to, differences: differences(base, calls, compared(is_span)) }
    });
    let between_runs = between_runs.collect();
    RegionAnalysis { name: name.to_owned(), is_span, runs: found, between_runs }
}

fn compared(is_span: bool) -> &'static [Metric] {
    if is_span { &[Metric::Cycles] } else { &COMPARED }
}

/// True when the same work was recorded with other caches.
fn is_other_model(one: &Run, other: &Run) -> bool {
    let (one, other) = (&one.facts, &other.facts);
    one.caches != other.caches && one.instructions.is_some() && one.instructions == other.instructions
}

fn region_run(run: &Run, index: usize, region: RegionId) -> RegionRun {
    let is_span = run.regions.get(region).is_some_and(Region::is_span);
    let ended = |end: CallEnd| run.calls(region).filter(|(_, measured)| measured.call.end == end).count();
    let arms: Vec<(Arm, Vec<&Measured>)> = Arm::ALL
        .into_iter()
        .map(|arm| (arm, of_arm(run, region, arm)))
        .filter(|(_, calls)| !calls.is_empty())
        .collect();
    let base = arms.first().map_or(&[][..], |(_, calls)| calls);
    let between_arms = arms.iter().skip(1).map(|(to, calls)| ArmDifference {
        from: arms[0].0,
        to: *to,
        differences: differences(base, calls, compared(is_span)),
    });
    RegionRun {
        run: index,
        calls: ended(CallEnd::Returned),
        abandoned: ended(CallEnd::Abandoned),
        unfinished: ended(CallEnd::Unfinished),
        kept: run.kept_calls(region),
        between_arms: between_arms.collect(),
        correlations: CORRELATED.into_iter().filter_map(|metric| correlation(metric, base)).collect(),
        modes: modes_of(base),
        second_tail: if is_span { None } else { second_tail(run, region) },
        high_water: high_water(run, region),
        spans: is_span.then(|| spans(run, region)),
        arms: arms.iter().map(|(arm, calls)| arm_calls(*arm, calls)).collect(),
    }
}

fn arm_calls(arm: Arm, calls: &[&Measured]) -> ArmCalls {
    let of = |metric| Distribution::of(metric, calls.iter().copied());
    ArmCalls { arm, distributions: Metric::ALL.into_iter().filter_map(of).collect() }
}
