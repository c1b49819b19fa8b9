//! The handler for the trap instruction that stands in for a site while its other bytes change.
//!
//! It runs in signal context on whatever thread executed the trap: it takes no lock and allocates nothing.

use super::arch::{self, Site};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::SeqCst};

/// Every registered site, sorted by address. Replaced as a whole.
static TABLE: AtomicPtr<Vec<Site>> = AtomicPtr::new(std::ptr::null_mut());
/// Handlers that may be looking at a table.
static READERS: AtomicUsize = AtomicUsize::new(0);
/// Traps that were ours.
static TAKEN: AtomicUsize = AtomicUsize::new(0);
/// What handled the signal before us.
static PREVIOUS: AtomicPtr<libc::sigaction> = AtomicPtr::new(std::ptr::null_mut());

/// How many traps this process has taken on sites.
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

/// Makes sure that our handler is the one the kernel calls, keeping the one before it for traps that are not ours.
pub(super) fn install() -> bool {
    // SAFETY: sigaction with valid pointers. The previous action is leaked on purpose: a handler on another thread
    // may be reading it.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGTRAP, std::ptr::null(), &mut current) != 0 {
            return false;
        }
        if current.sa_sigaction == handle as *const () as usize {
            return true;
        }
        PREVIOUS.store(Box::into_raw(Box::new(current)), SeqCst);
        let mut ours: libc::sigaction = std::mem::zeroed();
        ours.sa_sigaction = handle as *const () as usize;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART | libc::SA_NODEFER;
        libc::sigaction(libc::SIGTRAP, &ours, std::ptr::null_mut()) == 0
    }
}

/// Gives the signal back to whoever had it, if it is still ours: called when this code is about to be unloaded.
pub(super) fn uninstall() {
    let previous = PREVIOUS.load(SeqCst);
    if previous.is_null() {
        return;
    }
    // SAFETY: `previous` was stored by `install` and is never freed.
    unsafe {
        let mut current: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGTRAP, std::ptr::null(), &mut current) == 0
            && current.sa_sigaction == handle as *const () as usize
        {
            libc::sigaction(libc::SIGTRAP, previous, std::ptr::null_mut());
        }
    }
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
        None => pass_on(signal, info, context),
    }
}

/// Hands a trap that is not ours to the handler before us, or to the default action.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: `PREVIOUS` is null or points to a leaked action; its function has the type its flags announce.
    unsafe {
        let previous = PREVIOUS.load(SeqCst);
        let (action, flags) = match previous.as_ref() {
            Some(previous) => (previous.sa_sigaction, previous.sa_flags),
            None => (libc::SIG_DFL, 0),
        };
        match action {
            libc::SIG_IGN => {}
            libc::SIG_DFL => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            function if flags & libc::SA_SIGINFO != 0 => {
                let function: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(function);
                function(signal, info, context);
            }
            function => {
                let function: extern "C" fn(libc::c_int) = std::mem::transmute(function);
                function(signal);
            }
        }
    }
}
