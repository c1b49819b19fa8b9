//! The flow graph of a function: its blocks, the edges between them, and how often each was taken.

pub(crate) mod block_graph;
pub(crate) mod edge_counts;
pub(crate) mod edge_solver;
pub(crate) mod function;
pub(crate) mod jump_tables;
