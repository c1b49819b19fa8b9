//! The engine of this process, and its work for a thread that the gate hands over.

mod hand_over;

pub(crate) use hand_over::{Engine, Whole, get, hand_over, set, write};
