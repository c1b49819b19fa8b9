//! Standard input, kept so that every run reads the same bytes from their start.

use crate::process::folder::TempFolder;
use crate::process::interrupt::{Interrupted, Interrupts};
use lineup_prove::output::Output;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The interval between checks for signals while input is awaited.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The wait after which Lineup reports that it still reads input.
const PATIENCE: Duration = Duration::from_secs(2);

/// The standard input of the programs.
#[derive(Clone, Default, Debug)]
pub enum Input {
    /// Empty.
    #[default]
    Nothing,
    /// A copy of input that was read once.
    Kept(Arc<StoredInput>),
}

/// Bytes in one of Lineup's files.
#[derive(Debug)]
pub struct StoredInput {
    path: PathBuf,
    content: Output,
    _folder: TempFolder,
}

/// The reason why there is no input.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// It cannot be read, or not be kept.
    #[error("cannot keep the standard input {name} for every run")]
    Unreadable {
        /// Its name.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A device has other bytes each time, or no end.
    #[error(
        "the standard input {name} is a device, whose bytes cannot be kept; give a file with --stdin FILE"
    )]
    Device {
        /// Its name.
        name: String,
    },
    /// A signal came while it was read.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

/// The source of input when no file is named.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// There is no input.
    Nothing,
    /// A terminal: programs read nothing instead.
    Terminal,
    /// A file or a pipe.
    Bytes,
}

impl Input {
    /// Copies a file, or all bytes from a pipe.
    ///
    /// # Errors
    /// When it cannot be read or copied, or a signal comes.
    pub fn from_file(path: &Path, interrupts: &Interrupts) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let cannot = |source| InputError::Unreadable { name: name.clone(), source };
        let file = File::open(path).map_err(cannot)?;
        keep(file, &name, interrupts, &mut || {})
    }

    /// Copies Lineup's own standard input: nothing of a terminal. `waiting` is called when that takes long.
    ///
    /// # Errors
    /// When it cannot be read or copied, or a signal comes.
    pub fn ours(interrupts: &Interrupts, waiting: &mut dyn FnMut()) -> Result<(Self, Origin), InputError> {
        let stdin = io::stdin();
        if stdin.is_terminal() {
            return Ok((Input::Nothing, Origin::Terminal));
        }
        // A closed standard input counts as none.
        let Ok(ours) = stdin.as_fd().try_clone_to_owned() else {
            return Ok((Input::Nothing, Origin::Nothing));
        };
        let input = keep(File::from(ours), "given", interrupts, waiting)?;
        let origin = if matches!(input, Input::Nothing) { Origin::Nothing } else { Origin::Bytes };
        Ok((input, origin))
    }

    /// The path at which a run opens it.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Input::Nothing => Path::new("/dev/null"),
            Input::Kept(kept) => &kept.path,
        }
    }

    /// All of it, as a fingerprint: equal when every byte is.
    pub fn content(&self) -> Output {
        match self {
            Input::Nothing => Output::of(b""),
            Input::Kept(kept) => kept.content.clone(),
        }
    }
}

fn keep(
    mut from: File,
    name: &str,
    interrupts: &Interrupts,
    waiting: &mut dyn FnMut(),
) -> Result<Input, InputError> {
    let cannot = |source| InputError::Unreadable { name: name.to_owned(), source };
    let status = fstat(&from).map_err(|error| cannot(error.into()))?;
    if FileType::from_raw_mode(status.st_mode) == FileType::CharacterDevice {
        let null = std::fs::metadata("/dev/null").map_err(cannot)?;
        let is_null = std::os::unix::fs::MetadataExt::rdev(&null) == status.st_rdev;
        return if is_null { Ok(Input::Nothing) } else { Err(InputError::Device { name: name.to_owned() }) };
    }
    let folder = interrupts.temporary_folder().map_err(cannot)?;
    let path = folder.path().join("stdin");
    let mut to = File::create(&path).map_err(cannot)?;
    let began = Instant::now();
    let mut has_waited = false;
    let mut buffer = vec![0; 64 << 10];
    loop {
        interrupts.check()?;
        if !has_waited && began.elapsed() >= PATIENCE {
            has_waited = true;
            waiting();
        }
        if !is_ready(&from).map_err(cannot)? {
            continue;
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => to.write_all(&buffer[..count]).map_err(cannot)?,
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {}
            Err(error) => return Err(cannot(error)),
        }
    }
    let content = Output::read(&mut File::open(&path).map_err(cannot)?).map_err(cannot)?;
    Ok(Input::Kept(Arc::new(StoredInput { path, content, _folder: folder })))
}

/// True when there is something to read, or the end.
fn is_ready(file: &File) -> io::Result<bool> {
    let mut ready = [PollFd::new(file, PollFlags::IN)];
    match poll(&mut ready, Some(&LOOK)) {
        Ok(count) => Ok(count > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}
