//! The tracer: regions, marks and locks recorded into a mapped file that survives a kill.
//!
//! A probe is dormant behind an immediate value: a `nop` that loads no data. Active, it stamps with
//! [`clock`](crate::clock) and writes one 64-byte record.
//!
//! ```
//! use lineup_runtime::trace::{self, Config, Region};
//!
//! static STEP: Region = Region::new(c"step");
//!
//! let folder = std::env::temp_dir().join(format!("lineup-doc-{}", std::process::id()));
//! trace::start(&Config::new(&folder))?;
//! for _ in 0..10 {
//!     let _step = trace::region(&STEP);
//! }
//! trace::stop();
//! # std::fs::remove_file(&folder).unwrap();
//! # Ok::<(), trace::StartError>(())
//! ```

mod buffer;
pub mod c_api;
mod config;
mod counters;
mod cpu;
mod intervene;
mod lock;
mod names;
mod probe;
mod region;
mod session;
mod sync;
#[cfg(test)]
mod tests;

pub use config::{Config, CounterChoice, Modes, StartError, WhenFull};
pub use lock::{TracedGuard, TracedMutex};
pub use region::Region;

use crate::cancel::NotCancelled;
use crate::imv;
use session::Session;
use std::sync::{Mutex, Once, PoisonError};

crate::define_imv! {
    /// True when probes are active.
    pub static TRACING: u8 = 0;
}

static SWITCH: Mutex<()> = Mutex::new(());

/// Starts tracing into a new file and activates the probes. The clock is started if it was not.
///
/// The file's mapping stays until the process ends, also after [`stop`].
///
/// # Errors
///
/// [`StartError`].
pub fn start(config: &Config) -> Result<(), StartError> {
    static FORK: Once = Once::new();
    let _whole = NotCancelled::begin();
    let _switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    if is_on() {
        return Err(StartError::AlreadyOn);
    }
    crate::clock::start();
    cpu::find();
    // After the registry's own handler, so that in a child this one finds it usable.
    imv::status();
    FORK.call_once(|| {
        // SAFETY: registers a function that lives as long as this image.
        unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    });
    let session: &'static Session = Box::leak(Box::new(Session::create(config)?));
    probe::SESSION.set(&raw const *session as u64)?;
    TRACING.set(1)?;
    Ok(())
}

/// Makes the probes dormant. Calls of regions that are open now are not recorded.
pub fn stop() {
    let _whole = NotCancelled::begin();
    let _switch = SWITCH.lock().unwrap_or_else(PoisonError::into_inner);
    // A failure leaves some probes active; they find no session and return.
    let _ = TRACING.set(0);
    let _ = probe::SESSION.set(0);
}

/// The buffers are shared memory: a child that went on would write into its parent's.
extern "C" fn after_fork_in_child() {
    let _ = TRACING.set(0);
    let _ = probe::SESSION.set(0);
}

/// True when probes are active.
#[inline(always)]
pub fn is_on() -> bool {
    crate::imv_cond!(TRACING)
}

/// A region that is open until this is dropped.
#[derive(Debug)]
#[must_use = "the region closes when this is dropped"]
pub struct OpenRegion(Option<&'static Region>);

/// Opens `region` until the answer is dropped.
#[inline(always)]
pub fn region(region: &'static Region) -> OpenRegion {
    if crate::imv_cond!(TRACING) {
        begin_active(region);
        OpenRegion(Some(region))
    } else {
        OpenRegion(None)
    }
}

impl Drop for OpenRegion {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(region) = self.0 {
            end_active(region);
        }
    }
}

/// Records `value` at this moment.
#[inline(always)]
pub fn mark(mark: &'static Region, value: u64) {
    if crate::imv_cond!(TRACING) {
        mark_active(mark, value);
    }
}

#[inline(never)]
fn begin_active(region: &Region) {
    probe::begin(region);
}

#[inline(never)]
fn end_active(region: &Region) {
    probe::end(region);
}

#[inline(never)]
fn mark_active(mark: &Region, value: u64) {
    probe::mark(mark, value);
}
