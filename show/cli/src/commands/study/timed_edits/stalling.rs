//! The functions that stall for data, and the share of each type of object in them.

use lineup_find::{Findings, Stack};
use lineup_study::source::chases::own_name;
use std::collections::{BTreeMap, BTreeSet};

/// Functions whose loops are read, at most.
const MOST_FUNCTIONS: usize = 12;

/// A smaller share of the run's stalls is not worth a prefetch.
pub(crate) const LEAST: f64 = 0.01;

/// Where a run stalls for data.
#[derive(Clone, Default, Debug)]
pub(crate) struct Stalling {
    /// Shares of all modelled stalls by function and type of object.
    shares: BTreeMap<String, BTreeMap<String, f64>>,
    /// The types of objects.
    objects: Vec<StallingObject>,
    /// The share of code in all modelled stalls.
    code: f64,
}

/// A type of objects and its share of all modelled stalls.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct StallingObject {
    pub(crate) type_name: String,
    pub(crate) size_bytes: u64,
    pub(crate) share: f64,
}

impl Stalling {
    /// From the findings of a whole run.
    pub(crate) fn of(findings: &Findings) -> Stalling {
        let objects = findings.owners.iter().filter_map(|owner| {
            let (type_name, size_bytes) = (owner.name.clone(), owner.size_bytes?);
            Some(StallingObject { type_name, size_bytes, share: owner.share })
        });
        let objects = objects.collect();
        Stalling { objects, ..Stalling::of_stacks(&findings.stacks, findings.stalls.cycles()) }
    }

    /// True when most of the run's stalls are for code.
    pub(crate) fn is_for_code(&self) -> bool {
        self.code > 0.5
    }

    /// The types of objects.
    pub(crate) fn objects(&self) -> &[StallingObject] {
        &self.objects
    }

    fn of_stacks(stacks: &[Stack], all: u64) -> Stalling {
        let mut shares: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        let for_code = stacks.iter().filter(|stack| stack.frames.first().is_some_and(|kind| kind == "code"));
        let code = for_code.map(|stack| stack.cycles).sum::<u64>() as f64 / all.max(1) as f64;
        for stack in stacks {
            let [kind, owner, .., function] = &stack.frames[..] else { continue };
            if kind == "data" {
                let of_function = shares.entry(own_name(function).to_owned()).or_default();
                *of_function.entry(bare(owner).to_owned()).or_default() +=
                    stack.cycles as f64 / all.max(1) as f64;
            }
        }
        Stalling { shares, objects: Vec::new(), code }
    }

    /// The functions that stall most.
    pub(crate) fn functions(&self) -> BTreeSet<String> {
        let mut all: Vec<(&String, f64)> =
            self.shares.iter().map(|(name, owners)| (name, owners.values().sum())).collect();
        all.retain(|(_, share)| *share >= LEAST);
        all.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        all.into_iter().take(MOST_FUNCTIONS).map(|(name, _)| name.clone()).collect()
    }

    /// The upper bound of a prefetch: the stalls of a function for objects of a type. Where no stall anywhere has the
    /// type's name, or the objects have none, all of the function's stalls for data.
    pub(crate) fn bound(&self, function: &str, object: Option<&str>) -> f64 {
        let Some(owners) = self.shares.get(function) else { return 0.0 };
        let known = object.filter(|object| self.shares.values().any(|owners| owners.contains_key(*object)));
        match known {
            Some(object) => owners.get(object).copied().unwrap_or(0.0),
            None => owners.values().sum(),
        }
    }
}

/// A type's name without template arguments.
fn bare(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_stalls_of_the_objects_in_the_function() {
        let stack = |frames: &[&str], cycles| Stack {
            frames: frames.iter().map(|frame| (*frame).to_owned()).collect(),
            cycles,
        };
        let stacks = [
            stack(&["data", "node", "next", "list::walk(int)"], 60),
            stack(&["data", "(stack)", "list::walk(int)"], 10),
            stack(&["data", "tree", "left", "count"], 20),
            stack(&["code", "count"], 10),
        ];
        let stalling = Stalling::of_stacks(&stacks, 100);
        assert_eq!(stalling.functions(), BTreeSet::from(["walk".to_owned(), "count".to_owned()]));
        assert_eq!(stalling.bound("walk", Some("node")), 0.6);
        assert_eq!(stalling.bound("walk", Some("tree")), 0.0);
        assert!((stalling.bound("walk", None) - 0.7).abs() < 1e-9);
        assert!((stalling.bound("walk", Some("unnamed")) - 0.7).abs() < 1e-9);
        assert_eq!(stalling.bound("other", None), 0.0);
        assert!(!stalling.is_for_code() && Stalling::of_stacks(&stacks[3..], 10).is_for_code());
    }
}
