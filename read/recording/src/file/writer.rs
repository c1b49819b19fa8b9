//! Appending blocks to a file.

use super::encoder::Encoder;
use super::frame::{MAGIC, VERSION};
use crate::error::RecordingError;
use crate::records::header::Header;
use std::io::Write;

/// The beginning of the recorder's message on standard error when it cannot write; the error follows.
pub const WRITE_FAILED: &str = "lineup: the recording ends here: ";

/// Writes a recording. Share it behind a lock; compress outside the lock with [`Encoder::seal`].
pub struct Writer<W: Write> {
    output: W,
}

impl<W: Write> Writer<W> {
    /// Starts a recording.
    ///
    /// # Errors
    /// Those of `output`, and [`RecordingError::TooLarge`] for an absurd header.
    pub fn new(mut output: W, header: &Header) -> Result<Self, RecordingError> {
        let mut encoder = Encoder::new();
        encoder.header(header);
        let block = encoder.seal()?;
        output.write_all(MAGIC)?;
        output.write_all(&VERSION.to_le_bytes())?;
        output.write_all(&block)?;
        output.flush()?;
        Ok(Writer { output })
    }

    /// Continues a recording: `output` must stand at the end of its last whole block.
    pub fn resume(output: W) -> Self {
        Writer { output }
    }

    /// Appends a block made by [`Encoder::seal`], in one write.
    ///
    /// # Errors
    /// Those of `output`.
    pub fn append(&mut self, sealed: &[u8]) -> Result<(), RecordingError> {
        self.output.write_all(sealed)?;
        self.output.flush()?;
        Ok(())
    }

    /// The output.
    pub fn into_inner(self) -> W {
        self.output
    }
}
