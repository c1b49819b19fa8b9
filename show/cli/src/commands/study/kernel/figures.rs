//! Two recorded kernels in figures: lines of the types that change, misses and stalls.

use super::plan::KernelPlan;
use super::variant::Variant;
use lineup_advise::current_lines;
use lineup_advise::proposal::{Advice, RegionLines};
use lineup_advise::usage::Usage;
use lineup_explain::Explained;
use lineup_explain::explanation::RegionExplanation;
use lineup_explain::quantiles::Bar;
use lineup_kernel::guest::Varying;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use lineup_prove::Proof;
use lineup_recording::MeasuredCall;
use lineup_report::study::{Fact, GuestComparison, MeanCost, RegionCosts, TypeLines};

/// More lines per call than this, over all regions by their weights, make a kernel worse.
const MORE_LINES: f64 = 0.01;

/// A number of a measured call.
type Cost = fn(&MeasuredCall) -> u64;

/// The figures of each measured call.
const COSTS: [(&str, Cost); 8] = [
    ("instructions", |call| call.own.instructions),
    ("modelled L1I misses", |call| call.own.code_misses.l1),
    ("modelled L2 misses for code", |call| call.own.code_misses.l2),
    ("modelled stall cycles for code", |call| call.own.code_stall_cycles),
    ("modelled L1D misses", |call| call.own.data_misses.l1),
    ("modelled L2 misses for data", |call| call.own.data_misses.l2),
    ("modelled stall cycles for data", |call| call.own.data_stall_cycles),
    ("modelled stall cycles", |call| call.own.data_stall_cycles + call.own.code_stall_cycles),
];

/// All figures of both kernels except for lines in all.
pub(crate) fn side_by_side(
    plan: &KernelPlan<'_>,
    advice: &Advice,
    [before, after]: [&Variant; 2],
    varying: &Varying,
) -> GuestComparison {
    GuestComparison {
        compared: compared([before, after], varying),
        types: type_lines(advice, [before, after], plan.advice.primary),
        costs: costs([before, after]),
    }
}

/// The same of kernels that differ in the order of their code.
pub(crate) fn kernels_side_by_side(variants: [&Variant; 2], varying: &Varying) -> GuestComparison {
    let mut compared = compared(variants, varying);
    compared.retain(|fact| fact.name != OFFSETS);
    GuestComparison { compared, types: Vec::new(), costs: costs(variants) }
}

/// The fact that is of changed types alone.
const OFFSETS: &str = "offsets";

/// The number of lines, and that they are equal.
fn equal(lines: usize) -> String {
    match lines {
        0 => "none in either".into(),
        1 => "one line, equal".into(),
        lines => format!("{lines} lines, equal"),
    }
}

/// The comparison of the guests' output.
fn compared([before, after]: [&Variant; 2], varying: &Varying) -> Vec<Fact> {
    let fact = |name: &str, value: String| Fact { name: name.into(), value };
    let [kernel, workload] = varying.counts();
    let left_out = |count: usize| match count {
        0 => String::new(),
        1 => "; one kind of line that differs between two boots of the same kernel is left out".into(),
        count => {
            format!("; {count} kinds of lines that differ between two boots of the same kernel are left out")
        }
    };
    let (said, printed) = (before.printed().kernel.len(), before.printed().workload.len());
    let cut = [before, after].iter().any(|variant| variant.printed().is_cut());
    let cut = if cut { "; the guests printed so much that the end of it was not kept" } else { "" };
    vec![
        fact(
            "boot log",
            format!("{} but for times, numbers and their order{}{cut}", equal(said), left_out(kernel)),
        ),
        fact("workload's output", format!("{}{}", equal(printed), left_out(workload))),
        fact(OFFSETS, "read back from the debug information of the built image, as predicted".into()),
    ]
}

/// Lines of the types that change, for every region that uses them.
fn type_lines(advice: &Advice, variants: [&Variant; 2], line: LineSize) -> Vec<TypeLines> {
    let usages = variants.map(|variant| Usage::of_explained(&variant.recorded));
    let mut all = Vec::new();
    for order in &advice.orders {
        let lies = |at: usize| {
            let types = variants[at].recorded.types();
            current_lines(&usages[at], types, &order.type_name)
        };
        let (before, after) = (lies(0), lies(1));
        let of = |rows: &[RegionLines], wanted: &RegionLines| {
            let is_it = |row: &&RegionLines| {
                (row.id, row.line_bytes, row.data_model) == (wanted.id, wanted.line_bytes, wanted.data_model)
            };
            rows.iter().find(is_it).map_or(0.0, |row| row.after)
        };
        let recorded = order.sizes.first().map(|size| size.data_model);
        let rows = order.lines.iter().filter(|row| row.line_bytes == line.bytes());
        all.extend(rows.filter(|row| Some(row.data_model) == recorded).map(|row| TypeLines {
            type_name: order.type_name.clone(),
            region: row.region.clone(),
            before: of(&before, row),
            predicted: row.after,
            after: of(&after, row),
        }));
    }
    all
}

