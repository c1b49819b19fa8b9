//! The tables of the report, and the notes and next steps of each finding.

pub(crate) mod allocation_pairs;
pub(crate) mod clock_contradictions;
pub(crate) mod footprints;
pub(crate) mod manual_edits;
pub(crate) mod member_map;
pub(crate) mod next_commands;
pub(crate) mod notes;
pub(crate) mod parallel_arrays;
pub(crate) mod site_table;
pub(crate) mod stack_objects;
pub(crate) mod stall_tables;
pub(crate) mod without_finding;
