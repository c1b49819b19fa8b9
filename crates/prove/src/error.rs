//! What stops a proof.

use crate::run::Variant;
use lineup_stats::StatsError;

/// Why nothing could be proven.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The runner could not run a variant.
    #[error("the {variant} variant could not be run: {source}")]
    Run {
        /// Which variant.
        variant: Variant,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A variant was ended by a signal.
    #[error("the {variant} variant was ended by signal {signal}; a program that crashes cannot be compared")]
    Killed {
        /// Which variant.
        variant: Variant,
        /// The signal's number.
        signal: i32,
    },
    /// The variants do not do the same.
    #[error("the variants do not do the same: {difference}. The change is not safe; nothing is proven")]
    Differs {
        /// What differs, in words.
        difference: String,
    },
    /// A region is missing on one side.
    #[error(
        "region {region} was recorded {side} the change only; record both variants with the same regions"
    )]
    RegionMissing {
        /// The region.
        region: String,
        /// `before` or `after`.
        side: &'static str,
    },
    /// A region without recorded calls.
    #[error("region {region} has no recorded call {side} the change at {line_bytes}-byte lines")]
    RegionEmpty {
        /// The region.
        region: String,
        /// `before` or `after`.
        side: &'static str,
        /// The line size.
        line_bytes: u64,
    },
    /// The measurements do not allow the statistic.
    #[error(transparent)]
    Stats(#[from] StatsError),
}
