//! Static analysis of code: the accesses of each instruction, derived without running it.

pub mod abstract_value;
pub(crate) mod access_sites;
pub(crate) mod analysis;
pub(crate) mod callees;
pub(crate) mod fixpoint;
pub(crate) mod flow_graph;
pub mod instruction;
pub(crate) mod refinement;
pub(crate) mod transfer;
pub mod variable_locations;
