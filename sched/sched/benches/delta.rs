//! The cost of each form of the weighted delta, at both resolutions, with branch hints and layouts as
//! variants: paired with the 2011 form in rotating order, with an interval and a verdict. Next to it, the
//! greatest rounding error met on the same input.

use lineup_sched::weights::delta::{
    BranchHint, Form, Likely, LoadWeight, NoHint, Unlikely, division, factor, scaled, unscaled,
};
use lineup_sched::weights::{NICE_WEIGHTS, Resolution};
use lineup_stats::bootstrap::Resampling;
use lineup_stats::error::StatsError;
use lineup_stats::paired::{PairedBlocks, RatioEstimate};
use lineup_stats::summary::Summary;
use lineup_stats::verdict::{Verdict, judge};
use lineup_stats::{holm, series};
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;

/// Blocks, each with every variant once.
const BLOCKS: usize = 40;
/// Passes over the input per variant and block.
const PASSES: usize = 400;
/// Differences below this are called equivalent.
const MARGIN: f64 = 0.01;

/// One call's arguments.
#[derive(Clone, Copy)]
struct Call {
    delta_ns: u64,
    weight: u64,
    over: LoadWeight,
}

/// A call with its parts on a cache line each, as in a struct whose members were scattered.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct OnItsOwnLine<T>(T);

struct Scattered {
    delta_ns: OnItsOwnLine<u64>,
    weight: OnItsOwnLine<u64>,
    over: OnItsOwnLine<LoadWeight>,
}

/// Spans up to 4 ms and nice weights over nice weights, by a fixed generator.
fn calls(form: Form, resolution: Resolution) -> Vec<Call> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut draw = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    (0..4096)
        .map(|_| {
            let weight = NICE_WEIGHTS[draw(40) as usize] << resolution.bits();
            let stored = NICE_WEIGHTS[draw(40) as usize] << resolution.bits();
            Call { delta_ns: draw(4_000_000), weight, over: form.load_weight(stored, resolution) }
        })
        .collect()
}

struct Variant {
    name: String,
    time_ns: Box<dyn Fn() -> f64>,
    worst_error_ns: Option<u64>,
}

/// CPU time of this thread, in nanoseconds: time while it is preempted does not count.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Nanoseconds of CPU time per call.
fn timed<T>(input: &[T], call: impl Fn(&T) -> u64) -> f64 {
    let start = cpu_ns();
    let mut sum = 0_u64;
    for _ in 0..PASSES {
        for item in black_box(input) {
            sum = sum.wrapping_add(call(item));
        }
    }
    black_box(sum);
    (cpu_ns() - start) / (PASSES * input.len()) as f64
}

fn variant(
    name: &str,
    form: Form,
    resolution: Resolution,
    call: impl Fn(&Call) -> u64 + Copy + 'static,
) -> Variant {
    let input = calls(form, resolution);
    let error = |item: &Call| {
        let exact = u128::from(item.delta_ns) * u128::from(item.weight) / u128::from(item.over.stored);
        exact.abs_diff(u128::from(call(item))) as u64
    };
    let worst_error_ns = input.iter().map(error).max();
    Variant { name: name.to_string(), time_ns: Box::new(move || timed(&input, call)), worst_error_ns }
}

fn hinted<H: BranchHint + 'static>(hint: &str, resolution: Resolution) -> [Variant; 2] {
    [
        variant(&format!("scaled (2011){hint}"), Form::Scaled, resolution, move |call| {
            scaled::<H>(call.delta_ns, call.weight, call.over, resolution)
        }),
        variant(&format!("unscaled{hint}"), Form::Unscaled, resolution, |call| {
            unscaled::<H>(call.delta_ns, call.weight, call.over)
        }),
    ]
}

