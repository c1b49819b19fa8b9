//! The reasons why effects were not observed.

use std::io;

/// The reason why a run could not be observed.
#[derive(Debug, thiserror::Error)]
pub enum EffectsError {
    /// The kernel does not let one process trace another.
    #[error("this system does not allow tracing ({0}), so effects beyond output and exit were not observed")]
    Attach(io::Error),
    /// The kernel does not take the filter.
    #[error(
        "this system refuses a filter of system calls ({0}), so effects beyond output and exit were not observed"
    )]
    Filter(String),
    /// Waiting for the program failed.
    #[error("waiting for the observed program failed: {0}; run it again")]
    Wait(io::Error),
    /// The tracer ended before the program.
    #[error("the tracer ended before the program; run it again")]
    Lost,
}
