//! `lineup explain` of a whole program: the code that it executed, for people and for tools that order code.

pub(super) mod args;
pub(super) mod run;
mod view;
