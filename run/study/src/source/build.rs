//! One run of the build command in a copy, and its results.

use crate::error::{BuildError, Doing, Result};
use crate::process::child::{Streams, Waiting};
use crate::process::folder::TempFolder;
use crate::process::interrupt::Interrupts;
use crate::process::placed::Placed;
use crate::process::run::Run;
use crate::source::build_failure::{Fault, fault};
use crate::source::compiler_calls;
use crate::source::link::linkers::Linkers;
use lineup_prove::run::Ending;
use lineup_sources::CompileCommand;
use std::cell::RefCell;
use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

/// The lines of a build's output that are shown.
const LAST_LINES: usize = 20;

/// The environment of every build, valid as long as this lives.
pub struct Environment {
    temporary: TempFolder,
}

impl Environment {
    /// Creates its folder and the variables.
    ///
    /// # Errors
    /// When the folder for temporary files cannot be made.
    pub fn new(interrupts: &Interrupts) -> Result<Self> {
        let temporary = interrupts.temporary_folder().doing("cannot make a folder for a build")?;
        Ok(Environment { temporary })
    }

    /// The variables, and further ones of a build.
    pub fn with(&self, further: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let own = [
            // Compilers must complain in English: their messages show whose fault a failure is.
            ("LC_ALL".into(), "C.UTF-8".into()),
            ("LANGUAGE".into(), "".into()),
            // A compiler that is killed leaves its temporary files: they go with the folder.
            ("TMPDIR".into(), self.temporary.path().into()),
        ];
        own.into_iter().chain(further).collect()
    }
}

/// A build command and where it runs.
pub(crate) struct Command<'b> {
    /// A line of shell.
    pub(crate) line: &'b str,
    /// The folder that it is a copy of, for messages.
    pub(crate) source: &'b Path,
    /// The copy.
    pub(crate) folder: &'b Path,
    /// True when the copy is seen at the path of its original.
    pub(crate) is_placed: bool,
    /// Linkers that its compilers are to use.
    pub(crate) linkers: Option<&'b Linkers>,
    /// The list that collects the compiler calls, when they are wanted.
    pub(crate) calls: Option<&'b RefCell<Vec<CompileCommand>>>,
}

impl Command<'_> {
    /// Runs it to its end, in a process group of its own, and returns its output.
    pub(crate) fn run(&self, interrupts: &Interrupts) -> Result<String, BuildError> {
        let (ending, words) = self.output(interrupts).map_err(BuildError::around)?;
        interrupts.check()?;
        if ending == Ending::Exited(0) {
            return Ok(words);
        }
        let said = last_lines(&words, LAST_LINES);
        let what = format!("the build `{}` failed in a copy of {}", self.line, self.source.display());
        Err(match fault(ending, &words) {
            Fault::Sources => BuildError::Rejected { words: format!("{what}; its last lines:\n{said}") },
            Fault::Machine(reason) => {
                BuildError::Failed { what: format!("{what}: {reason}. Its last lines:\n{said}") }
            }
        })
    }

    /// The command's end, and its output.
    pub(crate) fn output(&self, interrupts: &Interrupts) -> Result<(Ending, String)> {
        let placed = Placed { copy: self.folder.to_owned(), original: self.source.to_owned() };
        let line = format!("exec 2>&1\n{}", self.line);
        let linkers = self.linkers.map(|linkers| linkers.variables(self.folder)).transpose()?;
        let environment = Environment::new(interrupts)?;
        let run = Run {
            command: ["sh", "-c", &line].map(Into::into).into(),
            directory: Some(self.folder.to_owned()),
            environment: environment.with(linkers.into_iter().flatten()),
            placed: self.is_placed.then_some(placed),
            ..Run::default()
        };
        let waiting = Waiting::start(&run, Streams::Remembered, interrupts);
        let waiting = waiting.doing("cannot run sh for the build")?;
        let finished = match self.calls {
            None => waiting.run(),
            Some(calls) => compiler_calls::noted(waiting, &mut calls.borrow_mut()),
        };
        let finished = finished.doing("cannot run sh for the build")?;
        let mut words = Vec::new();
        if let Some(mut file) = finished.stdout_file {
            file.read_to_end(&mut words).doing("cannot read what the build printed")?;
        }
        Ok((finished.ending, String::from_utf8_lossy(&words).into_owned()))
    }
}

/// The end of a text.
pub(crate) fn last_lines(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines.get(lines.len().saturating_sub(most)..).unwrap_or_default().join("\n")
}
