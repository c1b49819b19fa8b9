//! The misses of a recorded stream if the members of some types lay elsewhere: the caches run again over the stream,
//! with the objects laid anew.

mod comparison;
mod replay;

pub use comparison::{Comparison, RegionComparison, ReplayError, compare};
pub use replay::{NewOrder, Relayout, places_in};
