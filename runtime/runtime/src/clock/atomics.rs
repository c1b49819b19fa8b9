//! The atomics of [`two_copies`](super::two_copies), which a test replaces by modelled ones.

pub(super) use std::sync::atomic::{AtomicU64, Ordering, fence};
