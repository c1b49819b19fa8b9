//! Times of calls in a program that runs at its own speed.

pub(crate) mod clock;
pub(crate) mod interventions;
