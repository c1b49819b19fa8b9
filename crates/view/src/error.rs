//! What can go wrong on a terminal.

/// Why the view ended before it was left.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// The terminal was closed.
    #[error("the terminal is gone")]
    Gone,
    /// The terminal does not do what it is told, or is gone.
    #[error("the terminal: {0}")]
    Terminal(#[from] std::io::Error),
}
