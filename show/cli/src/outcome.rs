//! How commands end.

/// How a command that gave a result wants to exit. Errors without a result exit with 2.
pub(crate) enum Outcome {
    /// Done: exit code 0.
    Done,
    /// A finding that the user asked to fail on: exit code 1.
    Finding,
    /// The error came after a part was done. The result of that part was printed and says that it is a part, so
    /// standard output has its one document, and the error is told on standard error alone: exit code 2.
    CutShort(anyhow::Error),
}
