//! The ways through a function: which edges its blocks can have, and how often each was taken.

use crate::flow::block_graph::{Block, Ends, Graph};
use crate::flow::edge_solver::{BlockEdge, Taken, solve};
use std::collections::BTreeMap;

/// The edges of a graph whose counts are wanted.
pub(crate) struct EdgeCounts {
    /// The edges; the first is how the function is entered.
    pub(crate) wanted: Vec<BlockEdge>,
    /// Whether it jumps to unknown targets: no count of its edges is certain then.
    is_open: bool,
}

impl EdgeCounts {
    pub(crate) fn of(graph: &Graph) -> EdgeCounts {
        let by_start: BTreeMap<u64, usize> =
            graph.blocks.iter().enumerate().map(|(number, block)| (block.addresses.start, number)).collect();
        let mut wanted = vec![BlockEdge { from: None, to: Some(0) }];
        for (number, block) in graph.blocks.iter().enumerate() {
            let next = (number + 1 < graph.blocks.len()).then_some(number + 1);
            let mut to = |to: Option<usize>| wanted.push(BlockEdge { from: Some(number), to });
            match block.ends {
                Ends::Falls => {
                    to(next);
                    // A call that does not always return.
                    let after = next.and_then(|next| graph.blocks.get(next));
                    if after.is_some_and(|after| after.executions < block.executions) {
                        to(None);
                    }
                }
                Ends::Branches { target } => {
                    to(by_start.get(&target).copied());
                    to(next);
                }
                Ends::Jumps { target } => to(by_start.get(&target).copied()),
                Ends::JumpsAnywhere => {
                    let table = graph.tables.get(&block.last).into_iter().flatten();
                    table.filter_map(|target| by_start.get(target)).for_each(|target| to(Some(*target)));
                    // A call through a pointer in the place of a return, as far as a table does not explain it.
                    to(None);
                }
                Ends::Leaves => to(None),
            }
        }
        let mut ways = EdgeCounts { wanted, is_open: false };
        ways.explain_lacking(graph);
        ways
    }

    /// Adds edges to blocks that were executed more often than the edges to them can explain.
    fn explain_lacking(&mut self, graph: &Graph) {
        let without_table =
            |block: &Block| graph.tables.get(&block.last).is_some_and(|table| table.is_empty());
        let numbered = graph.blocks.iter().enumerate();
        let anywhere: Vec<usize> =
            numbered.filter(|(_, block)| without_table(block)).map(|(number, _)| number).collect();
        for to in lacking(&graph.blocks, &self.wanted) {
            // A handler of exceptions, or a place that setjmp comes back to.
            self.wanted.push(BlockEdge { from: None, to: Some(to) });
            self.wanted.extend(anywhere.iter().map(|from| BlockEdge { from: Some(*from), to: Some(to) }));
            self.is_open |= !anywhere.is_empty();
        }
    }

    /// The count of each edge. When the counts of a block do not add up, an unknown jump leads there, and all counts of
    /// the function are marked as estimated.
    pub(crate) fn taken(&self, graph: &Graph) -> Vec<Taken> {
        let executions: Vec<u64> = graph.blocks.iter().map(|block| block.executions).collect();
        let mut taken = solve(&executions, &self.wanted);
        if self.is_open || !self.adds_up(&executions, &taken) {
            taken.iter_mut().for_each(|taken| taken.is_estimated = true);
        }
        taken
    }

    fn adds_up(&self, executions: &[u64], taken: &[Taken]) -> bool {
        let mut left = vec![0u64; executions.len()];
        let mut entered = left.clone();
        for (wanted, taken) in self.wanted.iter().zip(taken) {
            let add = |sums: &mut Vec<u64>, block: Option<usize>| {
                if let Some(sum) = block.and_then(|block| sums.get_mut(block)) {
                    *sum = sum.saturating_add(taken.times);
                }
            };
            add(&mut left, wanted.from);
            add(&mut entered, wanted.to);
        }
        left == executions && entered == executions
    }

    /// The number of times the function was entered at its beginning.
    pub(crate) fn entries(&self, taken: &[Taken]) -> u64 {
        taken.first().map_or(0, |taken| taken.times)
    }
}

/// Blocks that were executed more often than the edges to them can explain.
fn lacking(blocks: &[Block], wanted: &[BlockEdge]) -> Vec<usize> {
    let mut most = vec![0u64; blocks.len()];
    for edge in wanted {
        if let (Some(from), Some(to)) = (edge.from.and_then(|from| blocks.get(from)), edge.to) {
            most[to] = most[to].saturating_add(from.executions);
        }
    }
    let numbered = blocks.iter().enumerate().skip(1).zip(most.iter().skip(1));
    numbered.filter(|((_, block), most)| block.executions > **most).map(|((number, _), _)| number).collect()
}
