//! The locks and atomics of [`names`](super::names), which a test replaces by modelled ones.

pub(super) use std::sync::{Mutex, PoisonError, atomic};
