//! The recording as it is written, by all threads in turn.

use lineup_recording::{Encoder, Header, RecordingError, Writer};
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread hands its block over when it holds so much.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// The file, and the process that may write to it: a forked child shares the file but not the recording.
pub(crate) struct Output {
    writer: Mutex<Option<Writer<File>>>,
    process: u32,
}

impl Output {
    /// Starts the file.
    pub(crate) fn create(path: &str, header: &Header) -> Result<Self, RecordingError> {
        let writer = Writer::new(File::create(path)?, header)?;
        Ok(Output { writer: Mutex::new(Some(writer)), process: std::process::id() })
    }

    /// True in the process that was recorded from the start.
    pub(crate) fn is_ours(&self) -> bool {
        std::process::id() == self.process
    }

    /// Writes what an encoder holds. After a failure (a full disk) nothing more is written: what stands in the file
    /// is whole.
    pub(crate) fn flush(&self, encoder: &mut Encoder) {
        if encoder.packed_bytes() == 0 {
            return;
        }
        let sealed = encoder.seal();
        if !self.is_ours() {
            return;
        }
        let mut writer = self.lock();
        let Some(open) = writer.as_mut() else { return };
        if let Err(error) = sealed.and_then(|block| open.append(&block)) {
            eprintln!("lineup: the recording ends here: {error}");
            *writer = None;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Writer<File>>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
