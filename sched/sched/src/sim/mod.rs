//! The simulation: a clock, events, and the scheduler they drive.
//!
//! Ticks fall on all CPUs at the same times and are no events of the queue. The queue holds the ends of
//! sleeps, and of bursts that end before the next tick: one per task, and some stale ones per CPU.

mod account;
mod accounting;
mod arithmetic;
mod balance;
mod build;
mod events;
mod fair;
mod heap;
mod ideal;
#[cfg(test)]
mod invariants;
mod outcome;
mod random;
mod shares;
mod simulation;
mod state;
mod summary;
mod wake;
mod why;

pub use outcome::{Balance, GroupOutcome, Latency, Outcome, PullCounts};
pub use simulation::{Observer, Unobserved, simulate};
pub use why::{Cause, Steps, Why};
