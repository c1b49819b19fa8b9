//! `lineup measure`: one program, several runs, every quantity with its error.

mod args;
mod csv;
mod derive;
mod emulated;
mod json;
mod markdown;
mod report;
mod run;
mod view;

pub(crate) use args::Measure;
pub(crate) use run::run;
