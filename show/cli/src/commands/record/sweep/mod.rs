//! `lineup record --vary`: a kernel recorded under one cache after another.

mod report;
pub(super) mod run;
pub(super) mod vary;
mod view;
