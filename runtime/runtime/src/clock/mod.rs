//! A monotonic nanosecond clock whose hot data is one 64-byte line, readable while it is being updated.
//!
//! Time is `epoch_ns + (counter - epoch_cycles) * mult >> shift`. The parameters are kept twice behind a sequence
//! count (a latch): the writer steers readers to one copy while it changes the other, so a reader that interrupts
//! the writer, in a signal handler for instance, finds a consistent copy at once and never waits.
//!
//! * The difference to the epoch is *signed*: a reader may have read its counter just before the epoch that it finds
//!   published, and an unsigned difference would then be centuries.
//! * A narrow counter is extended to 64 bits by that same signed difference; it must be updated within half its
//!   wrap, and [`Clock::maintain`] asks to be called within a quarter.
//! * An update never steps time: it takes the clock's own reading as the new epoch and changes the rate, by at most
//!   500 ppm, so that the error against the reference is gone by the next update.
//!
//! The layout, for 32-byte lines too: the sequence count and the copy that readers use between updates share the
//! first 32 bytes; the other copy is in the second.

mod atomics;
pub mod c_api;
mod cold;
mod latch;
mod scale;
mod source;
mod two_copies;
mod update;

pub use latch::{Clock, Reading};
pub use scale::Scale;
pub use source::{Fitness, Reference, Source, SourceError, best_source, system_reference};
pub use update::{Maintained, MaintenanceReport};

use crate::cancel::NotCancelled;

/// The clock of this process. Before [`start`] it reads the system's clock.
pub static CLOCK: Clock = Clock::system();

/// Nanoseconds on the clock of this process: monotonic, close to `CLOCK_MONOTONIC`.
///
/// ```
/// let first = lineup_runtime::clock::now_ns();
/// assert!(lineup_runtime::clock::now_ns() >= first);
/// ```
#[inline]
pub fn now_ns() -> u64 {
    CLOCK.now_ns()
}

/// Calibrates the process's clock to the best counter of the machine: takes about ten milliseconds, once. Without a fit
/// counter the clock stays on the system's; the result gives the reason. Further calls change nothing.
pub fn start() -> Fitness {
    static STARTED: std::sync::OnceLock<Fitness> = std::sync::OnceLock::new();
    STARTED
        .get_or_init(|| {
            let _whole = NotCancelled::begin();
            let fitness = best_source();
            if let Fitness::Fit(source) = &fitness {
                CLOCK.register(*source);
            }
            fitness
        })
        .clone()
}
