//! Errors of explaining accesses.

/// The reason why accesses could not be explained.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The disassembler could not be set up or refused to run.
    #[error("the disassembler failed: {0}; report this with the program that was studied")]
    Disassembler(String),
    /// The recording could not be read again.
    #[error(transparent)]
    Recording(#[from] lineup_recording::RecordingError),
}
