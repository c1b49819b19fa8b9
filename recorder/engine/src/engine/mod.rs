//! The engine of this process, and its work for a thread that the gate hands over.

mod hand_over;
mod log;
mod state;

pub(crate) use hand_over::hand_over;
pub(crate) use log::write;
pub(crate) use state::{Engine, Whole, begin_leaving, get, leaves, set};
