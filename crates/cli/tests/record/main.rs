//! `lineup record` on programs whose calls are known by construction, on three machines.
//!
//! Every program is compiled here and prints what the recording must show: addresses, counts, depths.

mod cachegrind;
mod control;
mod counts;
mod program;
mod refusals;
mod several;
