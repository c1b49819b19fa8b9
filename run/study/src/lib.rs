//! One run of a program: built, recorded, timed, booted or bisected.
//!
//! Every process that Lineup starts is started in this crate and nowhere else, so that all of them have the same rules
//! for input, limits, signals and leftover processes. Nothing here prints or reads arguments.

pub mod build_ids;
pub mod companions;
pub mod doctor;
pub mod effects;
pub mod error;
mod files;
pub mod guest;
pub mod perf;
pub mod process;
pub mod progress;
pub mod recorder;
pub mod source;
mod trials;

pub use perf::{clock, counters, other_caches};
pub use process::{
    alias, closed_output, folder, guardian, input, interrupt, keeper, launch, own_programs, placed, run, tool,
};
pub use recorder::{recording_file, replay};
pub use source::git;
pub use trials::{
    background, bolt, cycles, heap_pools, page_costs, placements, printed, shuffle, timing, transfers, trial,
};
