//! The times at which CPUs balance, and the consequences of their decisions.

mod decide;
mod passes;
mod pull;
mod scratch;

pub(super) use scratch::Scratch;
