//! Errors of a run, and of the steps around it.

use crate::effects::EffectsError;
use crate::process::input::InputError;
use crate::process::interrupt::Interrupted;
use crate::recorder::recording_file::OutputError;
use std::io;
use std::path::PathBuf;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of a run, or of a step around it. Each message says what was being done, with what, and, where known, what
/// to do next.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A signal asked the whole work to end.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// There is no build.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is no standard input.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The run's effects cannot be observed.
    #[error(transparent)]
    Effects(#[from] EffectsError),
    /// A recording cannot be written where it should.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A recording cannot be written or read.
    #[error(transparent)]
    Recording(#[from] lineup_recording::RecordingError),
    /// The recorder's findings about a program cannot be read.
    #[error(transparent)]
    Discovery(#[from] lineup_recording::plan::PlanError),
    /// A kernel, or a part of a guest, cannot be used.
    #[error(transparent)]
    Kernel(#[from] lineup_kernel::Error),
    /// The sources cannot be read with libclang.
    #[error(transparent)]
    Sources(#[from] lineup_sources::Error),
    /// The system refused something: a file, a process, memory.
    #[error("{doing}: {cause}")]
    System {
        /// The failed step, and its object.
        doing: String,
        /// The system's error.
        cause: io::Error,
    },
    /// A step failed because of a part of it.
    #[error("{doing}: {}", in_full(cause))]
    Step {
        /// The failed step, and its object.
        doing: String,
        /// The step's error.
        cause: Box<Error>,
    },
    /// A file's debug information cannot be read, or it has none.
    #[error("{file}: {cause}")]
    DebugInfo {
        /// The step's description, with the file.
        file: String,
        /// The error in it.
        cause: lineup_debuginfo::Error,
    },
    /// The user's value for an option or an argument cannot be used.
    #[error("{given}: {why}")]
    Argument {
        /// The option or argument, as it was given.
        given: String,
        /// The value's fault, and the permitted values.
        why: String,
    },
    /// A program or a file that Lineup needs is missing or unusable.
    #[error("{tool} {what}; {next}")]
    Tool {
        /// Its name.
        tool: String,
        /// The fault.
        what: String,
        /// The remedy.
        next: String,
    },
    /// A file is not one that can be used so.
    #[error("{} {why}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The reason, and the replacement.
        why: String,
    },
    /// The program could not be started, or not be followed to its end.
    #[error("{0}")]
    Start(String),
    /// The native engine cannot record it; the emulator may.
    #[error("{why}; `--engine qemu` may record it")]
    Unfit {
        /// The reason.
        why: String,
        /// True when the program has run to its end meanwhile.
        has_run: bool,
    },
    /// A region is no function that can be recorded, or was never called.
    #[error("{0}")]
    Region(String),
    /// A server's client did not get to do its work.
    #[error("{0}")]
    Client(String),
    /// A comparison's load ended before the comparison did.
    #[error("{0}")]
    Load(String),
    /// A git command failed.
    #[error("{what} failed: {said}")]
    Git {
        /// The command's purpose.
        what: String,
        /// Git's output.
        said: String,
    },
    /// A guest ran, but did not reach the boot's goal.
    #[error("{0}")]
    Guest(String),
    /// A link of the source folder leads to where a build could do harm.
    #[error(
        "the link {} leads out of the source folder, to {}, where a build could write; {why}. Name a folder that holds \
         both with --source, or remove the link", link.display(), target.display()
    )]
    LinkOutside {
        /// The link.
        link: PathBuf,
        /// The link's target.
        target: PathBuf,
        /// The reason why it is not copied.
        why: String,
    },
    /// The user's folder changed while copies of it were built and run.
    #[error(
        "{names} changed in {} while a copy of it was built and run. Either someone else changed the folder, or the \
         build or the program writes to it by its absolute path; then nothing that was built is known to come from the \
         copy", folder.display()
    )]
    FolderChanged {
        /// The files, or the first of them.
        names: String,
        /// The folder.
        folder: PathBuf,
    },
    /// The program's own test fails before anything was changed, and so can show nothing.
    #[error("the test `{test}` fails with the unchanged program:\n{words}")]
    Test {
        /// The test's line of shell.
        test: String,
        /// The failure, in words.
        words: String,
    },
}

/// The message about a program that is not installed.
const NOT_INSTALLED: &str = "is not installed";

impl Error {
    /// The signal that ended the work, if one did.
    pub fn interrupted(&self) -> Option<Interrupted> {
        match self {
            Self::Interrupted(interrupted)
            | Self::Build(BuildError::Interrupted(interrupted))
            | Self::Input(InputError::Interrupted(interrupted)) => Some(*interrupted),
            Self::Step { cause, .. } => cause.interrupted(),
            _ => None,
        }
    }

