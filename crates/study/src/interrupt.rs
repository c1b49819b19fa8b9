//! Signals: children go, results stay. And what goes with us when no signal can be caught.

use crate::folder::TempFolder;
use crate::guardian::Guardian;
use rustix::process::{Pid, Signal, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// How long a child may take to end by itself before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// Watches for SIGINT, SIGTERM and SIGHUP and ends the process groups entrusted to it.
#[derive(Clone)]
pub struct Interrupts {
    received: Arc<AtomicI32>,
    groups: Arc<Mutex<Vec<Pid>>>,
    guardian: Arc<OnceLock<Arc<Guardian>>>,
}

/// The work was cut short by a signal; what was done until then is valid.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("interrupted by signal {signal}")]
pub struct Interrupted {
    /// The signal's number.
    pub signal: i32,
}

impl Interrupts {
    /// Starts watching.
    pub fn watch() -> std::io::Result<Self> {
        let interrupts = Self { received: Arc::default(), groups: Arc::default(), guardian: Arc::default() };
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let watcher = interrupts.clone();
        std::thread::spawn(move || {
            for signal in signals.forever() {
                watcher.received.store(signal, Ordering::SeqCst);
                watcher.end_groups();
            }
        });
        Ok(interrupts)
    }

    /// An error once a signal has come.
    pub fn check(&self) -> Result<(), Interrupted> {
        match self.received.load(Ordering::SeqCst) {
            0 => Ok(()),
            signal => Err(Interrupted { signal }),
        }
    }

    /// Whether a signal has come. If so, it has done what it was sent for: only the next one ends the whole work.
    pub(crate) fn take(&self) -> bool {
        self.received.swap(0, Ordering::SeqCst) != 0
    }

    /// A temporary folder that goes away however we end.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn temporary_folder(&self) -> std::io::Result<TempFolder> {
        TempFolder::new(self.guardian()?)
    }

    /// Who cleans up after us; started when first needed.
    pub(crate) fn guardian(&self) -> std::io::Result<Arc<Guardian>> {
        if let Some(known) = self.guardian.get() {
            return Ok(known.clone());
        }
        let started = Arc::new(Guardian::start()?);
        Ok(self.guardian.get_or_init(|| started).clone())
    }

    /// Entrusts a process group; it is ended when a signal comes, at once if one already has.
    pub fn entrust(&self, group: Pid) {
        self.lock().push(group);
        if let Some(guardian) = self.guardian.get() {
            guardian.began(group);
        }
        if self.check().is_err() {
            // The group may already be gone; then there is nothing to end.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }

    /// Takes a process group back, before its leader is reaped.
    pub fn release(&self, group: Pid) {
        self.lock().retain(|entrusted| *entrusted != group);
        if let Some(guardian) = self.guardian.get() {
            guardian.ended(group);
        }
    }

    fn end_groups(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            for group in self.lock().iter() {
                // A group that ended in the meantime needs no signal.
                let _ = kill_process_group(*group, signal);
            }
            if signal == Signal::TERM {
                std::thread::sleep(GRACE);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
