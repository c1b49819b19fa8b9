//! The types of all units, in one table without repetition.

pub(crate) mod definitions;
pub(crate) mod detail;
pub(crate) mod ignored_alignment;
pub(crate) mod keys;
pub(crate) mod linked_types;
pub(crate) mod offsets;
pub(crate) mod ordered_results;
pub(crate) mod raw;
pub(crate) mod scan;
pub(crate) mod type_name;
pub(crate) mod type_table;
