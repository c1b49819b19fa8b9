//! The misses of recorded calls with the members of some types in another order: the caches run again over the recorded
//! stream.

mod report;
mod run;
mod view;

pub(crate) use run::{proposed, read_orders, run};
