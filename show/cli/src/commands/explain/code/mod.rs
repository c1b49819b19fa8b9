//! `lineup explain --code`: the code that a whole program executed, for people and for tools that order code.

pub(super) mod args;
pub(super) mod run;
mod view;
