//! The cost of recorded calls of a whole system, the slow ones among them, and the counts that correlate with slowness.
//!
//! Design constraints:
//!
//! * Recordings in, plain values out: [`analyse`] takes [`Run`]s, each a recording and the [`Symbols`] of its kernel.
//!   Nothing is opened or printed.
//! * Every figure of a distribution is of calls that ended by returning. Others are counted.
//! * A treatment of the caches before an outer call also precedes the calls inside it ([`Run::new`]).
//! * A class of work ([`second::Class`]) is named only with the functions that were seen to run as its evidence.
//! * Associations carry intervals from resampling; a value that cannot be estimated is `None`, never zero.
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
pub use symbols::{SymbolisedAddress, Symbols};
