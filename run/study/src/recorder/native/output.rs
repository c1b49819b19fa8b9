//! The file of a recording that is made while programs run.

use crate::error::{Doing, Result};
use lineup_recording::{Encoder, Header, Writer};
use std::fs::File;
use std::path::Path;

/// The file, made when there is something of the program to write: an older one is kept until then.
pub(super) struct Output<'a> {
    path: &'a Path,
    header: &'a Header,
    writer: Option<Writer<File>>,
    /// Blocks that wait until the file is started.
    waiting: Vec<Vec<u8>>,
}

impl<'a> Output<'a> {
    pub(super) fn new(path: &'a Path, header: &'a Header) -> Output<'a> {
        Output { path, header, writer: None, waiting: Vec::new() }
    }

    /// Starts the file, once.
    pub(super) fn start(&mut self) -> Result<()> {
        if self.writer.is_none() {
            let file =
                File::create(self.path).doing_with(|| format!("cannot write {}", self.path.display()))?;
            let mut writer = Writer::new(file, self.header)?;
            for block in self.waiting.drain(..) {
                writer.append(&block)?;
            }
            self.writer = Some(writer);
        }
        Ok(())
    }

    /// Writes packed records, or keeps them until the file is started.
    pub(super) fn write(&mut self, encoder: &mut Encoder) -> Result<()> {
        if encoder.packed_bytes() > 0 {
            self.append(encoder.seal()?)?;
        }
        Ok(())
    }

    /// As [`Output::write`], for a block that is sealed already.
    pub(super) fn append(&mut self, block: Vec<u8>) -> Result<()> {
        match &mut self.writer {
            Some(writer) => writer.append(&block)?,
            None => self.waiting.push(block),
        }
        Ok(())
    }
}
