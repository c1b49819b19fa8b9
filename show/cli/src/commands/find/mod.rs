//! `lineup find`: findings in a whole program.

mod again;
mod allocations;
mod args;
mod contexts;
mod diff;
mod folded;
mod kernel;
mod live;
mod placements;
mod pprof;
mod replay;
mod run;
mod samples;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
