//! The parameters of a trace.

use crate::imv;
use lineup_trace::layout::mode;
use std::path::{Path, PathBuf};

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
    pub(super) fn bits(self) -> u32 {
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
