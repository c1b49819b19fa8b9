//! One run of the build command in a copy, and its results.

pub use crate::source::build_environment::Environment;

use crate::error::{BuildError, Doing, Result, failed_in};
use crate::process::child::{Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::placed::Placed;
use crate::process::run::Run;

use crate::source::build_failure::{Fault, fault, last_lines};
use crate::source::compiler_calls;
use crate::source::link::linkers::Linkers;
use lineup_prove::run::Ending;
use lineup_sources::CompileCommand;
use std::cell::RefCell;
use std::io::Read;
use std::path::Path;

/// The lines of a build's output that are shown.
const LAST_LINES: usize = 20;

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
        let waiting = waiting.map_err(failed_in("cannot run sh for the build"))?;
        let finished = match self.calls {
            None => waiting.run(),
            Some(calls) => compiler_calls::noted(waiting, &mut calls.borrow_mut()),
        };
        let finished = finished.map_err(failed_in("cannot run sh for the build"))?;
        let mut words = Vec::new();
        if let Some(mut file) = finished.stdout_file {
            file.read_to_end(&mut words).doing("cannot read what the build printed")?;
        }
        Ok((finished.ending, String::from_utf8_lossy(&words).into_owned()))
    }
}
