//! The state that only writers of a clock use: its position relative to its source.

use super::source::Source;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state that readers never touch.
#[derive(Debug)]
pub(super) struct Cold(Mutex<State>);

/// A clock's position relative to its source.
#[derive(Debug)]
pub(super) struct State {
    pub(super) source: Option<Source>,
    /// First pair on this source, the counter extended to 64 bits.
    pub(super) first: Pair,
    /// Latest pair.
    pub(super) last: Pair,
    /// The given rate, or the first measured one; then as close to it as later measurements allow.
    pub(super) ns_per_cycle: f64,
    /// `CLOCK_BOOTTIME - CLOCK_MONOTONIC`: grows by the time suspended.
    pub(super) slept_ns: u64,
    pub(super) between: Option<fn()>,
}

impl Cold {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(State {
            source: None,
            first: Pair::ZERO,
            last: Pair::ZERO,
            ns_per_cycle: 1.0,
            slept_ns: 0,
            between: None,
        }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counter and the reference, read as close together as eight tries allow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) cycles: u64,
    pub(super) reference_ns: u64,
    /// The reference was at most this far from `reference_ns` when the counter was read.
    pub(super) uncertainty_ns: u64,
}

impl Pair {
    pub(super) const ZERO: Self = Self { cycles: 0, reference_ns: 0, uncertainty_ns: 0 };

    pub(super) fn read(source: &Source) -> Self {
        let mut best = Self { uncertainty_ns: u64::MAX, ..Self::ZERO };
        for _ in 0..8 {
            let before = (source.reference)();
            let cycles = (source.read)();
            let width = (source.reference)().wrapping_sub(before);
            if width.div_ceil(2) < best.uncertainty_ns {
                let reference_ns = before.wrapping_add(width / 2);
                best = Self { cycles, reference_ns, uncertainty_ns: width.div_ceil(2) };
            }
        }
        best
    }
}
