//! What can go wrong: what, where, and what to do.

/// Errors of this library.
#[derive(Debug, thiserror::Error)]
pub enum LspError {
    /// Bytes that are not a message of the protocol, after which none can be found.
    #[error("the client sent what is no message ({what}): end the server and start it again")]
    Framing {
        /// What is wrong with them.
        what: String,
    },
    /// A document that tells nothing of how types are used.
    #[error(
        "{what}: name a recording, or what `lineup explain --json`, `lineup advise --json` or a study wrote"
    )]
    Evidence {
        /// What is wrong with it.
        what: String,
    },
    /// Options that cannot be understood.
    #[error("initializationOptions: {what}: see docs/lsp.md for what may stand there")]
    Options {
        /// What is wrong with them.
        what: String,
    },
}
