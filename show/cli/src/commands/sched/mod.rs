//! `lineup sched`: simulates a group-fair scheduler with given tasks, groups and CPUs.

mod args;
mod live;
mod run;
mod view;

pub(crate) use args::Sched;
pub(crate) use run::run;
