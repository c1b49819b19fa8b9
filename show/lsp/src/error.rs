//! Errors: the failure, its place, and the remedy.

/// Errors of this library.
#[derive(Debug, thiserror::Error)]
pub enum LspError {
    /// Bytes that are not a message of the protocol, so that the next message cannot be found.
    #[error("the client sent an invalid message ({what}): end the server and start it again")]
    Framing {
        /// The fault.
        what: String,
    },
    /// A document that says nothing about the use of types.
    #[error(
        "{what}: name a recording, or what `lineup explain --json`, `lineup advise --json` or a study wrote"
    )]
    Evidence {
        /// The fault.
        what: String,
    },
    /// Options that cannot be understood.
    #[error("initializationOptions: {what}: see docs/lsp.md for the allowed fields")]
    Options {
        /// The fault.
        what: String,
    },
}
