//! An ideal fair scheduler's CPU time for each group: all CPUs divided at every moment among the runnable
//! tasks, group by group in proportion to weights, no task getting more than one CPU.
//!
//! Sampled at ticks, with the tasks that are runnable then in the run being simulated.

use super::state::{Behaviour, GroupState};
use crate::scenario::{ROOT, Scenario, Topology};
use crate::weights::{NICE_0_WEIGHT, nice_weight};

/// One claim on a group's CPUs: a set of like tasks, or a group below.
#[derive(Clone, Copy)]
enum Claim {
    Tasks { set: usize, weight: f64 },
    Group(usize),
}

pub(super) struct Ideal {
    /// Each group's claims, in the order of groups.
    claims: Vec<Vec<Claim>>,
    parents: Vec<usize>,
    shares: Vec<f64>,
    /// Runnable tasks in each group and below, of this sample.
    demand: Vec<f64>,
    /// CPUs each group gets, of this sample.
    given: Vec<f64>,
    weighed: Vec<Weighed>,
    pub(super) group_ns: Vec<f64>,
}

/// A claim with the figures that division needs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Weighed {
    weight: f64,
    /// The most CPUs it can use.
    most: f64,
    given: f64,
}

impl Ideal {
    /// `order` lists the scenario's groups as `groups` does after the root.
    pub(super) fn new(scenario: &Scenario, order: &[usize], groups: &[GroupState]) -> Self {
        let mut claims = vec![Vec::new(); groups.len()];
        let mut next_group = 1;
        let mut set = 0;
        for &at in order {
            let group = if scenario.groups[at].name == ROOT { 0 } else { next_group };
            next_group += usize::from(group != 0);
            for tasks in &scenario.groups[at].tasks {
                let weight = nice_weight(tasks.nice).unwrap_or(NICE_0_WEIGHT) as f64;
                claims[group].push(Claim::Tasks { set, weight });
                set += 1;
            }
        }
        for (group, state) in groups.iter().enumerate().skip(1) {
            claims[state.parent as usize].push(Claim::Group(group));
        }
        let unit = f64::from(1_u32 << scenario.resolution.bits());
        Self {
            claims,
            parents: groups.iter().map(|group| group.parent as usize).collect(),
            shares: groups.iter().map(|group| group.shares as f64 / unit).collect(),
            demand: vec![0.0; groups.len()],
            given: vec![0.0; groups.len()],
            weighed: Vec::new(),
            group_ns: vec![0.0; groups.len()],
        }
    }

    pub(super) fn start_over(&mut self) {
        self.group_ns.fill(0.0);
    }

    /// Accounts for `span_ns` with the tasks that are runnable now.
    pub(super) fn sample(&mut self, sets: &[Behaviour], topology: &Topology, span_ns: u64) {
        for group in (0..self.claims.len()).rev() {
            let own: u32 = self.claims[group]
                .iter()
                .map(|claim| if let Claim::Tasks { set, .. } = claim { sets[*set].runnable } else { 0 })
                .sum();
            self.demand[group] += f64::from(own);
            if group > 0 {
                self.demand[self.parents[group]] += self.demand[group];
            }
        }
        self.given[0] = self.demand[0].min(topology.cpus as f64);
        for group in 0..self.claims.len() {
            self.give(group, sets);
            self.group_ns[group] += self.given[group] * span_ns as f64;
        }
        self.demand.fill(0.0);
    }

    fn give(&mut self, group: usize, sets: &[Behaviour]) {
        self.weighed.clear();
        for claim in &self.claims[group] {
            let (weight, most) = match *claim {
                Claim::Tasks { set, weight } => {
                    let runnable = f64::from(sets[set].runnable);
                    (weight * runnable, runnable)
                }
                Claim::Group(below) => (self.shares[below], self.demand[below]),
            };
            self.weighed.push(Weighed { weight, most, given: 0.0 });
        }
        divide(self.given[group], &mut self.weighed);
        for (claim, weighed) in self.claims[group].iter().zip(&self.weighed) {
            if let Claim::Group(below) = claim {
                self.given[*below] = weighed.given;
            }
        }
    }
}

/// Divides `cpus` in proportion to weights; the part that one cannot use goes to the others in proportion.
fn divide(cpus: f64, claims: &mut [Weighed]) {
    let mut left = cpus;
    loop {
        let open = |claim: &&mut Weighed| claim.given < claim.most;
        let weight: f64 = claims.iter_mut().filter(open).map(|claim| claim.weight).sum();
        if weight <= 0.0 || left <= 0.0 {
            return;
        }
        let mut filled = false;
        let per_weight = left / weight;
        for claim in claims.iter_mut().filter(open).filter(|claim| claim.weight * per_weight >= claim.most) {
            claim.given = claim.most;
            left -= claim.most;
            filled = true;
        }
        if !filled {
            claims.iter_mut().filter(open).for_each(|claim| claim.given = claim.weight * per_weight);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(cpus: f64, claims: &[(f64, f64)]) -> Vec<f64> {
        let mut claims: Vec<_> =
            claims.iter().map(|&(weight, most)| Weighed { weight, most, given: 0.0 }).collect();
        divide(cpus, &mut claims);
        claims.iter().map(|claim| claim.given).collect()
    }

    #[test]
    fn division_is_by_weight_and_capped_by_demand() {
        assert_eq!(given(4.0, &[(1.0, 9.0), (3.0, 9.0)]), [1.0, 3.0]);
        assert_eq!(given(4.0, &[(1.0, 9.0), (3.0, 2.0)]), [2.0, 2.0]);
        assert_eq!(given(4.0, &[(1.0, 0.0), (3.0, 1.0)]), [0.0, 1.0]);
        // 1, 1 and 2 of weight, of which the heaviest can use half a CPU only.
        assert_eq!(given(2.0, &[(1.0, 5.0), (1.0, 5.0), (2.0, 0.5)]), [0.75, 0.75, 0.5]);
    }
}