    pub(crate) fn argument(given: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Argument { given: given.into(), why: why.into() }
    }

    pub(crate) fn file(file: impl Into<PathBuf>, why: impl Into<String>) -> Self {
        Self::File { file: file.into(), why: why.into() }
    }

    pub(crate) fn not_installed(tool: impl Into<String>, package: &str) -> Self {
        let next = format!("on Debian: apt install {package}");
        Self::Tool { tool: tool.into(), what: NOT_INSTALLED.into(), next }
    }

    /// True when a program is not installed.
    pub(crate) fn is_not_installed(&self) -> bool {
        matches!(self, Self::Tool { what, .. } if what == NOT_INSTALLED)
    }
}

/// The reason why there is no build.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The compiler or linker does not take the sources.
    #[error("{words}")]
    Rejected {
        /// The command, the copy's origin and the last lines that the build printed.
        words: String,
    },
    /// The build did not run to its end for another reason than the sources.
    #[error("{what}")]
    Failed {
        /// The reason, and the last lines that the build printed.
        what: String,
    },
    /// A signal asked the whole work to end.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
}

impl BuildError {
    /// An error around a build rather than in it.
    pub(crate) fn around(error: Error) -> Self {
        match error.interrupted() {
            Some(interrupted) => Self::Interrupted(interrupted),
            None => Self::Failed { what: in_full(&error) },
        }
    }
}

/// An error and its causes in one line.
pub(crate) fn in_full(error: &Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |error| error.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}

/// The cause of a step's failure.
pub(crate) trait Cause {
    /// The error of a step in which this went wrong.
    fn of_step(self, doing: String) -> Error;
}

impl Cause for io::Error {
    fn of_step(self, doing: String) -> Error {
        Error::System { doing, cause: self }
    }
}

impl Cause for rustix::io::Errno {
    fn of_step(self, doing: String) -> Error {
        Error::System { doing, cause: self.into() }
    }
}

impl Cause for nix::errno::Errno {
    fn of_step(self, doing: String) -> Error {
        Error::System { doing, cause: self.into() }
    }
}

impl Cause for Error {
    fn of_step(self, doing: String) -> Error {
        Error::Step { doing, cause: Box::new(self) }
    }
}

impl Cause for Interrupted {
    fn of_step(self, doing: String) -> Error {
        Error::from(self).of_step(doing)
    }
}

impl Cause for lineup_recording::RecordingError {
    fn of_step(self, doing: String) -> Error {
        Error::from(self).of_step(doing)
    }
}

/// Adds the failed step to an error.
pub(crate) trait Doing<T> {
    /// Adds the failed step, in words.
    fn doing(self, what: impl Into<String>) -> Result<T>;

    /// Adds the failed step, in words that are built only on failure.
    fn doing_with(self, what: impl FnOnce() -> String) -> Result<T>;
}

/// Adds the failed step to an error, unless a signal or the end of its time is the reason: the step did not fail then.
pub(crate) fn failed_in(step: &str) -> impl FnOnce(Error) -> Error {
    move |error| match error.interrupted() {
        Some(_) => error,
        None => error.of_step(step.to_owned()),
    }
}

impl<T, E: Cause> Doing<T> for Result<T, E> {
    fn doing(self, what: impl Into<String>) -> Result<T> {
        self.map_err(|cause| cause.of_step(what.into()))
    }

    fn doing_with(self, what: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|cause| cause.of_step(what()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_tells_what_went_wrong_in_it_with_all_causes_once() {
        let unreadable =
            InputError::Unreadable { name: "in".into(), source: io::Error::from_raw_os_error(5) };
        let step: Result<()> = Err(Error::from(unreadable)).doing("recording");
        let said = step.expect_err("an error").to_string();
        assert!(said.starts_with("recording: cannot keep the standard input in"), "{said}");
        assert_eq!(said.matches("Input/output error").count(), 1, "{said}");
    }

    #[test]
    fn a_step_that_a_signal_ended_did_not_fail() {
        let cut = failed_in("cannot run sh")(Error::from(Interrupted { signal: 15 }));
        assert_eq!(cut.to_string(), "interrupted by SIGTERM");
        let failed = failed_in("cannot run sh")(Error::Start("no".into()));
        assert_eq!(failed.to_string(), "cannot run sh: no");
    }

    #[test]
    fn an_interruption_is_known_however_deep_it_is() {
        let step: Result<()> = Err(Interrupted { signal: 2 }).doing("building");
        let step = step.doing_with(|| "recording".into()).expect_err("an error");
        assert_eq!(step.interrupted().map(|interrupted| interrupted.signal), Some(2));
        assert!(Error::Start("no".into()).interrupted().is_none());
    }
}
