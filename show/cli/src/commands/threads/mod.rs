//! `lineup threads`: the effects of threads that ran together on each other's caches.

mod args;
mod kernel_view;
mod lists;
mod report;
mod run;
mod view;

pub(crate) use args::Options;
pub(crate) use run::run;
