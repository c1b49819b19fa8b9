//! `lineup threads`: the effects of threads that ran together on each other's caches.

mod args;
mod run;

pub(crate) use args::Options;
pub(crate) use run::run;
