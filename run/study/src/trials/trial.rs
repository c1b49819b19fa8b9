//! Building a changed program and running its own test.

use crate::error::BuildError;
use crate::error::{Error, Result};
use crate::source::scratch::{Role, Scratch};
use lineup_prove::run::Ending;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// A test that takes this many times as long as with the unchanged program is stopped.
const SLOWER: u64 = 10;

/// And no test is stopped before this.
const LEAST_SECONDS: u64 = 60;

/// The result of a changed program's trial.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trial {
    /// It was built, and the test succeeded.
    Passed,
    /// The failure, in a few lines.
    Failed(String),
}

/// Runs trials of changed sources, each in a fresh copy.
pub struct Trials<'s> {
    scratch: &'s Scratch,
    test: String,
    limit_seconds: u64,
}

impl<'s> Trials<'s> {
    /// Runs the test with the unchanged program, in a folder where that is built already.
    ///
    /// # Errors
    /// When the test fails: then it can show nothing.
    pub fn new(scratch: &'s Scratch, test: &str, built: &Path) -> Result<Self> {
        let started = Instant::now();
        let mut trials = Trials { scratch, test: test.to_owned(), limit_seconds: u64::MAX };
        if let Trial::Failed(words) = trials.test(built)? {
            return Err(Error::Test { test: test.to_owned(), words });
        }
        trials.limit_seconds = (started.elapsed().as_secs() * SLOWER).max(LEAST_SECONDS);
        Ok(trials)
    }

    /// Builds the program with these files replaced, and tests it.
    ///
    /// # Errors
    /// When nothing can be started or written.
    pub fn run(&self, edited: &BTreeMap<String, String>) -> Result<Trial> {
        let mut tree = self.scratch.copy(Role::Candidate)?;
        match self.scratch.build(&mut tree, edited) {
            Ok(()) => {}
            Err(BuildError::Rejected { words }) => return Ok(Trial::Failed(words)),
            Err(error) => return Err(error.into()),
        }
        self.test(&tree.path)
    }

    /// Fails once a signal has asked Lineup to end, for work between trials.
    ///
    /// # Errors
    /// When it has.
    pub(crate) fn check_interrupts(&self) -> Result<()> {
        self.scratch.check_interrupts()
    }

    fn test(&self, folder: &Path) -> Result<Trial> {
        let line = match self.limit_seconds {
            u64::MAX => self.test.clone(),
            seconds => format!("timeout -k 5 {seconds} sh -c '{}'", self.test.replace('\'', "'\\''")),
        };
        let (ending, text) = self.scratch.run_line(folder, &line)?;
        if ending == Ending::Exited(0) {
            return Ok(Trial::Passed);
        }
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join("\n");
        Ok(Trial::Failed(format!("the test ended: {ending}\n{last}")))
    }
}
