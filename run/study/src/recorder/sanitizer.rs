//! Programs that do not run under the emulator.

use crate::companions;
use crate::error::{Error, Result};
use lineup_model::executable::SANITIZERS;
use memchr::memmem;
use std::path::Path;

/// Refuses a program with a sanitizer.
pub(super) fn refuse(program: &Path) -> Result<()> {
    let bytes = companions::read(program)?;
    let found = SANITIZERS.iter().find(|(name, _)| memmem::find(&bytes, name).is_some());
    match found {
        Some((_, option)) => Err(Error::file(
            program,
            format!(
                "was built with {option}, whose memory the emulator cannot hold; record a build without it"
            ),
        )),
        None => Ok(()),
    }
}
