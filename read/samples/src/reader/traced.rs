//! The traces of a file, and the threads of their records.

use super::threads::{Thread, Threads};
use crate::spe::{DueRecord, Info, Traces, Whose};

/// The traces of a file, and the state needed to return their samples.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) info: Info,
    pub(super) traces: Traces,
    pub(super) threads: Threads,
    /// True when all its chunks were found already.
    pub(super) is_scanned: bool,
    /// Samples whose thread is taken to be the one that ran when their part was written.
    pub(super) guessed_threads: u64,
}

impl Traced {
    /// The thread of a record, and whether that is a guess. The best source is the kernel's context in the record. Else
    /// the buffer of one thread, and switches. The rest are guesses: the thread that ran when the part was written, and
    /// the one for which the trace began.
    pub(super) fn thread_of(&self, told: &DueRecord) -> (Option<Thread>, bool) {
        let named = match (told.record.context, told.whose) {
            (Some(thread), _) | (None, Whose::Thread(thread)) => Some(self.threads.with_number(thread)),
            (None, Whose::Cpu(cpu)) => self.threads.switched_to(cpu),
        };
        if named.is_some() {
            return (named, false);
        }
        let part = told.part.and_then(|part| Some(Thread { process: part.process?, thread: part.thread? }));
        (part.or_else(|| self.threads.started_on(told.cpu()?)), true)
    }
}
