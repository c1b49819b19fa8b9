//! Writes the recording, for all threads in turn.

use crate::kept_file::KeptFile;
use crate::limits::BLOCK_BYTES;
use lineup_recording::{Encoder, Header, RecordingError, WRITE_FAILED, Writer};
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The file. All processes append to it: each block is one write.
pub(crate) struct Output {
    writer: Mutex<Option<Writer<KeptFile>>>,
}

/// The file while no other thread can write to it.
pub(crate) type HeldOutput<'a> = MutexGuard<'a, Option<Writer<KeptFile>>>;

impl Output {
    /// Starts the file.
    pub(crate) fn create(path: &str, header: &Header) -> Result<Self, RecordingError> {
        File::create(path)?;
        let writer = Writer::new(KeptFile::open(path)?, header)?;
        Ok(Output { writer: Mutex::new(Some(writer)) })
    }

    /// Continues the file that another process started.
    pub(crate) fn resume(path: &str) -> Result<Self, RecordingError> {
        Ok(Output { writer: Mutex::new(Some(Writer::resume(KeptFile::open(path)?))) })
    }

    /// Writes an encoder's content once it is a block. A failure was reported on standard error.
    pub(crate) fn flush_full(&self, encoder: &mut Encoder) {
        if encoder.packed_bytes() >= BLOCK_BYTES {
            let _ = self.flush(encoder);
        }
    }

    /// Writes the content of an encoder. After a failure (a full disk) it writes nothing more: the file's content is
    /// whole.
    ///
    /// # Errors
    /// The failure, the first time.
    pub(crate) fn flush(&self, encoder: &mut Encoder) -> io::Result<()> {
        if encoder.packed_bytes() == 0 {
            return Ok(());
        }
        let sealed = encoder.seal();
        let mut writer = self.lock();
        let Some(open) = writer.as_mut() else { return Ok(()) };
        let Err(error) = sealed.and_then(|block| open.append(&block)) else { return Ok(()) };
        eprintln!("{WRITE_FAILED}{error}");
        *writer = None;
        Err(match error {
            RecordingError::Io(error) => error,
            error => io::Error::other(error),
        })
    }

    /// Writes nothing more: the file belongs to another process.
    pub(crate) fn close(&self) {
        *self.lock() = None;
    }

    /// Keeps others from writing.
    pub(crate) fn lock(&self) -> HeldOutput<'_> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
