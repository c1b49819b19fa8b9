//! `lineup study --code`: the order of a program's code.

pub(super) mod args;
mod cold;
pub(super) mod counts;
mod gates;
mod hints;
mod optimisers;
mod ordering;
mod patched;
mod programs;
mod run;
mod workload;

pub(crate) use run::{run, study};
