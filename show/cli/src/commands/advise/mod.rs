//! `lineup advise`: from a recording to a patch, without proving it.

mod args;
mod groups;
mod run;
mod weights;
mod what_if;

pub(crate) use args::Options;
pub(crate) use run::run;
