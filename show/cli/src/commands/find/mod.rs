//! `lineup find`: findings in a whole program.

mod again;
mod args;
mod diff;
mod folded;
mod kernel;
mod live;
mod pprof;
mod replay;
mod run;
mod samples;

pub(crate) use args::Options;
pub(crate) use run::run;
