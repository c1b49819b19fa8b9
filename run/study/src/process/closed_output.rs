//! A standard output that was closed when Lineup started.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, Ordering};

static WAS_CLOSED: AtomicBool = AtomicBool::new(false);

/// True when Lineup was started with its standard output closed, as by `>&-`. Before `main`, Rust opens the null device in
/// its place, so that writing to it succeeds.
pub fn was_closed() -> bool {
    WAS_CLOSED.load(Ordering::Relaxed)
}

// SAFETY: the loader calls it once, before Rust's own start. It needs nothing of that: it asks the system, and stores the
// answer.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()) == Err(rustix::io::Errno::BADF);
    WAS_CLOSED.store(is_closed, Ordering::Relaxed);
}
