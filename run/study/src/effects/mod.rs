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

mod argument_words;
mod calls;
mod changed_files;
mod clients;
mod error;
mod filter;
mod memory;
mod messages;
mod observation;
mod observer;
mod ptrace;
mod run;
mod scene;
mod snapshot;
mod targets;
mod tracer;

pub(crate) use calls::Scope;
pub use error::EffectsError;
pub(crate) use filter::install;
pub use run::{Observed, observe, observe_variants};
pub use snapshot::Snapshot;
