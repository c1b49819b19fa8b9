//! Layouts of types: the places of members, and the cache lines that calls need of them.

pub mod data_model;

pub(crate) mod background_lines;
pub(crate) mod current_demand;
pub(crate) mod demand;
pub(crate) mod figures;
pub(crate) mod granules;
pub(crate) mod holders;
pub(crate) mod line_counts;
pub(crate) mod neighbour;
pub(crate) mod placement;
pub(crate) mod spelling;
pub(crate) mod subject;
pub(crate) mod thread_groups;
