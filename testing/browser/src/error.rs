//! Errors of a browser.

use std::io;

/// The reason why a page could not be checked.
#[derive(Debug, thiserror::Error)]
pub enum BrowserError {
    /// A program is not there, or a file cannot be read or written.
    #[error("{what}: {source}")]
    Io {
        /// The failed step.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// The browser refused a command of the protocol.
    #[error("chromium refused {method}: {said}")]
    Refused {
        /// The command.
        method: String,
        /// Its answer.
        said: String,
    },
    /// The browser ended, or did not answer in time.
    #[error("chromium did not answer {0} within a minute, or ended")]
    Silent(String),
    /// axe-core is not there.
    #[error("axe-core could not be fetched by scripts/axe-fetch: {0}")]
    Axe(String),
}

impl BrowserError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> BrowserError {
        let what = what.into();
        move |source| BrowserError::Io { what, source }
    }
}
