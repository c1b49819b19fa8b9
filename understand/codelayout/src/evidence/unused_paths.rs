//! Code that lies unused between code that is executed, behind conditions that always came out otherwise.

use super::descriptions::{Descriptions, copies_at};
use super::unused_copies;
use crate::code::Code;
use crate::flow::block_graph::{Block, Ends, Graph, graph};
use crate::flow::edge_counts::EdgeCounts;
use crate::flow::edge_solver::BlockEdge;
use crate::flow::function::Function;
use lineup_model::branch::UnusedPath;
use std::cmp::Reverse;
use std::ops::Range;

/// A path with fewer bytes (two lines) is not reported.
const LEAST_BYTES: u64 = 128;
/// Times that the conditions before it must have come out otherwise.
const LEAST_DECISIONS: u64 = 10_000;

/// Such paths of all functions, largest first. Inlined copies are listed separately.
pub(super) fn unused(code: &Code<'_>, described: &Descriptions) -> Vec<UnusedPath> {
    let mut all: Vec<UnusedPath> =
        code.functions.iter().flat_map(|function| of_function(code, described, function)).collect();
    all.sort_by_key(|path| Reverse(path.bytes));
    all
}

fn of_function(code: &Code<'_>, described: &Descriptions, function: &Function) -> Vec<UnusedPath> {
    let data = |range| code.debug.code(range);
    let bytes = code.debug.code(function.addresses.clone());
    let Some(graph) = bytes.and_then(|bytes| graph(&function.addresses, bytes, &code.executed, &data)) else {
        return Vec::new();
    };
    let ways = EdgeCounts::of(&graph);
    let path = |blocks: Range<usize>| {
        let (first, last) = (graph.blocks.get(blocks.start)?, graph.blocks.get(blocks.end.checked_sub(1)?)?);
        let bytes = last.addresses.end.saturating_sub(first.addresses.start);
        let (entry, decisions) = entered(&graph, &ways, &blocks)?;
        let is_told =
            bytes >= LEAST_BYTES && decisions >= LEAST_DECISIONS && !is_copy(code, described, entry);
        let at = code.debug.code_line_of(entry).filter(|_| is_told)?.at;
        Some(UnusedPath { function: function.name.clone(), at, bytes, decisions })
    };
    between(&graph.blocks).into_iter().filter_map(path).collect()
}

/// Blocks that were not executed and follow each other, with executed ones before and behind them.
fn between(blocks: &[Block]) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut begun = None;
    for (number, block) in blocks.iter().enumerate() {
        match (block.executions > 0, begun) {
            (false, None) if number > 0 => begun = Some(number),
            (true, Some(from)) => {
                all.push(from..number);
                begun = None;
            }
            _ => {}
        }
    }
    all
}

/// The number of times that executed conditions led into these blocks, and the number of times they went elsewhere.
/// `None` without such a condition, and where a `switch` leads there: a case that did not occur is other work.
fn entered(graph: &Graph, ways: &EdgeCounts, blocks: &Range<usize>) -> Option<(u64, u64)> {
    let leads = |wanted: &BlockEdge| {
        let to = wanted.to.filter(|to| blocks.contains(to))?;
        let from = graph.blocks.get(wanted.from?).filter(|from| from.executions > 0)?;
        Some((graph.blocks.get(to)?.addresses.start, from))
    };
    let mut entry = None;
    let mut decisions = 0u64;
    for (to, from) in ways.wanted.iter().filter_map(leads) {
        match from.ends {
            Ends::Branches { .. } => decisions = decisions.saturating_add(from.executions),
            Ends::JumpsAnywhere => return None,
            _ => continue,
        }
        entry = Some(entry.map_or(to, |first: u64| first.min(to)));
    }
    Some((entry?, decisions))
}

/// Whether a place lies in an inlined copy that is listed as one.
fn is_copy(code: &Code<'_>, described: &Descriptions, at: u64) -> bool {
    let Some(function) = described.at(at) else { return false };
    let mut own = copies_at(function, at).into_iter().filter_map(|copy| function.inlined.get(copy));
    own.any(|copy| unused_copies::is_unused(code, copy))
}
