//! `lineup review`: a change's effects on layouts, lines per call and promises.

mod args;
mod around;
mod built;
mod calls;
mod certificate;
mod findings;
mod json;
mod run;

pub(crate) use args::Options;
pub(crate) use run::run;
