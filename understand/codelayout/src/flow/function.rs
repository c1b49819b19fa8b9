//! The executed blocks of a function and the counts of the edges between them.

use crate::execution_counts::Executed;
use crate::flow::block_graph::{Call, Ends, graph};
use crate::flow::edge_counts::EdgeCounts;
use crate::flow::edge_solver::Taken;
use std::ops::Range;

/// A function of which some was executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its symbol.
    pub name: String,
    /// Link addresses.
    pub addresses: Range<u64>,
    /// The parts that were executed, by link address.
    pub executed: Vec<Range<u64>>,
    /// Times it was entered at its beginning.
    pub entries: u64,
    /// Instructions executed in it.
    pub instructions: u64,
    /// EdgeCounts from block to block within it, and out of it by a jump, by address.
    pub edges: Vec<Edge>,
    /// Calls of places that the instructions name, by address.
    pub calls: Vec<Arc>,
}

/// A way from one block to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Link address of the block's last instruction.
    pub from: u64,
    /// Link address of the first instruction of the next.
    pub to: u64,
    /// Its count.
    pub taken: Taken,
    /// The end of the first block.
    pub way: Way,
}

/// The way one block leads to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// It has no jump: the next follows.
    Next,
    /// It ends with a branch or jump whose target the instruction names, taken or not.
    Named,
    /// It ends with a jump to a place that only the running program knows, as a `switch` does.
    Anywhere,
}

/// A call from one place to another, or a jump that leaves a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arc {
    /// Link address of the instruction.
    pub from: u64,
    /// Link address that it goes to.
    pub target: u64,
    /// Times.
    pub times: u64,
}

/// The function in `addresses`. `None` when its bytes are not all instructions. `data` gives the file's bytes at link
/// addresses.
pub(crate) fn function<'d>(
    name: &str,
    addresses: Range<u64>,
    executed: &Executed,
    data: &dyn Fn(Range<u64>) -> Option<&'d [u8]>,
) -> Option<Function> {
    let graph = graph(&addresses, data(addresses.clone())?, executed, data)?;
    let ways = EdgeCounts::of(&graph);
    let taken = ways.taken(&graph);
    let entries = ways.entries(&taken);
    let mut function = Function {
        name: name.to_owned(),
        executed: executed.ranges_in(&addresses),
        instructions: graph.blocks.iter().map(|block| block.instructions * block.executions).sum(),
        addresses,
        entries,
        edges: Vec::new(),
        calls: graph
            .calls
            .iter()
            .map(|Call { from, target, times }| Arc { from: *from, target: *target, times: *times })
            .collect(),
    };
    for (wanted, taken) in ways.wanted.iter().zip(taken).filter(|(_, taken)| taken.times > 0) {
        let Some(from) = wanted.from.and_then(|number| graph.blocks.get(number)) else { continue };
        match (wanted.to.and_then(|number| graph.blocks.get(number)), from.ends) {
            // Only the count distinguishes these blocks.
            (Some(to), Ends::Falls) if !to.is_reached => (),
            (Some(to), ends) => {
                function.edges.push(Edge { from: from.last, to: to.addresses.start, taken, way: way(ends) })
            }
            (None, Ends::Branches { target } | Ends::Jumps { target }) => {
                function.calls.push(Arc { from: from.last, target, times: taken.times });
            }
            (None, _) => (),
        }
    }
    function.edges.sort_unstable_by_key(|edge| (edge.from, edge.to));
    function.calls.sort_unstable_by_key(|call| (call.from, call.target));
    Some(function)
}

fn way(ends: Ends) -> Way {
    match ends {
        Ends::Falls | Ends::Leaves => Way::Next,
        Ends::Branches { .. } | Ends::Jumps { .. } => Way::Named,
        Ends::JumpsAnywhere => Way::Anywhere,
    }
}
