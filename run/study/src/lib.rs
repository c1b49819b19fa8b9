//! One run of a program: built, recorded, timed, booted or bisected.
//!
//! Every process that Lineup starts is started in this crate and nowhere else, so that all of them have the same rules
//! for input, limits, signals and leftover processes. Nothing here prints or reads arguments.

pub mod alias;
mod apart;
pub mod background;
pub mod bolt;
pub mod build_ids;
mod child;
pub mod clock;
pub mod companions;
pub mod counters;
mod descendants;
pub mod doctor;
mod drive;
pub mod effects;
pub mod error;
mod files;
pub mod folder;
pub mod git;
pub mod guardian;
pub mod guest;
pub mod heap_pools;
pub mod input;
pub mod interrupt;
pub mod keeper;
pub mod launch;
mod leftovers;
pub mod other_caches;
pub mod own_programs;
pub mod page_costs;
pub mod perf;
pub mod placed;
pub mod placements;
pub mod printed;
pub mod process;
pub mod progress;
pub mod recorder;
pub mod recording_file;
pub mod replay;
pub mod run;
pub mod shuffle;
pub mod source;
pub mod timing;
pub mod tool;
pub mod transfers;
pub mod trial;
