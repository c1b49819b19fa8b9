//! The end of a command.

/// The exit of a command with a result. Errors without a result exit with 2.
pub(crate) enum Outcome {
    /// Done: exit code 0.
    Done,
    /// A finding that the user asked to fail on: exit code 1.
    Finding,
    /// The error came after a part was done. That part's result was printed and says that it is a part, so that
    /// standard output has its one document. The error goes to standard error alone: exit code 2.
    CutShort(anyhow::Error),
}
