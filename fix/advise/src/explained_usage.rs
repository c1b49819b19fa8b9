//! Usage from the results of `explain`.

use crate::usage::{Scale, TypedVariable, Usage};
use lineup_explain::Explained;
use lineup_explain::explanation::{ImageUsage, RegionExplanation};
use lineup_model::usage::{VariableRef, VariableUse};
use std::collections::HashSet;

impl Usage {
    /// Uses of the program's own types and variables by the recorded regions.
    pub fn of_explained(explained: &Explained) -> Usage {
        let own = explained.own_usage();
        let between = explained.explanation.between.as_ref();
        let typed = |(variable, ty): &(VariableRef, _)| TypedVariable { variable: variable.clone(), ty: *ty };
        Usage {
            abi: explained.abi(),
            threads: explained.explanation.threads,
            regions: explained.survey.header.regions.clone(),
            scales: explained
                .explanation
                .regions
                .iter()
                .map(|region| (region.id, scale(explained, region)))
                .collect(),
            types: own.map(|own| own.types.clone()).unwrap_or_default(),
            variables: own.map(described_variables).unwrap_or_default(),
            sharing: own.map(|own| own.sharing.clone()).unwrap_or_default(),
            memory: own.and_then(|own| own.memory.clone()),
            thread_uses: own.map(|own| own.thread_uses.clone()).unwrap_or_default(),
            fought_over: own.map(|own| own.fought_over.clone()).unwrap_or_default(),
            fought_variables: own.map(|own| own.fought_variables.clone()).unwrap_or_default(),
            counters: between.map(|between| between.counters.clone()).unwrap_or_default(),
            counters_of: between.map(|between| between.of).unwrap_or_default(),
            locks: own.map(|own| own.locks.clone()).unwrap_or_default(),
            elsewhere: own.and_then(|own| own.elsewhere.clone()),
            aligned_uses: own.map(|own| own.aligned_uses.clone()).unwrap_or_default(),
            slabs: own.map(|own| own.slabs.iter().copied().collect()).unwrap_or_default(),
            variable_types: own.into_iter().flat_map(|own| &own.variable_types).map(typed).collect(),
            stack_types: explained.stack_types(),
            per_cpu: explained.per_cpu(),
        }
    }
}

/// The total needs of a region's calls.
fn scale(explained: &Explained, region: &RegionExplanation) -> Scale {
    let lines = |bytes: u64| {
        let of_size = region.lines.iter().find(|lines| lines.line_bytes == bytes)?;
        Some(of_size.data.as_ref()?.mean)
    };
    let data_lines = || Some([lines(32)?, lines(64)?, lines(128)?]);
    let most_pressed = region.misses.iter().max_by_key(|misses| misses.pressure_bytes);
    Scale {
        data_lines: data_lines(),
        data_misses: most_pressed.map(|misses| misses.misses_per_call),
        stalls: explained.survey.stalls.of_region(usize::from(region.id.0)),
        calls_per_second: region.calls_per_second,
    }
}

/// Uses by regions of the variables that debug info describes. A variable that is known by its symbol alone has no type
/// and no source to edit.
fn described_variables(own: &ImageUsage) -> Vec<VariableUse> {
    let described: HashSet<&VariableRef> = own.variable_types.iter().map(|(variable, _)| variable).collect();
    let mut uses = own.variables.clone();
    for used in &mut uses {
        for pattern in &mut used.patterns {
            pattern.variables.retain(|(variable, _)| described.contains(variable));
        }
        used.patterns.retain(|pattern| !pattern.variables.is_empty());
    }
    uses.retain(|used| !used.patterns.is_empty());
    uses
}
