//! Variables that deserve an immediate value. That is left to the user.

use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task, per_call};
use crate::proposal::{Advice, IMMEDIATE_VALUE, ImmediateAdvice, LoadsPerCall};
use crate::usage::Usage;
use lineup_model::types::Types;
use lineup_model::usage::{Owner, VariableRef, VariableUse};
use std::collections::BTreeMap;

/// An instruction carries at most this many bytes of a value.
const LARGEST_BYTES: u64 = 8;

/// Variables of Linux that interrupts and the scheduler write all the time, though hardly in recorded calls: clocks and
/// variables with the current task and CPU.
const CHANGES_OFTEN: [&str; 9] = [
    "jiffies",
    "jiffies_64",
    "current_task",
    "pcpu_hot",
    "this_cpu_off",
    "cpu_number",
    "__preempt_count",
    "tk_core",
    "jiffies_seq",
];

/// Scalar-sized variables that regions load and that no thread was seen to write.
pub(crate) struct Immediates;

impl FixKind for Immediates {
    fn name(&self) -> KindName {
        IMMEDIATE_VALUE
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        advice.immediates.extend(immediates(task.usage, task.types));
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.immediates.iter().map(describe).collect()
    }
}

/// Each variable once, with the regions that load it.
fn immediates(usage: &Usage, types: &Types) -> Vec<ImmediateAdvice> {
    let mut found: BTreeMap<&VariableRef, Vec<LoadsPerCall>> = BTreeMap::new();
    for used in &usage.variables {
        let Some(region) = usage.regions.get(used.region).filter(|_| usage.scale(used.region).may_miss())
        else {
            continue;
        };
        for (variable, loads) in loads(used) {
            let loads_per_call = loads as f64 / used.calls.max(1) as f64;
            found
                .entry(variable)
                .or_default()
                .push(LoadsPerCall { region: region.name.clone(), loads_per_call });
        }
    }
    found.retain(|variable, _| {
        variable.size_bytes <= LARGEST_BYTES
            && !is_aggregate(usage, types, variable)
            && !is_written(usage, variable)
            && !usage.is_per_cpu(variable)
            && !CHANGES_OFTEN.contains(&variable.name.as_str())
    });
    let advice = |(variable, loads): (&VariableRef, Vec<LoadsPerCall>)| ImmediateAdvice {
        variable: variable.name.clone(),
        loads,
        size_bytes: variable.size_bytes,
    };
    found.into_iter().map(advice).collect()
}

/// Loads of each variable over all calls of a region.
fn loads(used: &VariableUse) -> BTreeMap<&VariableRef, u64> {
    let mut sums: BTreeMap<&VariableRef, u64> = BTreeMap::new();
    for (variable, bytes) in used.patterns.iter().flat_map(|pattern| &pattern.variables) {
        let loads = bytes.iter().fold(0u64, |sum, bytes| sum.saturating_add(bytes.loads));
        let sum = sums.entry(variable).or_default();
        *sum = sum.saturating_add(loads);
    }
    sums
}

fn is_written(usage: &Usage, variable: &VariableRef) -> bool {
    let by_threads = usage
        .sharing
        .iter()
        .any(|sharing| sharing.owner == Owner::Variable(variable.clone()) && !sharing.writers.is_empty());
    let in_regions = usage.variables.iter().flat_map(|used| &used.patterns).any(|pattern| {
        let of_variable = pattern.variables.iter().filter(|(known, _)| known == variable);
        of_variable.flat_map(|(_, bytes)| bytes).any(|bytes| bytes.stores > 0)
    });
    by_threads || in_regions
}

fn is_aggregate(usage: &Usage, types: &Types, variable: &VariableRef) -> bool {
    let mut known = usage.variable_types.iter().filter(|known| known.variable == *variable);
    known.any(|known| types.aggregate(known.ty).is_some())
}

fn describe(one: &ImmediateAdvice) -> Description {
    let loads: Vec<String> = (one.loads.iter())
        .map(|loads| format!("{} loads it {} times per call", loads.region, per_call(loads.loads_per_call)))
        .collect();
    let summary = format!(
        "{}; no recorded call writes it: it could be part of the instructions (size {} B).",
        loads.join(", "),
        one.size_bytes
    );
    Description::told(IMMEDIATE_VALUE, &one.variable, summary)
}
