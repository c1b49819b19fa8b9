//! The second tail: calls that execute more instructions than usual, and the functions that ran in them.

use super::class::{self, ClassFound};
use super::functions::{self, FunctionFound};
use super::split::{Means, Split, means};
use crate::distribution::{Distribution, shortest_half, values};
use crate::metric::Metric;
use crate::run::{Measured, Run, of_arm};
use lineup_model::region::RegionId;
use lineup_recording::Arm;
use lineup_stats::summary::quantile;
use serde::Serialize;

/// Calls with more instructions than usual, among those before which nothing was done.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SecondTail {
    /// Calls with more instructions than this are the tail: of the shortest interval that holds half of all calls, the
    /// upper end and three times the width; and at least a tenth above the median.
    pub above_instructions: f64,
    /// Calls in the tail.
    pub tail_calls: usize,
    /// Other calls.
    pub usual_calls: usize,
    /// Share of all calls' cycles that the tail's calls took.
    pub share_of_cycles: f64,
    /// Share of all calls' instructions that the tail's calls executed.
    pub share_of_instructions: f64,
    /// Most instructions of a call, as a multiple of the distribution's peak.
    pub instructions_per_peak: Option<f64>,
    /// Most I-stall cycles of a call *of the tail*, as a multiple of the peak over all calls. If it is much less than
    /// the former, the tail's instructions are in code that is already cached: it repeats.
    pub code_stall_per_peak: Option<f64>,
    /// Each count's mean over calls of both kinds.
    pub means: Vec<Means>,
    /// Regions inside, in order of their instructions, most first.
    pub regions: Vec<InnerRegion>,
    /// Calls of the tail whose accesses were kept: the fields below cover only these.
    pub kept_tail_calls: usize,
    /// Other calls whose accesses were kept.
    pub kept_usual_calls: usize,
    /// Functions that accessed more data in calls of the tail, by how much more, most first.
    pub functions: Vec<FunctionFound>,
    /// Such functions beyond the first 40.
    pub functions_not_listed: usize,
    /// Accesses to data by which a call of the tail exceeds a usual one, by all functions; `None` when none was kept.
    pub excess_accesses_per_call: Option<f64>,
    /// Kinds of work that the tail's calls did and usual ones did not, or seldom, most calls first.
    pub classes: Vec<ClassFound>,
    /// Kept calls of the tail in which no kind of work was recognised.
    pub unclassified_calls: usize,
}

/// A region inside calls of both kinds. Regions inside one another count for each.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct InnerRegion {
    /// Its name.
    pub region: String,
    /// Its calls inside a usual call, mean.
    pub calls_per_usual_call: f64,
    /// Its calls inside a call of the tail, mean.
    pub calls_per_tail_call: f64,
    /// Its instructions inside a usual call, mean.
    pub instructions_per_usual_call: f64,
    /// Its instructions inside a call of the tail, mean.
    pub instructions_per_tail_call: f64,
    /// Its first-level code misses inside a usual call, mean.
    pub code_misses_per_usual_call: f64,
    /// Its first-level code misses inside a call of the tail, mean.
    pub code_misses_per_tail_call: f64,
    /// Its cycles inside a usual call, mean.
    pub cycles_per_usual_call: f64,
    /// Its cycles inside a call of the tail, mean.
    pub cycles_per_tail_call: f64,
}

/// The smallest number of calls among which one can be called unusual.
const LEAST_CALLS: usize = 20;

/// The count of instructions beyond which a call is unusual among these; `None` with fewer than 20 calls.
pub fn unusual_above(instructions: &[u64]) -> Option<f64> {
    if instructions.len() < LEAST_CALLS {
        return None;
    }
    fence(&instructions.iter().map(|count| *count as f64).collect::<Vec<f64>>())
}

