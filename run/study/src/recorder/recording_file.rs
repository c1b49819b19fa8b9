//! The rules for a recording's path: Lineup never overwrites a file that is not a recording.

use lineup_recording::MAGIC;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The reason why a recording cannot be written to a file.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The file is the program that is to be recorded.
    #[error(
        "{output} is the program itself, which the recording would replace; name another file with --out"
    )]
    IsProgram {
        /// The user's path.
        output: String,
    },
    /// The file holds something else.
    #[error("{output} exists and is not a recording; it is left unchanged: name another file with --out")]
    IsNoRecording {
        /// The user's path.
        output: String,
    },
    /// Not everything could be written.
    #[error(
        "the recording could not be written to its end: {why}; what was written until then is kept in {output}"
    )]
    Unfinished {
        /// The user's path.
        output: String,
        /// The system's error.
        why: String,
    },
    /// Not everything could be written, and nothing stays of it.
    #[error("the recording could not be written to its end: {why}")]
    NotKept {
        /// The system's error.
        why: String,
    },
    /// The file cannot be written.
    #[error("cannot write the recording {output}")]
    Unwritable {
        /// The user's path.
        output: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Checks now that a recording can be written, and keeps an older one until there is a new one.
///
/// # Errors
/// When the file is the program, holds anything but a recording, or cannot be written.
pub fn check<'p>(output: &Path, programs: impl IntoIterator<Item = &'p Path>) -> Result<(), OutputError> {
    check_kind(output, programs, MAGIC)
}

/// The same, of a file that begins otherwise.
pub(crate) fn check_kind<'p>(
    output: &Path,
    programs: impl IntoIterator<Item = &'p Path>,
    magic: &[u8],
) -> Result<(), OutputError> {
    let name = || output.display().to_string();
    let unwritable = |source| OutputError::Unwritable { output: name(), source };
    let Some(there) = existing(output).map_err(unwritable)? else {
        File::options().append(true).create_new(true).open(output).map_err(unwritable)?;
        return std::fs::remove_file(output).map_err(unwritable);
    };
    let same = |program: &Path| {
        std::fs::metadata(program).is_ok_and(|file| (file.dev(), file.ino()) == (there.dev(), there.ino()))
    };
    if programs.into_iter().any(same) {
        return Err(OutputError::IsProgram { output: name() });
    }
    if !there.is_file() || (there.len() > 0 && !begins_with(output, magic).map_err(unwritable)?) {
        return Err(OutputError::IsNoRecording { output: name() });
    }
    File::options().append(true).open(output).map_err(unwritable).map(drop)
}

/// A file's metadata, through symbolic links; nothing when it does not exist.
fn existing(path: &Path) -> io::Result<Option<Metadata>> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn begins_with(path: &Path, magic: &[u8]) -> io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(magic.len() as u64).read_to_end(&mut begin)?;
    Ok(begin == magic)
}

/// The output's absolute path. Creates the file when it does not exist: it can then be opened by any name.
///
/// # Errors
/// When it cannot be made.
pub fn make(output: &Path) -> Result<PathBuf, OutputError> {
    let unwritable = |source| OutputError::Unwritable { output: output.display().to_string(), source };
    let path = std::path::absolute(output).map_err(unwritable)?;
    File::options().append(true).create(true).open(&path).map_err(unwritable)?;
    Ok(path)
}
