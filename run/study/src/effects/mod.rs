//! Observes the effects of a run's processes. A tracer attaches to the program before its first instruction, and a
//! filter in the kernel stops the program only at the system calls of [`calls`].
//!
//! The program runs as it would alone: signals reach it, stops and continuations work, and threads, children and
//! programs that it runs are followed. Two things differ, because the kernel demands them: no process of the run gains
//! rights through a set-user-ID program, and none can be traced by another tracer.
//!
//! Not observed: `io_uring`, `vmsplice`, System V shared memory and message queues, shared mappings without a file,
//! memory that a pointer inside an argument points to, owners, times and extended attributes' names of files, and
//! 32-bit programs beyond their end. The effects report those of these that Lineup can notice.

mod calls;
mod clients;
mod filter;
mod left;
mod memory;
mod messages;
mod observer;
mod ptrace;
mod run;
mod snapshot;
mod targets;
mod tracer;
mod words;

pub(crate) use calls::Scope;
pub(crate) use filter::install;
pub use run::{Observed, observe, observe_variants};
pub use snapshot::Snapshot;

use observer::Observer;
use rustix::process::Pid;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

/// The reason why a run could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum EffectsError {
    /// The kernel does not let one process trace another.
    #[error("this system does not allow tracing ({0}), so effects beyond output and exit were not observed")]
    Attach(io::Error),
    /// The kernel does not take the filter.
    #[error(
        "this system refuses a filter of system calls ({0}), so effects beyond output and exit were not observed"
    )]
    Filter(String),
    /// Waiting for the program failed.
    #[error("waiting for the observed program failed: {0}; run it again")]
    Wait(io::Error),
    /// The tracer ended before the program.
    #[error("the tracer ended before the program; run it again")]
    Lost,
}

/// A run's surroundings.
#[derive(Clone, Debug)]
struct Scene {
    /// The run's folder: paths are shown relative to it.
    folder: PathBuf,
    /// True when the folder's path does not count where the program writes it, because another variant runs in another
    /// folder.
    is_folder_hidden: bool,
    /// Device and inode of the program's standard output.
    standard_output: (u64, u64),
    /// Device and inode of the program's standard error.
    standard_error: (u64, u64),
}

/// An observation under way, on a thread of its own: the kernel knows one thread as the tracer.
struct Observation {
    thread: JoinHandle<Result<Observer, EffectsError>>,
    /// Set when the run is over.
    is_over: Arc<AtomicBool>,
}

impl Observation {
    /// Attaches to a process that waits to become the program, and calls [`install`] first.
    ///
    /// # Errors
    /// When the kernel does not allow it.
    fn attach(program: Pid, scene: Scene) -> Result<Self, EffectsError> {
        let (report, attached) = mpsc::channel();
        let tid = program.as_raw_nonzero().get();
        let is_over = Arc::new(AtomicBool::new(false));
        let told = is_over.clone();
        let thread = std::thread::spawn(move || {
            let done = ptrace::seize(tid);
            let is_attached = done.is_ok();
            // The caller waits for this message.
            let _ = report.send(done);
            if is_attached { tracer::Tracer::new(tid, scene, told).run() } else { Err(EffectsError::Lost) }
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
    fn finish(self) -> Result<Observer, EffectsError> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| EffectsError::Lost)?
    }
}
