//! Errors.

/// The reason why a report could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A value could not be turned into JSON.
    #[error("the report could not be turned into JSON: {0}")]
    Json(#[from] serde_json::Error),
}
