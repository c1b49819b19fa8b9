//! `lineup sweep`: records a kernel under one cache after another.

mod args;
mod report;
mod run;
mod vary;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
