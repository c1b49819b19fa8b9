//! Statistics for before-and-after measurements: summaries, intervals, verdicts.
//!
//! Design constraints:
//!
//! * Pure: no I/O, no clock, no global state. Everything random takes a [`random::Seed`] and gives the
//!   same answer for the same seed on every machine.
//! * Small samples are the normal case: ten to forty blocks. Every interval's coverage is held to by
//!   simulations with known truth, in the tests and in this crate's benchmark.
//! * A ratio of two variants is estimated from *blocks* that hold both, never from two unpaired
//!   samples, unless only printed figures are left ([`published`]).
//! * A question that a sample cannot answer is an error or a [`verdict::Verdict::Inconclusive`], never a zero.
//! * Input is untrusted: NaN, infinities and empty samples are refused with an error.

pub mod bootstrap;
pub mod clusters;
pub mod contrast;
pub mod correlation;
pub mod error;
pub mod expression;
pub mod histogram;
pub mod holm;
pub mod interval;
pub mod modes;
pub mod noise;
pub mod paired;
pub mod propagate;
pub mod proportion;
pub mod published;
pub mod random;
pub mod sequential;
pub mod series;
pub mod summary;
pub mod synthetic;
pub mod verdict;

pub use error::StatsError;
