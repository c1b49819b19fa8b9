//! Translates one block of the program's code for the cache: every instruction unchanged, and between them the
//! instructions that log it.
//!
//! A block borrows two registers that none of its instructions use: one holds the log's end, the other addresses. Their
//! values, and that of `rcx` where a jump must not touch the flags, lie in the thread's
//! [`Slots`](crate::threads::slots::Slots) while the block runs. No added instruction changes a flag or touches the
//! program's stack.

pub(crate) mod accesses;
mod block;
pub(crate) mod counted_jumps;
mod element_logging;
pub(crate) mod elements;
mod logging;
pub(crate) mod pieces;
pub(crate) mod reading;
mod sifting;
mod state_saves;
mod step;
pub(crate) mod tail;

pub(crate) use block::translate;
