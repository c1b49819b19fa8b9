//! `lineup layout`: how types lie in memory.

mod args;
mod compare;
mod json;
mod pahole;
mod run;
mod shown;
mod table;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
