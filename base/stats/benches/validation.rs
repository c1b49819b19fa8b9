//! Holds the comparison's statistics against a program whose true effect is known, and prints their quality: coverage
//! of the 95 % intervals, false alarms with the stop by width on, and the runs needed compared with measuring all of A
//! and then all of B.

use lineup_stats::bootstrap::Resampling;
use lineup_stats::paired::{PairedBlocks, RatioEstimate};
use lineup_stats::published::{PrintedMean, ratio};
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_stats::summary::Summary;
use lineup_stats::synthetic::{Disturbance, SyntheticProgram};

const EFFECTS: [f64; 4] = [0.0, 0.003, 0.01, 0.05];
const EXPERIMENTS: u64 = 2000;
const BLOCKS: usize = 20;
const STOP: WidthStop = WidthStop { first_look: 10, target_width: 0.015, level: 0.95 };

/// A comparison that has not reached its width after this many runs is given up.
const PATIENCE_RUNS: usize = 400;

fn main() {
    coverage();
    false_alarms();
    runs_needed();
}

/// Holds the share of experiments in which something was so.
fn percent(count: u64) -> String {
    format!("{:5.1} %", 100.0 * count as f64 / EXPERIMENTS as f64)
}

fn programs(effect: f64, disturbance: Disturbance) -> impl Iterator<Item = (SyntheticProgram, Seed)> {
    let seed = Seed(2027).part(disturbance as u64).part((effect * 1e4) as u64);
    (0..EXPERIMENTS).map(move |number| {
        let own = seed.part(number);
        (SyntheticProgram::new(effect, disturbance, own), own.part(1))
    })
}

/// The estimate that `lineup compare` judges by.
fn resampled(blocks: &PairedBlocks, seed: Seed, level: f64) -> RatioEstimate {
    let plan = Resampling { seed, level, resamples: 1000, ..Resampling::default() };
    blocks.ratio_of_totals(&plan).expect("positive costs")
}

fn coverage() {
    println!(
        "\nCoverage of the 95 % intervals, {BLOCKS} blocks ABBA, {EXPERIMENTS} experiments each (goal: 93 to 97 %)\n"
    );
    println!("  {:<12} {:>7}  {:>16}  {:>10}", "disturbance", "effect", "block bootstrap", "paired t");
    for disturbance in Disturbance::ALL {
        for effect in EFFECTS {
            let (mut by_bootstrap, mut by_t) = (0, 0);
            for (mut program, seed) in programs(effect, disturbance) {
                let truth = program.true_ratio();
                let runs: Vec<_> = (0..BLOCKS).map(|_| program.block()).collect();
                let blocks = PairedBlocks::from_runs(&runs).expect("complete blocks");
                by_bootstrap += u64::from(resampled(&blocks, seed, 0.95).interval.contains(truth));
                by_t += u64::from(blocks.ratio(0.95).expect("positive costs").interval.contains(truth));
            }
            println!(
                "  {:<12} {:>5.1} %  {:>16}  {:>10}",
                disturbance.name(),
                100.0 * effect,
                percent(by_bootstrap),
                percent(by_t)
            );
        }
    }
}

/// Blocks until the stop is reached; `None` when patience ends first.
fn until_width(program: &mut SyntheticProgram) -> Option<PairedBlocks> {
    let mut runs = Vec::new();
    while runs.len() < PATIENCE_RUNS / 4 {
        runs.push(program.block());
        let blocks = PairedBlocks::from_runs(&runs).expect("complete blocks");
        if STOP.is_reached(&blocks).expect("positive costs") {
            return Some(blocks);
        }
    }
    None
}

fn false_alarms() {
    println!(
        "\nA program against itself, stopping when the interval is {} % wide (goal: at most 5 % false alarms)\n",
        100.0 * STOP.target_width
    );
    println!("  {:<12}  {:>14}  {:>26}", "disturbance", "false alarms", "without the correction");
    for disturbance in Disturbance::ALL {
        let (mut corrected, mut naive) = (0, 0);
        for (mut program, seed) in programs(0.0, disturbance) {
            if let Some(blocks) = until_width(&mut program) {
                let strict = STOP.working_level();
                corrected += u64::from(!resampled(&blocks, seed, strict).interval.contains(1.0));
                naive += u64::from(!resampled(&blocks, seed, 0.95).interval.contains(1.0));
            }
        }
        println!("  {:<12}  {:>14}  {:>26}", disturbance.name(), percent(corrected), percent(naive));
    }
}

/// All of A and then all of B, until the interval of two unpaired samples is as narrow. It pays the same price for
/// choosing the number of runs by their spread. Returns the runs made, and true when the interval holds the truth;
/// `None` when patience ends first.
fn batches(effect: f64, disturbance: Disturbance, seed: Seed) -> Option<(usize, bool)> {
    let mut count = 2 * STOP.first_look;
    while 2 * count <= PATIENCE_RUNS {
        let mut program = SyntheticProgram::new(effect, disturbance, seed.part(count as u64));
        let before: Vec<f64> = (0..count).map(|_| program.run(false)).collect();
        let after: Vec<f64> = (0..count).map(|_| program.run(true)).collect();
        let estimate = ratio(pile(&before), pile(&after), STOP.working_level()).expect("positive costs");
        if estimate.interval.width() <= STOP.target_width {
            return Some((2 * count, estimate.interval.contains(program.true_ratio())));
        }
        count += (count / 5).max(1);
    }
    None
}

fn pile(runs: &[f64]) -> PrintedMean {
    let summary = Summary::of(runs).expect("finite costs");
    PrintedMean::with_deviation(summary.mean, summary.deviation.unwrap_or_default(), runs.len())
}

fn runs_needed() {
    println!(
        "\nRuns until the interval is {} % wide, effect 1 %, at most {PATIENCE_RUNS} runs: blocks ABBA and A-then-B\n",
        100.0 * STOP.target_width
    );
    println!(
        "  {:<12}  {:>8} {:>9} {:>9}   {:>8} {:>9} {:>9}",
        "disturbance", "blocks", "reached", "covers", "A then B", "reached", "covers"
    );
    for disturbance in Disturbance::ALL {
        let mut interleaved = Tally::default();
        let mut separate = Tally::default();
        for (mut program, seed) in programs(0.01, disturbance) {
            let truth = program.true_ratio();
            interleaved.add(until_width(&mut program).map(|blocks| {
                let estimate = resampled(&blocks, seed, STOP.working_level());
                (4 * blocks.len(), estimate.interval.contains(truth))
            }));
            separate.add(batches(0.01, disturbance, seed));
        }
        println!("  {:<12}  {}   {}", disturbance.name(), interleaved.cells(), separate.cells());
    }
    println!(
        "\n  A mean over those that reached the width; \"covers\" is their share that holds the true effect."
    );
}

#[derive(Default)]
struct Tally {
    runs: usize,
    reached: u64,
    covered: u64,
}

impl Tally {
    fn add(&mut self, outcome: Option<(usize, bool)>) {
        if let Some((runs, covers)) = outcome {
            self.runs += runs;
            self.reached += 1;
            self.covered += u64::from(covers);
        }
    }

    fn cells(&self) -> String {
        let reached = percent(self.reached);
        if self.reached == 0 {
            return format!("{:>8} {reached:>9} {:>9}", "never", "-");
        }
        let covers = 100.0 * self.covered as f64 / self.reached as f64;
        format!("{:>8.1} {reached:>9} {:>7.1} %", self.runs as f64 / self.reached as f64, covers)
    }
}
