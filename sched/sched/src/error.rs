//! Errors of a scenario.

/// A scenario that cannot be simulated.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Error {
    /// A value that is out of range or contradicts another.
    #[error("{field}: {reason}")]
    Scenario {
        /// Path of the value, such as `group low: shares`.
        field: String,
        /// The fault, and what would be right.
        reason: String,
    },
    /// The same, or a fault of form, at a place in a scenario file.
    #[error("line {line}: {reason}")]
    File {
        /// The line, counted from 1.
        line: usize,
        /// The fault, and what would be right.
        reason: String,
    },
    /// A text such as `low:shares=2,tasks=50` that does not parse.
    #[error("`{text}`: {reason}")]
    Text {
        /// The text.
        text: String,
        /// The fault, and what would be right.
        reason: String,
    },
    /// Figures that statistics refuse.
    #[error("statistics over seeds: {0}")]
    Statistics(#[from] lineup_stats::StatsError),
}

impl Error {
    pub(crate) fn scenario(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Scenario { field: field.into(), reason: reason.into() }
    }

    pub(crate) fn text(text: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::Text { text: text.into(), reason: reason.into() }
    }
}
