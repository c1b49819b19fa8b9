//! `lineup shuffle`: random legal layouts as a test.

mod args;
mod run;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
