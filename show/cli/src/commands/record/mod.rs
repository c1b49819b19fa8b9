//! `lineup record`: calls of chosen functions, or the whole program, as a recording.

mod args;
mod perf;
mod report;
mod run;
mod sweep;
pub(super) mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
