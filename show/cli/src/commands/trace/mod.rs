//! `lineup trace`: reports on the tracer's files and on recordings of whole systems.

mod args;
mod calls;
mod run;

pub(crate) use args::Options;
pub(crate) use run::run;
