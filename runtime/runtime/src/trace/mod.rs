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
mod counters;
mod cpu;
mod intervene;
mod lock;
mod names;
mod probe;
mod region;
mod session;
#[cfg(test)]
mod tests;

pub use lock::{TracedGuard, TracedMutex};
pub use region::Region;

use crate::cancel::NotCancelled;
use crate::imv;
use lineup_trace::layout::mode;
use session::Session;
use std::path::{Path, PathBuf};
use std::sync::{self, Mutex, Once, PoisonError};

crate::define_imv! {
    /// True when probes are active.
    pub static TRACING: u8 = 0;
}

/// The recorded data: any of three modes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Modes {
    /// Every event, in the ring.
    pub events: bool,
    /// Each new maximum of a region, with the events that led to it.
    pub high_water: bool,
    /// Histograms per region, counter, lock wait and hold.
    pub histograms: bool,
}

impl Modes {
    fn bits(self) -> u32 {
        let bit = |is_on: bool, bit: u32| if is_on { bit } else { 0 };
        bit(self.events, mode::EVENTS)
            | bit(self.high_water, mode::HIGH_WATER)
            | bit(self.histograms, mode::HISTOGRAMS)
    }
}

/// The treatment of new events when a thread's ring is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// They take the place of the oldest.
    OverwriteOldest,
    /// They are dropped and counted.
    Stop,
}

/// The counters read at both ends of a region.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CounterChoice {
    /// None: a probe reads only the clock.
    None,
    /// Cycles, instructions, L1 instruction and data read misses, if the machine has them all.
    Hardware,
    /// Page faults, context switches and migrations, by a system call at both ends.
    Software,
}

/// The parameters of a trace.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file. An existing file is replaced.
    pub path: PathBuf,
    /// The recorded data.
    pub modes: Modes,
    /// The treatment of new events when a ring is full.
    pub when_full: WhenFull,
    /// Records in each thread's ring; rounded up to a power of two.
    pub ring_records: u32,
    /// Records in each thread's high-water ring; rounded up to a power of two.
    pub high_water_records: u32,
    /// The number of threads with room.
    pub threads: u32,
    /// The number of regions, marks and locks with room.
    pub names: u32,
    /// Counters.
    pub counters: CounterChoice,
    /// Keep lock records only while the region of this name is open.
    pub locks_inside: Option<String>,
}

impl Config {
    /// Every event, overwriting the oldest, 8192 records per thread, 64 threads, no counters.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            modes: Modes { events: true, high_water: false, histograms: false },
            when_full: WhenFull::OverwriteOldest,
            ring_records: 8192,
            high_water_records: 1024,
            threads: 64,
            names: 256,
            counters: CounterChoice::None,
            locks_inside: None,
        }
    }
}

/// The reason tracing did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A size is out of range.
    #[error("trace sizes: {what}; change the configuration")]
    Sizes {
        /// The size that is out of range.
        what: &'static str,
    },
    /// The file cannot be made.
    #[error("trace file {path}: {source}; choose a folder that can be written and has room", path = path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Tracing is on already.
    #[error("tracing is on already; stop it first")]
    AlreadyOn,
    /// The probes could not be switched.
    #[error(transparent)]
    Switch(#[from] imv::Error),
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
