//! An observation of a run from beside it, on a thread of its own.

use super::error::EffectsError;
use super::observer::Observer;
use super::ptrace;
use super::scene::Scene;
use super::tracer::Tracer;
use rustix::process::Pid;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// An observation under way, on a thread of its own: the kernel knows one thread as the tracer.
pub(super) struct Observation {
    thread: JoinHandle<Result<Observer, EffectsError>>,
    /// Set when the run is over.
    is_over: Arc<AtomicBool>,
}

impl Observation {
    /// Attaches to a process that waits to become the program, and calls [`super::install`] first.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    pub(super) fn attach(program: Pid, scene: Scene) -> Result<Self, EffectsError> {
        let (report, attached) = mpsc::channel();
        let tid = program.as_raw_nonzero().get();
        let is_over = Arc::new(AtomicBool::new(false));
        let told = is_over.clone();
        let thread = std::thread::spawn(move || {
            let done = ptrace::seize(tid);
            let is_attached = done.is_ok();
            // The caller waits for this message.
            let _ = report.send(done);
            if is_attached { Tracer::new(tid, scene, told).run() } else { Err(EffectsError::Lost) }
        });
        match attached.recv() {
            Ok(Ok(())) => Ok(Self { thread, is_over }),
            Ok(Err(error)) => Err(EffectsError::Attach(error)),
            Err(_) => Err(EffectsError::Lost),
        }
    }

    /// The run is over; waits until the last of its processes is gone.
    ///
    /// # Errors
    /// When the program's end could not be seen.
    pub(super) fn finish(self) -> Result<Observer, EffectsError> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| EffectsError::Lost)?
    }
}
