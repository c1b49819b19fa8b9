//! The engine's mapped memory, so that it can be given back when the engine leaves a running program.

use crate::system;
use crate::system::lock::Lock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The most mappings in the list.
const MOST: usize = 4096;

struct Holdings {
    all: [(u64, u64); MOST],
    count: usize,
}

static HOLDINGS: Lock<Holdings> = Lock::new(Holdings { all: [(0, 0); MOST], count: 0 });
/// Set when more was mapped than the list holds.
static IS_PARTIAL: AtomicBool = AtomicBool::new(false);

/// Memory was mapped.
pub(crate) fn add(at: u64, bytes: u64) {
    HOLDINGS.with(|holdings| match holdings.all.get_mut(holdings.count) {
        Some(place) => {
            *place = (at, bytes);
            holdings.count += 1;
        }
        None => IS_PARTIAL.store(true, Ordering::Relaxed),
    });
}

/// Memory that began there was given back, or handed to the program.
pub(crate) fn remove(at: u64) {
    HOLDINGS.with(|holdings| {
        let known = &mut holdings.all[..holdings.count];
        if let Some(place) = known.iter().position(|(start, _)| *start == at) {
            known.swap(place, holdings.count - 1);
            holdings.count -= 1;
        }
    });
}

/// Does some work while no thread maps memory; the work must not either.
pub(crate) fn while_still<R>(work: impl FnOnce() -> R) -> R {
    HOLDINGS.with(|_| work())
}

/// Whether the list is complete.
pub(crate) fn are_known() -> bool {
    !IS_PARTIAL.load(Ordering::Relaxed)
}

/// Calls a function with the beginning and the bytes of each.
pub(crate) fn each(mut work: impl FnMut(u64, u64)) {
    HOLDINGS.with(|holdings| holdings.all[..holdings.count].iter().for_each(|(at, bytes)| work(*at, *bytes)));
}

/// Whether an address lies in any of it.
pub(crate) fn hold(address: u64) -> bool {
    let mut found = false;
    each(|at, bytes| found |= address.wrapping_sub(at) < bytes);
    found
}

/// Gives all of it back. No code of the engine may run afterwards except the return from here.
///
/// # Safety
/// No thread is in memory of the engine's or comes back to it, and nothing uses the engine's heap any more.
pub(crate) unsafe fn give_back() {
    each(|at, bytes| {
        // SAFETY: mapped by the engine, and no longer used, as the caller promises.
        unsafe { system::own(libc::SYS_munmap, [at, bytes, 0, 0, 0, 0]) };
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A size that no other test maps: those map memory at the same time.
    const BYTES: usize = 5 * 4096;

    #[test]
    fn what_is_mapped_is_known_until_it_is_given_back() {
        let holds = |at: u64| {
            let mut found = false;
            each(|start, bytes| found |= start == at && bytes == BYTES as u64);
            found
        };
        let at = system::memory(BYTES).unwrap();
        assert!(holds(at as u64) && hold(at as u64) && hold(at as u64 + BYTES as u64 - 1));
        system::unmap(at, BYTES);
        assert!(!holds(at as u64) && are_known());
    }
}
