//! A synthetic program whose true effect is known, to validate estimators.
//!
//! Every disturbance multiplies both variants alike, so that the true ratio of means, of medians and of
//! geometric means are all the same number.

use crate::interval::normal_quantile;
use crate::random::Seed;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// A disturbance of the synthetic program in addition to plain noise.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Disturbance {
    /// Nothing more.
    Plain,
    /// Every run costs 0.1 % more than the run before, as on a machine that heats up, and the cost
    /// wanders (first-order autoregression).
    Drift,
    /// A neighbour on the same machine comes and goes: the cost wanders slowly by several per cent
    /// (first-order autoregression), without a trend.
    Neighbour,
    /// Three runs in ten cost 4 % more: a second mode.
    TwoModes,
    /// One run in ten is hit by a delay with a Pareto tail (shape 2.5: finite variance, infinite
    /// skewness).
    HeavyTail,
}

impl Disturbance {
    /// All of them.
    pub const ALL: [Disturbance; 5] = [
        Disturbance::Plain,
        Disturbance::Drift,
        Disturbance::Neighbour,
        Disturbance::TwoModes,
        Disturbance::HeavyTail,
    ];

    /// The disturbance in a few words.
    pub fn name(self) -> &'static str {
        match self {
            Disturbance::Plain => "plain noise",
            Disturbance::Drift => "drift",
            Disturbance::Neighbour => "neighbour",
            Disturbance::TwoModes => "two modes",
            Disturbance::HeavyTail => "heavy tail",
        }
    }
}

/// A synthetic program in two variants.
#[derive(Clone, Debug)]
pub struct SyntheticProgram {
    effect: f64,
    disturbance: Disturbance,
    random: ChaCha8Rng,
    runs: u32,
    wander: f64,
}

/// Standard deviation of the plain noise of one run, as a share of its cost.
const NOISE: f64 = 0.01;

impl SyntheticProgram {
    /// A program whose second variant costs 1 + `effect` times its first.
    pub fn new(effect: f64, disturbance: Disturbance, seed: Seed) -> Self {
        Self { effect, disturbance, random: seed.generator(), runs: 0, wander: 0.0 }
    }

    /// The true ratio of the costs.
    pub fn true_ratio(&self) -> f64 {
        1.0 + self.effect
    }

    /// The cost of the next run in seconds, of the second variant when `after`.
    pub fn run(&mut self, after: bool) -> f64 {
        let noise = NOISE * self.normal();
        let disturbed = noise + self.disturbance();
        self.runs = self.runs.saturating_add(1);
        disturbed.exp() * if after { self.true_ratio() } else { 1.0 }
    }

    /// One mirrored block: before, after, after, before.
    pub fn block(&mut self) -> (Vec<f64>, Vec<f64>) {
        let (first, second) = (self.run(false), self.run(true));
        let (third, fourth) = (self.run(true), self.run(false));
        (vec![first, fourth], vec![second, third])
    }

    /// ln of the factor by which this run is disturbed.
    fn disturbance(&mut self) -> f64 {
        match self.disturbance {
            Disturbance::Plain => 0.0,
            Disturbance::Drift => {
                self.wander = 0.8 * self.wander + 0.005 * self.normal();
                self.wander + 0.001 * f64::from(self.runs)
            }
            Disturbance::Neighbour => {
                self.wander = 0.95 * self.wander + 0.01 * self.normal();
                self.wander
            }
            Disturbance::TwoModes => {
                if self.random.random_bool(0.3) {
                    0.04
                } else {
                    0.0
                }
            }
            Disturbance::HeavyTail => {
                let hit = self.random.random_bool(0.1);
                let tail = 0.02 * self.uniform().powf(-1.0 / 2.5);
                if hit { tail.ln_1p() } else { 0.0 }
            }
        }
    }

    fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }

    /// Uniform on the open interval (0, 1).
    fn uniform(&mut self) -> f64 {
        (self.random.random::<f64>()).clamp(1e-16, 1.0 - 1e-16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::mean;

    #[test]
    fn the_variants_differ_by_the_stated_effect() {
        for disturbance in [Disturbance::Plain, Disturbance::TwoModes, Disturbance::HeavyTail] {
            let mut program = SyntheticProgram::new(0.05, disturbance, Seed(1));
            let before: Vec<f64> = (0..20_000).map(|_| program.run(false)).collect();
            let after: Vec<f64> = (0..20_000).map(|_| program.run(true)).collect();
            let ratio = mean(&after) / mean(&before);
            assert!((ratio - 1.05).abs() < 0.002, "{}: {ratio}", disturbance.name());
        }
    }

    #[test]
    fn drift_makes_later_runs_cost_more() {
        let mut program = SyntheticProgram::new(0.0, Disturbance::Drift, Seed(1));
        let runs: Vec<f64> = (0..400).map(|_| program.run(false)).collect();
        assert!(mean(&runs[200..]) > 1.1 * mean(&runs[..200]));
    }
}
