//! `lineup time`: how long calls of functions take, with the program at its own speed.

mod args;
mod interventions;
mod report;
mod run;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
