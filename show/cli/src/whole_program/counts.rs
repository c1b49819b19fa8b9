//! Reads the recording of a whole program.

use crate::terminal::progress::{ReadInStage, Stages};
use anyhow::{Context, Result};
use lineup_find::Recorded;
use lineup_recording::{Mode, Reader};
use lineup_study::progress::Progress;
use std::io::BufReader;
use std::path::Path;

/// Whether a file is a recording of a whole program.
pub(crate) fn is_whole_program(recording: &Path) -> bool {
    let file = lineup_mapping::open(recording).ok();
    let reader = file.and_then(|file| Reader::new(BufReader::new(file)).ok());
    reader.is_some_and(|reader| reader.header().mode == Mode::WholeProgram)
}

/// Reads a recording of a whole program.
pub(crate) fn read(recording: &Path, stages: &Stages) -> Result<Recorded> {
    let name = || recording.display().to_string();
    stages.stage(&format!("reading {}", recording.display()));
    let file = lineup_mapping::open(recording).with_context(name)?;
    Ok(Recorded::read(Reader::new(BufReader::new(ReadInStage::new(file, stages))).with_context(name)?))
}
