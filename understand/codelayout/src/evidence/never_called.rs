//! Functions that were never executed though functions that were hold calls of them.

use super::descriptions::{Descriptions, is_executed};
use crate::code::Code;
use crate::flow::block_graph::{Ends, Graph, decoded, graph};
use crate::flow::edge_counts::EdgeCounts;
use crate::flow::function::Function;
use lineup_debuginfo::Region;
use lineup_model::branch::NeverCalled;
use lineup_model::program::SymbolKind;
use std::collections::{BTreeMap, BTreeSet};

/// A function that was not executed, by its address: the functions that hold calls of it, and the number of times that
/// their branches went another way.
type Passed<'c> = BTreeMap<u64, (BTreeSet<&'c str>, u64)>;

/// Such functions, with most branches that went another way first.
pub(super) fn never_called(code: &Code<'_>, described: &Descriptions) -> Vec<NeverCalled> {
    let mut passed = Passed::new();
    for function in &code.functions {
        add_passed(code, function, &mut passed);
    }
    // A function that was inlined or cloned and executed elsewhere is not cold.
    let executed: BTreeSet<&str> = described
        .functions
        .iter()
        .flat_map(|function| {
            let inlined = function
                .inlined
                .iter()
                .filter(|copy| copy.ranges.iter().any(|range| is_executed(&code.executed, range)));
            inlined.map(|copy| copy.name.as_str()).chain([function.name.as_str()])
        })
        .collect();
    let own = Descriptions::of(code.debug, &mut passed.keys().copied());
    let mut all: Vec<NeverCalled> = passed
        .into_iter()
        .filter_map(|(address, (callers, decisions))| {
            let function = own.at(address).filter(|one| one.entry() == Some(address))?;
            let is_seen = executed.contains(function.name.as_str());
            Some(NeverCalled {
                function: function.name.clone(),
                defined_at: function.declared_at.clone().filter(|_| !is_seen)?,
                callers: callers.into_iter().map(str::to_owned).collect(),
                decisions,
            })
        })
        .collect();
    all.sort_by_key(|one| std::cmp::Reverse(one.decisions));
    all
}

/// Adds the calls of a function that were not made, of functions of which nothing was executed.
fn add_passed<'c>(code: &'c Code<'_>, function: &'c Function, passed: &mut Passed<'c>) {
    let range = &function.addresses;
    let Some(bytes) = code.debug.code(range.clone()) else { return };
    let data = |range| code.debug.code(range);
    let Some((instructions, counts)) = decoded(range, bytes, &code.executed) else { return };
    let Some(graph) = graph(range, bytes, &code.executed, &data) else { return };
    let ways = EdgeCounts::of(&graph);
    let not_made = instructions.iter().zip(counts).filter(|(one, times)| {
        let leaves = one.is_jmp_short_or_near() && !range.contains(&one.near_branch_target());
        *times == 0 && (one.is_call_near() || leaves)
    });
    let mut blocks_of: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for (instruction, _) in not_made {
        let target = instruction.near_branch_target();
        let Some(symbol) = code.debug.symbol_at(target) else { continue };
        let is_function =
            symbol.address == target && symbol.kind == SymbolKind::Function && symbol.size_bytes > 0;
        let is_code = code.debug.section_at(target).is_some_and(|section| section.region == Region::Code);
        let own = target..target.saturating_add(symbol.size_bytes);
        if is_function && is_code && !symbol.name.contains('.') && !is_executed(&code.executed, &own) {
            let block = graph.blocks.partition_point(|block| block.addresses.start <= instruction.ip());
            blocks_of.entry(target).or_default().extend(block.checked_sub(1));
        }
    }
    let mut before: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for wanted in &ways.wanted {
        if let (Some(from), Some(to)) = (wanted.from, wanted.to) {
            before.entry(to).or_default().push(from);
        }
    }
    for (target, blocks) in blocks_of {
        let decisions = decisions(&graph, &before, blocks);
        if decisions > 0 {
            let (callers, sum) = passed.entry(target).or_default();
            callers.insert(&function.name);
            *sum = sum.saturating_add(decisions);
        }
    }
}

/// The number of times that executed branches to one of these blocks went another way. Branches of a `switch` do not
/// count: a case that did not occur is another kind of work, which another run may have.
fn decisions(graph: &Graph, before: &BTreeMap<usize, Vec<usize>>, blocks: BTreeSet<usize>) -> u64 {
    let mut open: Vec<usize> = blocks.iter().copied().collect();
    let mut seen = blocks;
    let mut sum = 0u64;
    while let Some(block) = open.pop() {
        for from in before.get(&block).into_iter().flatten() {
            let Some(leads) = graph.blocks.get(*from).filter(|_| seen.insert(*from)) else { continue };
            match (leads.executions, leads.ends) {
                (0, Ends::JumpsAnywhere) => {}
                (0, _) => open.push(*from),
                (times, Ends::Branches { .. }) => sum = sum.saturating_add(times),
                _ => {}
            }
        }
    }
    sum
}
