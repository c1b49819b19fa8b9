//! The 95 % intervals reach their stated coverage on a program whose true effect is known.

use lineup_stats::bootstrap::Resampling;
use lineup_stats::paired::PairedBlocks;
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_stats::synthetic::{Disturbance, SyntheticProgram};

const EXPERIMENTS: u64 = 1000;
const BLOCKS: usize = 15;
const EFFECTS: [f64; 4] = [0.0, 0.003, 0.01, 0.05];

fn measure(program: &mut SyntheticProgram, blocks: usize) -> PairedBlocks {
    let runs: Vec<_> = (0..blocks).map(|_| program.block()).collect();
    PairedBlocks::from_runs(&runs).unwrap()
}

/// The share of experiments for which `holds` is true of the blocks and the true ratio.
fn share(disturbance: Disturbance, holds: impl Fn(&PairedBlocks, f64, Seed) -> bool) -> f64 {
    let seed = Seed(2026).part(disturbance as u64);
    let held = (0..EXPERIMENTS).filter(|&experiment| {
        let effect = EFFECTS[experiment as usize % EFFECTS.len()];
        let mut program = SyntheticProgram::new(effect, disturbance, seed.part(experiment));
        let truth = program.true_ratio();
        holds(&measure(&mut program, BLOCKS), truth, seed.part(experiment + EXPERIMENTS))
    });
    held.count() as f64 / EXPERIMENTS as f64
}

#[test]
fn the_paired_t_interval_covers_the_truth() {
    for disturbance in Disturbance::ALL {
        let covered =
            share(disturbance, |blocks, truth, _| blocks.ratio(0.95).unwrap().interval.contains(truth));
        assert!((0.93..=0.97).contains(&covered), "{}: {covered}", disturbance.name());
    }
}

#[test]
fn the_block_bootstrap_covers_the_truth() {
    for disturbance in Disturbance::ALL {
        let covered = share(disturbance, |blocks, truth, seed| {
            let plan = Resampling { resamples: 1000, seed, ..Resampling::default() };
            blocks.ratio_of_totals(&plan).unwrap().interval.contains(truth)
        });
        assert!((0.93..=0.97).contains(&covered), "{}: {covered}", disturbance.name());
    }
}

#[test]
fn two_equal_programs_raise_few_alarms_although_the_run_stops_by_width() {
    let stop = WidthStop { first_look: 10, target_width: 0.015, level: 0.95 };
    for disturbance in Disturbance::ALL {
        let seed = Seed(7).part(disturbance as u64);
        let alarms = (0..EXPERIMENTS).filter(|&experiment| {
            let mut program = SyntheticProgram::new(0.0, disturbance, seed.part(experiment));
            let mut runs = Vec::new();
            let blocks = loop {
                runs.push(program.block());
                let blocks = PairedBlocks::from_runs(&runs).unwrap();
                if stop.is_reached(&blocks).unwrap() || runs.len() == 60 {
                    break blocks;
                }
            };
            !stop.estimate(&blocks).unwrap().interval.contains(1.0)
        });
        let rate = alarms.count() as f64 / EXPERIMENTS as f64;
        assert!(rate <= 0.05, "{}: {rate}", disturbance.name());
    }
}
