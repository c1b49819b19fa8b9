//! The state of the engine.

use crate::cache::blocks::Blocks;
use crate::shared::Shared;
use crate::signals::code_ranges::Signals;
use crate::system::lock::Lock;
use crate::threads::thread_memory::Retired;
use crate::whole_program::sieve::Sieves;
use lineup_recording::native::note;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// The engine of this process.
pub(crate) struct Engine {
    pub(crate) shared: Shared,
    pub(crate) slots: i32,
    pub(crate) gate: u64,
    pub(crate) release_first: u64,
    /// Target of patched entries.
    pub(crate) entry: u64,
    /// One byte, which is 0 in forked processes.
    pub(crate) is_on: &'static AtomicU8,
    pub(crate) code: Lock<Blocks>,
    pub(crate) thread_key: u32,
    pub(crate) signals: Signals,
    pub(crate) whole: Option<Whole>,
}

/// State of the engine when the whole program is recorded.
pub(crate) struct Whole {
    /// Code that leads into the cache where it is called.
    pub(crate) begins_here: u64,
    /// Data for its blocks.
    pub(crate) blocks: crate::machine::Whole,
    /// The sieves, which pass repeated uses over.
    pub(crate) sieves: Sieves,
    /// Code where signal handlers begin.
    pub(crate) runs_handlers: u64,
    /// The gate of handlers that run on a stack of their own.
    pub(crate) masking_gate: u64,
    /// Property of threads that are about to end, or have ended.
    pub(crate) retired: Lock<Vec<Retired>>,
}

static ENGINE: OnceLock<Engine> = OnceLock::new();

/// The engine; `None` before it has started.
pub(crate) fn get() -> Option<&'static Engine> {
    ENGINE.get()
}

/// Sets the engine, once.
pub(crate) fn set(engine: Engine) -> Option<&'static Engine> {
    ENGINE.set(engine).ok()?;
    ENGINE.get()
}

/// Set when the engine is about to go.
static LEAVES: AtomicBool = AtomicBool::new(false);

/// Whether the engine is about to go: threads continue natively, and no handler of ours is set any more.
pub(crate) fn leaves() -> bool {
    LEAVES.load(Ordering::Acquire)
}

/// From now on the engine is about to go.
pub(crate) fn begin_leaving() {
    LEAVES.store(true, Ordering::Release);
}

impl Engine {
    /// Whether all of a run is logged.
    pub(crate) fn logs_all(&self) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.blocks.targets != 0)
    }

    /// Stops recording for good.
    pub(crate) fn stop(&self, why: &str) {
        if self.is_on.swap(0, Ordering::Relaxed) != 0 {
            self.shared.note(&format!("{}: {why}", note::ENDED));
        }
    }

    /// False when recording has stopped, and in forked processes.
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed) != 0
    }
}
