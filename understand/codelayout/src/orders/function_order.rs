//! An order of functions: functions that call each other often lie together, the densest first.
//!
//! The algorithm is call-chain clustering (C3) of Ottoni and Maher, "Optimizing Function Placement for Large-Scale
//! Data-Center Applications", CGO 2017: each function, the hottest first, is put behind the cluster of its most
//! frequent caller. Clusters stay below a page's reach and may not get much colder by it.

use crate::code::Code;
use crate::flow::function::Function;
use std::collections::BTreeMap;

/// The upper limit of a cluster's bytes of code: a large page would hold some of them.
const MOST_CLUSTER_BYTES: u64 = 1 << 20;
/// A cluster's density falls to no less than this part by taking another in.
const LEAST_DENSITY: f64 = 1.0 / 8.0;
/// A caller that makes less than this share of a function's calls does not draw it near.
const LEAST_SHARE: f64 = 0.1;

/// Calls from one function to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallCount {
    /// The caller, by its number among the code's functions.
    pub caller: usize,
    /// The callee.
    pub callee: usize,
    /// Times.
    pub times: u64,
}

impl Code<'_> {
    /// Calls, and jumps from one to another, between the functions of the file, if instructions name the target.
    pub fn call_counts(&self) -> Vec<CallCount> {
        let mut counts: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for (caller, function) in self.functions.iter().enumerate() {
            for call in &function.calls {
                if let Some(callee) = self.function_at(call.target).filter(|callee| *callee != caller) {
                    *counts.entry((caller, callee)).or_default() += call.times;
                }
            }
        }
        let count = |((caller, callee), times)| CallCount { caller, callee, times };
        counts.into_iter().map(count).collect()
    }

    fn function_at(&self, address: u64) -> Option<usize> {
        let after = self.functions.partition_point(|function| function.addresses.start <= address);
        let last = after.checked_sub(1)?;
        self.functions[last].addresses.contains(&address).then_some(last)
    }

    /// The functions that were executed, in an order that puts callers and callees together.
    pub fn order(&self) -> Vec<&Function> {
        let order = clustered(&self.functions, &self.call_counts());
        order.into_iter().filter_map(|number| self.functions.get(number)).collect()
    }
}

struct Cluster {
    functions: Vec<usize>,
    bytes: u64,
    instructions: u64,
}

impl Cluster {
    fn density(&self) -> f64 {
        self.instructions as f64 / self.bytes.max(1) as f64
    }
}

fn clustered(functions: &[Function], calls: &[CallCount]) -> Vec<usize> {
    let bytes = |function: &Function| function.addresses.end - function.addresses.start;
    let mut clusters: Vec<Cluster> = functions
        .iter()
        .enumerate()
        .map(|(number, function)| Cluster {
            functions: vec![number],
            bytes: bytes(function),
            instructions: function.instructions,
        })
        .collect();
    let mut cluster_of: Vec<usize> = (0..functions.len()).collect();
    let mut by_heat = cluster_of.clone();
    by_heat.sort_by(|a, b| clusters[*b].density().total_cmp(&clusters[*a].density()));
    let callers = callers(functions, calls);
    for number in by_heat {
        let Some(caller) = callers[number] else { continue };
        let (into, from) = (cluster_of[caller], cluster_of[number]);
        // The order within a cluster does not change.
        if into == from || clusters[from].functions.first() != Some(&number) {
            continue;
        }
        let merged_bytes = clusters[into].bytes + clusters[from].bytes;
        let merged =
            (clusters[into].instructions + clusters[from].instructions) as f64 / merged_bytes.max(1) as f64;
        if merged_bytes > MOST_CLUSTER_BYTES || merged < clusters[into].density() * LEAST_DENSITY {
            continue;
        }
        let taken =
            std::mem::replace(&mut clusters[from], Cluster { functions: vec![], bytes: 0, instructions: 0 });
        taken.functions.iter().for_each(|function| cluster_of[*function] = into);
        clusters[into].functions.extend(taken.functions);
        clusters[into].bytes = merged_bytes;
        clusters[into].instructions += taken.instructions;
    }
    clusters.sort_by(|a, b| b.density().total_cmp(&a.density()));
    clusters.into_iter().flat_map(|cluster| cluster.functions).collect()
}

/// Each function's most frequent caller.
fn callers(functions: &[Function], calls: &[CallCount]) -> Vec<Option<usize>> {
    let mut best: Vec<Option<&CallCount>> = vec![None; functions.len()];
    for call in calls {
        let is_share = call.times as f64 >= functions[call.callee].entries as f64 * LEAST_SHARE;
        if is_share && best[call.callee].is_none_or(|best| best.times < call.times) {
            best[call.callee] = Some(call);
        }
    }
    best.into_iter().map(|call| call.map(|call| call.caller)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(start: u64, instructions: u64, entries: u64) -> Function {
        Function {
            name: String::new(),
            addresses: start..start + 0x100,
            executed: Vec::new(),
            entries,
            instructions,
            edges: Vec::new(),
            calls: Vec::new(),
        }
    }

    fn calls(of: &[(usize, usize, u64)]) -> Vec<CallCount> {
        of.iter()
            .map(|(caller, callee, times)| CallCount { caller: *caller, callee: *callee, times: *times })
            .collect()
    }

    #[test]
    fn a_callee_follows_its_most_frequent_caller_and_the_densest_come_first() {
        let functions = [
            function(0, 10, 1),
            function(0x100, 9000, 100),
            function(0x200, 500, 2),
            function(0x300, 8000, 90),
        ];
        // 1 calls 3, and 0 calls 3 and 2 now and then.
        let calls = calls(&[(0, 2, 2), (0, 3, 1), (1, 3, 89)]);
        assert_eq!(clustered(&functions, &calls), [1, 3, 0, 2]);
    }

    #[test]
    fn a_rare_caller_and_a_ring_of_calls_change_nothing() {
        let functions = [function(0, 900, 10), function(0x100, 800, 100)];
        assert_eq!(clustered(&functions, &calls(&[(0, 1, 9)])), [0, 1]);
        assert_eq!(clustered(&functions, &calls(&[(1, 0, 9), (0, 1, 90)])), [1, 0]);
        assert_eq!(clustered(&[], &[]), [0usize; 0]);
    }

    #[test]
    fn a_cold_caller_takes_a_hot_callee_in_and_a_hot_caller_no_cold_one() {
        let mut cold = function(0x100, 1, 1);
        cold.addresses.end += 0x10000;
        let functions = [function(0, 90_000, 10), cold];
        assert_eq!(clustered(&functions, &calls(&[(0, 1, 1)])), [0, 1]);
    }
}
