//! `lineup study`: from an unmodified program to a proven source patch.

mod args;
mod audit;
mod call_times;
mod certificate;
mod code;
mod comparison;
mod confirm;
mod contention;
mod found_regions;
mod from_caches;
mod inside;
mod kernel;
mod levers;
mod links;
mod output_folder;
mod outputs;
mod patch_command;
mod placement;
mod plan;
mod result_files;
mod run;
mod sanitized;
mod series;
mod timed_edits;
mod together;
mod trials;
mod variant;

pub(crate) use args::Options;
pub(crate) use run::run;
