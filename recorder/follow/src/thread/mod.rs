//! One guest thread: its open calls, the memory that they touched, and the dynamic linker at work in them.

mod binding;
mod closing;
mod open_call;
mod state;

pub use state::{Manner, RegionEntry, Thread};
