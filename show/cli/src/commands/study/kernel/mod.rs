//! `lineup study --kernel-source`: a study of a kernel.

pub(super) mod args;
mod boots;
mod figures;
mod order;
mod plan;
mod run;
mod trials;
mod variant;

pub(crate) use run::run;
