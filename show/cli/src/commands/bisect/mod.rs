//! `lineup bisect`: which commit made it slower?

mod args;
mod culprit;
mod run;
mod state;
mod trial;

pub(crate) use args::Bisect;
pub(crate) use run::run;
