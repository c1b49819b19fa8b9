//! The handler for the trap instruction that stands in for a site while its other bytes change.
//!
//! It runs in signal context on the thread that executed the trap: it takes no lock and allocates nothing.

use super::arch::{self, Site};
use super::pass_on;
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

/// Every registered site, sorted by address. Replaced as a whole.
static TABLE: AtomicPtr<Vec<Site>> = AtomicPtr::new(std::ptr::null_mut());
/// Handlers that may be looking at a table.
static READERS: AtomicUsize = AtomicUsize::new(0);
/// Traps that were ours.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// The action that our handler replaced, to be restored when this code is unloaded.
static REPLACED: Replaced = Replaced(UnsafeCell::new(None));

struct Replaced(UnsafeCell<Option<libc::sigaction>>);

// SAFETY: touched by `install` and `uninstall` alone, whose callers hold the registry's lock.
unsafe impl Sync for Replaced {}

/// The number of traps that this process has taken on sites.
pub(super) fn taken() -> usize {
    TAKEN.load(SeqCst)
}

/// Publishes `sites`, which must be sorted by address, and frees the table before it once no handler reads it.
pub(super) fn publish(sites: Vec<Site>) {
    let old = TABLE.swap(Box::into_raw(Box::new(sites)), SeqCst);
    if old.is_null() {
        return;
    }
    while READERS.load(SeqCst) != 0 {
        std::thread::yield_now();
    }
    // SAFETY: `old` came from `Box::into_raw` here and is published no more. A handler counts itself before it
    // loads the pointer, so with the count seen at zero after the swap, none still holds it.
    drop(unsafe { Box::from_raw(old) });
}

/// The action that the kernel takes now.
fn current() -> Option<libc::sigaction> {
    // SAFETY: sigaction with a valid pointer, which it fills when it succeeds.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        (libc::sigaction(libc::SIGTRAP, std::ptr::null(), &mut current) == 0).then_some(current)
    }
}

fn is_ours(action: &libc::sigaction) -> bool {
    action.sa_sigaction == handle as *const () as usize
}

/// Makes sure that our handler is the one the kernel calls, and notes the one before it for traps that are not ours.
/// The caller holds the registry's lock. Allocates nothing.
pub(super) fn install() -> bool {
    let Some(current) = current() else { return false };
    if is_ours(&current) {
        return true;
    }
    pass_on::note(&current);
    // SAFETY: the registry's lock is held; sigaction with valid pointers.
    unsafe {
        *REPLACED.0.get() = Some(current);
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = handle as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER;
        libc::sigaction(libc::SIGTRAP, &ours, std::ptr::null_mut()) == 0
    }
}

/// Gives the signal back to the handler that had it, if it is still ours: called when this code is about to be
/// unloaded. The caller holds the registry's lock.
pub(super) fn uninstall() {
    // SAFETY: the registry's lock is held.
    let replaced = unsafe { *REPLACED.0.get() };
    let (Some(replaced), Some(_)) = (replaced, current().filter(is_ours)) else { return };
    // SAFETY: sigaction with a valid pointer.
    unsafe { libc::sigaction(libc::SIGTRAP, &replaced, std::ptr::null_mut()) };
}

extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid context to an SA_SIGINFO handler, ours alone while the handler runs.
    let machine = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let address = arch::trapped_at(machine);
    READERS.fetch_add(1, SeqCst);
    let table = TABLE.load(SeqCst);
    // SAFETY: `publish` frees a table only when no reader is counted, and we are.
    let sites = unsafe { table.as_ref() }.map_or(&[][..], Vec::as_slice);
    let site =
        sites.binary_search_by_key(&address, |site| site.address).ok().and_then(|at| sites.get(at)).copied();
    READERS.fetch_sub(1, SeqCst);
    match site {
        Some(site) => {
            TAKEN.fetch_add(1, SeqCst);
            arch::emulate(&site, machine);
        }
        None => pass_on::pass_on(signal, info, context),
    }
}
