//! Why nothing could be found.

use lineup_cache::SpecError;
use lineup_explain::ExplainError;

/// Why nothing could be found.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The disassembler failed.
    #[error(transparent)]
    Explain(#[from] ExplainError),
    /// The recording's header names a cache that is none.
    #[error(transparent)]
    Cache(#[from] SpecError),
    /// It was made without what is needed.
    #[error(
        "the recording holds no windows of the run: the program ended before the recorder could write them"
    )]
    NoWindows,
}
