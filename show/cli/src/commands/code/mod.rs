//! `lineup code`: the code that a whole program executed, for people and for tools that order code.

mod args;
mod run;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
