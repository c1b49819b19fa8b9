//! Loops that chase pointers or index through memory, and the addresses that they could fetch ahead.
//!
//! An address that is proposed reads only what the loop reads at that place as well, or reads in a later turn for
//! certain: a prefetch must not read through a pointer that could be null or dangling. Every loop that chases and has
//! no such address comes with the reason.

mod arrays;
mod expression;
mod flow;
mod insertion;
mod lists;
mod stacks;
mod syntax;
mod units;
mod variables;

pub use units::{Chases, chases, own_name};
