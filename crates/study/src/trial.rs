//! Building a changed program and running its own test.

use crate::error::BuildError;
use crate::error::{Doing, Error, Result};
use crate::source::scratch::{Role, Scratch};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A test that takes this many times as long as it took with the program as it is, is stopped.
const SLOWER: u64 = 10;

/// And no test is stopped before this.
const LEAST_SECONDS: u64 = 60;

/// How a changed program fared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trial {
    /// It was built, and the test succeeded.
    Passed,
    /// What went wrong, in a few lines.
    Failed(String),
}

/// Runs trials of changed sources, each in a fresh copy.
pub struct Trials<'s> {
    scratch: &'s Scratch,
    test: String,
    limit_seconds: u64,
}

impl<'s> Trials<'s> {
    /// Runs the test with the program as it is, in a folder where that is built already.
    ///
    /// # Errors
    /// When the test fails: then it can tell nothing.
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

    fn test(&self, folder: &Path) -> Result<Trial> {
        let mut command = match self.limit_seconds {
            u64::MAX => Command::new("sh"),
            seconds => {
                let mut command = Command::new("timeout");
                command.args(["-k", "5", &seconds.to_string(), "sh"]);
                command
            }
        };
        command.args(["-c", &self.test]).current_dir(folder);
        let output = crate::tool::output(&mut command).doing("cannot run the test")?;
        if output.status.success() {
            return Ok(Trial::Passed);
        }
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(6)..].join("\n");
        Ok(Trial::Failed(format!("the test ended with {}\n{last}", output.status)))
    }
}
