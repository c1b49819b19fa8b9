//! From calls to an explanation: two passes over the calls, and the data that advice is derived from.

mod advice_usage;
mod aligned_parts;
mod passes;

pub use passes::{Explainer, Options};
