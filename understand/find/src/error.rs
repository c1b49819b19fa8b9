//! Errors of the search for findings.

use lineup_cache::SpecError;
use lineup_explain::ExplainError;

/// The reason why nothing could be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The disassembler failed.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// The recording's header describes an impossible cache.
    #[error(transparent)]
    Cache(#[from] SpecError),
    /// It was made without the data that is needed.
    #[error(
        "the recording holds no windows of the run: the program ended before the recorder could write them"
    )]
    NoWindows,
}
