//! Conditional branches, and the source places that their sides lead to.

use super::descriptions::{Descriptions, copies_at};
use crate::code::Code;
use crate::flow::block_graph::{Block, Ends, graph};
use crate::flow::edge_counts::EdgeCounts;
use crate::flow::edge_solver::Taken;
use crate::flow::function::Function;
use iced_x86::{Decoder, DecoderOptions, FlowControl};
use lineup_debuginfo::DebugInfo;
use lineup_model::branch::{Branch, Side, SourcePosition};
use lineup_model::program::Function as Described;

/// Instructions that are looked at on each side of a branch.
const MOST_NEXT: usize = 16;
/// Jumps that are followed there.
const MOST_JUMPS: usize = 2;

/// The branches of all functions that were executed and that debug information describes.
pub(super) fn branches(code: &Code<'_>, described: &Descriptions) -> Vec<Branch> {
    code.functions.iter().flat_map(|function| of_function(code, described, function)).collect()
}

fn of_function(code: &Code<'_>, described: &Descriptions, function: &Function) -> Vec<Branch> {
    let data = |range| code.debug.code(range);
    let bytes = code.debug.code(function.addresses.clone());
    let Some(graph) = bytes.and_then(|bytes| graph(&function.addresses, bytes, &code.executed, &data)) else {
        return Vec::new();
    };
    let ways = EdgeCounts::of(&graph);
    let taken = ways.taken(&graph);
    let mut branches = Vec::new();
    for (number, block) in graph.blocks.iter().enumerate().filter(|(_, block)| block.executions > 0) {
        let Ends::Branches { target } = block.ends else { continue };
        let mut own = ways.wanted.iter().zip(&taken).filter(|(wanted, _)| wanted.from == Some(number));
        // The edges of a branch are made in this order: taken, not taken.
        let (Some((_, jumps)), Some((_, falls))) = (own.next(), own.next()) else { continue };
        let counts = [*jumps, *falls];
        branches.extend(branch(code.debug, described, function, block, target, counts));
    }
    branches
}

fn branch(
    debug: &DebugInfo,
    described: &Descriptions,
    function: &Function,
    block: &Block,
    target: u64,
    counts: [Taken; 2],
) -> Option<Branch> {
    let row = debug.code_line_of(block.last)?;
    let frame = Frame {
        debug,
        described,
        function: described.at(block.last)?,
        copies: copies_at(described.at(block.last)?, block.last),
        file: &row.at.file,
    };
    let side = |start: u64, taken: Taken| Side { times: taken.times, places: frame.places(start) };
    Some(Branch {
        function: function.name.clone(),
        file: row.at.file.to_string(),
        place: place(row.at.line, row.column),
        sides: [side(target, counts[0]), side(block.addresses.end, counts[1])],
        is_estimated: counts.iter().any(|taken| taken.is_estimated),
    })
}

fn place(line: u32, column: u32) -> SourcePosition {
    SourcePosition { line, column: (column > 0).then_some(column) }
}

/// The place of a branch: a function, and within it an inlined copy.
struct Frame<'f> {
    debug: &'f DebugInfo,
    described: &'f Descriptions,
    function: &'f Described,
    copies: Vec<usize>,
    file: &'f str,
}

impl Frame<'_> {
    /// The source places in the frame of the instructions from `start` on, as far as they are executed one after the
    /// other.
    fn places(&self, start: u64) -> Vec<SourcePosition> {
        let mut places: Vec<SourcePosition> =
            straight(self.debug, start).into_iter().filter_map(|at| self.place_of(at)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }

    /// The source place of an instruction. For inlined code it is the place of the call.
    fn place_of(&self, address: u64) -> Option<SourcePosition> {
        let function = self.described.at(address).filter(|one| std::ptr::eq(*one, self.function))?;
        let own = copies_at(function, address);
        let (shared, inner) = own.split_at_checked(self.copies.len())?;
        if shared != self.copies {
            return None;
        }
        if let Some(called) = inner.first() {
            let at = function.inlined.get(*called)?.called_at.as_ref()?;
            return (*at.file == *self.file).then(|| place(at.line, 0));
        }
        let row = self.debug.code_line_of(address)?;
        (*row.at.file == *self.file).then(|| place(row.at.line, row.column))
    }
}

/// Addresses of the instructions from `start` on, up to the first that may lead elsewhere.
fn straight(debug: &DebugInfo, start: u64) -> Vec<u64> {
    let mut all = Vec::new();
    let mut next = Some(start);
    for _ in 0..=MOST_JUMPS {
        let Some(from) = next.take() else { break };
        let end = debug.symbol_at(from).map(|symbol| symbol.address.saturating_add(symbol.size_bytes));
        let Some(bytes) = end.and_then(|end| debug.code(from..end)) else { break };
        for instruction in Decoder::with_ip(64, bytes, from, DecoderOptions::NONE) {
            if instruction.is_invalid() || all.len() == MOST_NEXT {
                return all;
            }
            all.push(instruction.ip());
            match instruction.flow_control() {
                FlowControl::Next => {}
                FlowControl::UnconditionalBranch => {
                    next = Some(instruction.near_branch_target());
                    break;
                }
                _ => return all,
            }
        }
    }
    all
}
