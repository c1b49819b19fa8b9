//! Exit codes.

use std::process::ExitCode;

/// How a command that ran to its end wants to exit. Errors exit with 2.
pub(crate) enum Outcome {
    /// Done: exit code 0.
    Done,
    /// A finding that the user asked to fail on: exit code 1.
    Finding,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => ExitCode::SUCCESS,
            Outcome::Finding => ExitCode::FAILURE,
        }
    }
}
