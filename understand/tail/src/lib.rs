//! What recorded calls of a whole system cost, which of them are slow, and what goes together with it.
//!
//! Design constraints:
//!
//! * Recordings in, plain values out: [`analyse`] takes [`Run`]s, each a recording and the [`Symbols`] of its kernel.
//!   Nothing is opened or printed.
//! * Every figure of a distribution is of calls that ended by returning. Others are counted.
//! * What was done to the caches before an outer call was done before the calls inside it ([`Run::new`]).
//! * A class of work ([`second::Class`]) is named only with the functions that were seen to run as its evidence.
//! * Associations carry intervals from resampling; what cannot be estimated is `None`, never zero.
//! * Recordings are input: none leads to a panic.

pub mod analysis;
pub mod distribution;
pub mod high_water;
pub mod metric;
pub mod run;
pub mod second;
pub mod spans;
pub mod symbols;

pub use analysis::{Analysis, analyse};
pub use metric::{Cost, Metric};
pub use run::{Measured, Run};
pub use symbols::{Place, Symbols};
