//! Load weights, and a deterministic model of SMP group-fair scheduling.
//!
//! Design constraints:
//!
//! * [`weights`] is integer arithmetic only and `no_std`: with `default-features = false` the crate has
//!   nothing else, so that a user-level or BPF-side scheduler can use the very functions that the model uses.
//! * The model never reads a clock, an environment variable or a file: a [`scenario::Scenario`] and a
//!   seed determine every figure, bit for bit, on every machine.
//! * Time is an unsigned number of nanoseconds from the start of the run. The scheduler's own arithmetic
//!   is integer throughout, with the widths and roundings that are being studied; floating point occurs
//!   only in the figures derived from a finished run.
//! * Allocation is bounded by the scenario: CPUs, groups times CPUs, and tasks. Nothing is allocated per
//!   event.
//! * An unobserved value is `None`, never a zero.
#![cfg_attr(not(feature = "std"), no_std)]

#[cfg(feature = "std")]
pub mod error;
#[cfg(feature = "std")]
pub mod experiment;
#[cfg(feature = "std")]
pub mod observed;
#[cfg(feature = "std")]
pub mod report;
#[cfg(feature = "std")]
pub mod scenario;
#[cfg(feature = "std")]
pub mod sim;
#[cfg(feature = "std")]
pub mod sweep;
#[cfg(feature = "std")]
pub mod trace;
pub mod weights;
