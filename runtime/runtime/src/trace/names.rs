//! Names in a session's table, and the index that each region keeps of its own: the data that probes of several threads
//! share. Nothing else is in this file, so that a test can run it on modelled memory.

use super::sync::atomic::{AtomicU64, Ordering::Relaxed};
use super::sync::{Mutex, PoisonError};

/// The names that one session knows, in the order of their indices.
#[derive(Debug)]
pub(super) struct Names<N> {
    /// The session's number, from 1.
    session: u64,
    known: Mutex<Vec<N>>,
}

impl<N: PartialEq> Names<N> {
    pub(super) fn new(session: u64) -> Self {
        Self { session, known: Mutex::new(Vec::new()) }
    }

    /// The index of a name. `cached` is the word in its region: the number of a session in the upper 48 bits, the index
    /// there in the lower 16. That word is self-contained, so no order with other memory is needed; a thread that is
    /// still in an older session may overwrite it, which costs the next one a lookup. A new name is entered by `enter`,
    /// once and before any thread has its index; `None` when the table is full.
    #[inline(always)]
    pub(super) fn index_of(
        &self,
        cached: &AtomicU64,
        name: impl FnOnce() -> N,
        enter: impl FnOnce(&N) -> Option<u16>,
    ) -> Option<u16> {
        match self.known_index(cached) {
            Some(known) => known,
            None => self.look_up(cached, name(), enter),
        }
    }

    /// The index where the cache has it; `Some(None)` when the table was full.
    #[inline(always)]
    pub(super) fn known_index(&self, cached: &AtomicU64) -> Option<Option<u16>> {
        let seen = cached.load(Relaxed);
        (seen >> 16 == self.session).then(|| Some(seen as u16).filter(|index| *index != u16::MAX))
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self, cached: &AtomicU64, name: N, enter: impl FnOnce(&N) -> Option<u16>) -> Option<u16> {
        let index = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            match known.iter().position(|other| *other == name) {
                Some(index) => u16::try_from(index).ok(),
                None => enter(&name).inspect(|_| known.push(name)),
            }
        };
        cached.store(self.session << 16 | u64::from(index.unwrap_or(u16::MAX)), Relaxed);
        index
    }
}
