//! `lineup kernel IMAGE`: describes a kernel image, and tries to boot it.

mod args;
mod report;
mod run;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