/// The second tail of a region; `None` with fewer than 20 calls.
pub fn second_tail(run: &Run, region: RegionId) -> Option<SecondTail> {
    let calls = of_arm(run, region, Arm::Untouched);
    if calls.len() < LEAST_CALLS {
        return None;
    }
    let above = fence(&values(Metric::Instructions, calls.iter().copied()))?;
    let is_tail = |measured: &Measured| measured.call.own.instructions as f64 > above;
    let untouched = run
        .calls(region)
        .filter(|(_, measured)| measured.returned() && measured.arm == Arm::Untouched)
        .map(|(position, measured)| (position, is_tail(measured)));
    let (tail, usual): (Vec<_>, Vec<_>) = untouched.partition(|(_, is_tail)| *is_tail);
    let positions = |calls: Vec<(usize, bool)>| calls.into_iter().map(|(position, _)| position).collect();
    let split = Split { usual: positions(usual), tail: positions(tail) };
    let found = functions::compare(run, &split);
    let (classes, unclassified_calls) = class::classify(run, &split, &found);
    Some(SecondTail {
        above_instructions: above,
        tail_calls: split.tail.len(),
        usual_calls: split.usual.len(),
        share_of_cycles: tail_share(run, &split, Metric::Cycles),
        share_of_instructions: tail_share(run, &split, Metric::Instructions),
        instructions_per_peak: per_peak(run, &calls, &split, Metric::Instructions),
        code_stall_per_peak: per_peak(run, &calls, &split, Metric::CodeStallCycles),
        means: Metric::ALL.into_iter().map(|metric| means(run, &split, metric)).collect(),
        regions: inner_regions(run, &split),
        kept_tail_calls: found.kept_tail.len(),
        kept_usual_calls: found.kept_usual.len(),
        functions: found.listed(),
        functions_not_listed: found.not_listed(),
        excess_accesses_per_call: found.excess_accesses_per_call(),
        classes,
        unclassified_calls,
    })
}

fn fence(instructions: &[f64]) -> Option<f64> {
    let mut sorted = instructions.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = shortest_half(&sorted, |first, last| last - first)?;
    let (first, last) = (half.first()?, half.last()?);
    let upper = last + 3.0 * (last - first);
    Some(upper.max(1.1 * quantile(instructions, 0.5).ok()?))
}

/// The tail's greatest value of a count over the peak of all calls.
fn per_peak(run: &Run, calls: &[&Measured], split: &Split, metric: Metric) -> Option<f64> {
    let peak = Distribution::of(metric, calls.iter().copied())?.peak;
    let most = split.tail.iter().map(|position| metric.of(&run.measured[*position].call)).max()?;
    (peak > 0.0).then(|| most as f64 / peak)
}

/// The tail's part of a count over all calls.
fn tail_share(run: &Run, split: &Split, metric: Metric) -> f64 {
    let sum = |positions: &[usize]| -> f64 {
        positions.iter().map(|position| metric.of(&run.measured[*position].call) as f64).sum()
    };
    let (tail, usual) = (sum(&split.tail), sum(&split.usual));
    if tail > 0.0 { tail / (tail + usual) } else { 0.0 }
}

/// Calls, instructions, code misses and cycles of each region inside some calls, per call.
fn inside(run: &Run, positions: &[usize]) -> Vec<[f64; 4]> {
    let mut sums = vec![[0.0; 4]; run.regions.len()];
    for (inner, _) in positions.iter().flat_map(|position| run.inside(*position)) {
        let call = &run.measured[inner].call;
        if let Some(sum) = sums.get_mut(usize::from(call.region.0)) {
            let counts = [Metric::Instructions, Metric::CodeMissesL1, Metric::Cycles];
            sum[0] += 1.0;
            sum.iter_mut().skip(1).zip(counts).for_each(|(sum, metric)| *sum += metric.of(call) as f64);
        }
    }
    let count = positions.len().max(1) as f64;
    sums.iter_mut().flatten().for_each(|sum| *sum /= count);
    sums
}

fn inner_regions(run: &Run, split: &Split) -> Vec<InnerRegion> {
    let (usual, tail) = (inside(run, &split.usual), inside(run, &split.tail));
    let region =
        |((region, usual), tail): ((&lineup_model::region::Region, &[f64; 4]), &[f64; 4])| InnerRegion {
            region: region.name.clone(),
            calls_per_usual_call: usual[0],
            calls_per_tail_call: tail[0],
            instructions_per_usual_call: usual[1],
            instructions_per_tail_call: tail[1],
            code_misses_per_usual_call: usual[2],
            code_misses_per_tail_call: tail[2],
            cycles_per_usual_call: usual[3],
            cycles_per_tail_call: tail[3],
        };
    let mut regions: Vec<InnerRegion> =
        run.regions.iter().map(|(_, region)| region).zip(&usual).zip(&tail).map(region).collect();
    regions.retain(|region| region.calls_per_usual_call + region.calls_per_tail_call > 0.0);
    let excess =
        |region: &InnerRegion| region.instructions_per_tail_call - region.instructions_per_usual_call;
    regions.sort_by(|a, b| excess(b).total_cmp(&excess(a)).then_with(|| a.region.cmp(&b.region)));
    regions
}