/// The types for which the changed kernel needs no fewer lines, over all regions, though fewer were predicted.
pub(crate) fn no_gain(lines: &[TypeLines]) -> Option<String> {
    let mut names: Vec<&str> = lines.iter().map(|one| one.type_name.as_str()).collect();
    names.dedup();
    names.into_iter().find_map(|name| {
        let of = |value: fn(&TypeLines) -> f64| {
            lines.iter().filter(|one| one.type_name == name).map(value).sum::<f64>()
        };
        let (before, predicted, after) = (of(|one| one.before), of(|one| one.predicted), of(|one| one.after));
        let is_predicted = predicted < before;
        (is_predicted && after >= before).then(|| {
            format!(
                "the changed kernel needs {after:.2} lines of {name}, over all regions, where it needed {before:.2} and \
                 {predicted:.2} was predicted"
            )
        })
    })
}

/// More lines per call over all regions, and not by the choice of calls alone.
pub(crate) fn more_lines(variants: [&Variant; 2], proof: &Proof, line: LineSize) -> Option<String> {
    let difference = proof.lines_difference?;
    let regions = |variant: &Variant| {
        variant.recorded.explanation.regions.iter().map(|region| spread(region, line)).collect::<Vec<_>>()
    };
    let all = variants.map(regions);
    let weight: f64 = all[0].iter().map(|(weight, _)| weight).sum();
    let noise = all.iter().flatten().map(|(weight, square)| weight.powi(2) * square).sum::<f64>().sqrt();
    let noise = 1.96 * noise / weight.max(f64::MIN_POSITIVE);
    (difference > MORE_LINES && difference > noise).then(|| {
        format!("the changed kernel is worse: {difference:+.2} lines per call, and the choice of calls explains {noise:.2}")
    })
}

/// The mean lines of data per call, over all regions by their weights.
pub(crate) fn mean_lines(recorded: &Explained, line: LineSize) -> f64 {
    let regions = recorded.explanation.regions.iter();
    let all: Vec<(f64, f64)> =
        regions.map(|region| (region.weight, Calls::of(region, line).mean())).collect();
    let weight: f64 = all.iter().map(|(weight, _)| weight).sum();
    all.iter().map(|(weight, mean)| weight * mean).sum::<f64>() / weight.max(f64::MIN_POSITIVE)
}

/// A region's weight, and the square of the standard error of its mean lines of data per call.
fn spread(region: &RegionExplanation, line: LineSize) -> (f64, f64) {
    let calls = Calls::of(region, line);
    let (count, mean) = (calls.count(), calls.mean());
    if count < 2.0 {
        return (region.weight, 0.0);
    }
    (region.weight, calls.sum(|lines| (lines - mean).powi(2)) / (count - 1.0) / count)
}

/// The calls of a region by their lines of data.
struct Calls<'r>(&'r [Bar]);

impl<'r> Calls<'r> {
    fn of(region: &'r RegionExplanation, line: LineSize) -> Self {
        let lines = region.lines.iter().find(|lines| lines.line_bytes == line.bytes());
        Calls(lines.map_or(&[], |lines| &lines.data_distribution))
    }

    /// A value of the lines of each call, summed over all calls.
    fn sum(&self, value: impl Fn(f64) -> f64) -> f64 {
        self.0.iter().map(|bar| value(bar.value as f64) * bar.calls as f64).sum()
    }

    fn count(&self) -> f64 {
        self.sum(|_| 1.0)
    }

    fn mean(&self) -> f64 {
        self.sum(|lines| lines) / self.count().max(1.0)
    }
}

/// Means over all measured calls.
fn costs([before, after]: [&Variant; 2]) -> Vec<RegionCosts> {
    let of_region = |variant: &Variant, region: RegionId, cost: Cost| {
        let calls = variant.measured.iter().filter(|call| call.region == region);
        calls.map(|call| cost(call) as f64).collect::<Vec<f64>>()
    };
    let regions = before.recorded.explanation.regions.iter();
    regions
        .map(|region| {
            let count = |variant: &Variant| of_region(variant, region.id, COSTS[0].1).len() as u64;
            let means = COSTS.iter().filter_map(|(name, cost)| {
                let both = [before, after].map(|variant| of_region(variant, region.id, *cost));
                MeanCost::of(name, &both[0], &both[1])
            });
            RegionCosts {
                region: region.name.clone(),
                calls_before: count(before),
                calls_after: count(after),
                means: means.collect(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(name: &str, before: f64, predicted: f64, after: f64) -> TypeLines {
        TypeLines { type_name: name.into(), region: "f".into(), before, predicted, after }
    }

    #[test]
    fn a_type_that_was_to_need_fewer_lines_and_does_not_is_told() {
        let good = lines("rq", 3.0, 2.0, 2.1);
        assert_eq!(no_gain(std::slice::from_ref(&good)), None);
        let said = no_gain(&[good, lines("sock", 5.0, 4.0, 5.0)]).expect("no gain");
        assert!(said.contains("5.00 lines of sock"), "{said}");
        assert_eq!(
            no_gain(&[lines("task", 3.0, 2.0, 1.0), lines("task", 1.0, 1.0, 2.0)]),
            None,
            "in all it gains"
        );
    }
}