fn scattered(resolution: Resolution) -> Variant {
    let spread = |call: &Call| Scattered {
        delta_ns: OnItsOwnLine(call.delta_ns),
        weight: OnItsOwnLine(call.weight),
        over: OnItsOwnLine(call.over),
    };
    let input: Vec<Scattered> = calls(Form::Scaled, resolution).iter().map(spread).collect();
    let call =
        move |item: &Scattered| scaled::<Unlikely>(item.delta_ns.0, item.weight.0, item.over.0, resolution);
    let name = "scaled (2011), three lines".to_string();
    Variant { name, time_ns: Box::new(move || timed(&input, call)), worst_error_ns: None }
}

/// The variants. The first is the reference.
fn variants(resolution: Resolution) -> Vec<Variant> {
    let mut variants: Vec<Variant> = hinted::<Unlikely>(", unlikely", resolution).into();
    variants.extend(hinted::<NoHint>(", no hint", resolution));
    variants.extend(hinted::<Likely>(", likely", resolution));
    variants.push(variant("scaled inverse", Form::ScaledInverse, resolution, |call| {
        unscaled::<Unlikely>(call.delta_ns, call.weight, call.over)
    }));
    variants.push(variant("32-bit factor", Form::Factor, resolution, move |call| {
        factor(call.delta_ns, call.weight, call.over, resolution)
    }));
    variants.push(variant("64-bit division", Form::Division, resolution, |call| {
        division(call.delta_ns, call.weight, call.over)
    }));
    variants.push(scattered(resolution));
    variants
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for resolution in [Resolution::NONE, Resolution::TEN] {
        let variants = variants(resolution);
        let mut times = vec![Vec::with_capacity(BLOCKS); variants.len()];
        for block in 0..BLOCKS {
            // Every variant is at every place of a block equally often.
            for place in 0..variants.len() {
                let at = (place + block) % variants.len();
                times[at].push((variants[at].time_ns)());
            }
        }
        println!(
            "\nR = {resolution}, {BLOCKS} blocks; ratio to the first with 95 % interval; margin 1 %, Holm's correction"
        );
        judged(&variants, &times)?;
    }
    Ok(())
}

/// The statistics of `lineup compare`: the block bootstrap of the ratio, with longer runs of blocks where
/// neighbours resemble each other, and a verdict by the margin. A change that Holm's correction over all
/// variants does not bear out gets no verdict.
fn judged(variants: &[Variant], times: &[Vec<f64>]) -> Result<(), StatsError> {
    let estimate = |time_ns: &Vec<f64>| {
        let pairs = PairedBlocks::from_means(times[0].clone(), time_ns.clone())?;
        let run_length = series::run_length(&pairs.log_ratios()?);
        pairs.ratio_of_totals(&Resampling { run_length, ..Resampling::default() })
    };
    let estimates: Vec<RatioEstimate> = times[1..].iter().map(estimate).collect::<Result<_, _>>()?;
    let p_values: Vec<f64> = estimates.iter().map(|estimate| estimate.p_value).collect();
    let adjusted = holm::adjust(&p_values);
    for (at, (variant, time_ns)) in variants.iter().zip(times).enumerate() {
        let error = variant.worst_error_ns.map_or("-".to_string(), |error| error.to_string());
        print!("{:30} {:>7.3} ns", variant.name, Summary::of(time_ns)?.median());
        if at == 0 {
            println!("{:38}  worst error {error} ns", "  baseline");
            continue;
        }
        let estimate = &estimates[at - 1];
        let mut judgement = judge(estimate, MARGIN);
        if judgement.verdict == Verdict::Changed && adjusted[at - 1] > 0.05 {
            judgement.verdict =
                if judgement.within_margin { Verdict::Equivalent } else { Verdict::Inconclusive };
        }
        let (low, high) = (estimate.interval.low, estimate.interval.high);
        println!(
            "  {:>6.3} [{low:.3}, {high:.3}]  {:14}  worst error {error} ns",
            estimate.ratio,
            judgement.verdict.word()
        );
    }
    Ok(())
}
