//! Errors that stop a proof.

use crate::effects::EffectDifference;
use crate::run::Variant;
use lineup_stats::StatsError;

/// The reason why nothing could be proven.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The runner could not run a variant.
    #[error("the {variant} variant could not be run: {source}")]
    Run {
        /// The variant.
        variant: Variant,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A variant was ended by a signal.
    #[error(
        "the {variant} variant was ended by {}; a program that crashes cannot be compared",
        lineup_model::signal_name(*.signal)
    )]
    Killed {
        /// The variant.
        variant: Variant,
        /// The signal's number.
        signal: i32,
    },
    /// The variants do not do the same.
    #[error("the variants do not do the same: {difference}. The change is not safe; nothing is proven")]
    Differs {
        /// The difference, in words.
        difference: String,
    },
    /// The effects of the variants' processes differ.
    #[error("the variants do not do the same: {difference}. The change is not safe; nothing is proven")]
    Effects {
        /// The first difference.
        difference: EffectDifference,
    },
    /// The variants read other input.
    #[error("the variants read different inputs: {difference}. Nothing is proven")]
    Inputs {
        /// The difference, in words.
        difference: String,
    },
    /// A timed run read something else than the recorded one.
    #[error(
        "the {variant} variant read another input when it was timed than when it was recorded: {difference}. Nothing is proven"
    )]
    TimedInput {
        /// The variant.
        variant: Variant,
        /// The difference, in words.
        difference: String,
    },
    /// The variants called a region different numbers of times.
    #[error(
        "calls of {region} {what}: {before} before the change, {after} after it{range}. The two recordings are not of the same work; nothing is proven"
    )]
    Calls {
        /// The region.
        region: String,
        /// `made` or `recorded`.
        what: &'static str,
        /// Before the change.
        before: u64,
        /// After it.
        after: u64,
        /// The counts of further recordings of the unchanged program, in words; empty without any.
        range: String,
    },
    /// Nobody counted the calls of a region.
    #[error(
        "the recording of the {variant} variant does not say how many calls of {region} there were; nothing is proven"
    )]
    CallsUnknown {
        /// The region.
        region: String,
        /// The variant.
        variant: Variant,
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

impl ProveError {
    /// True when the two recordings are of different work: that says nothing about the change, and the findings of each
    /// recording stand.
    pub fn is_other_work(&self) -> bool {
        matches!(
            self,
            Self::Inputs { .. } | Self::TimedInput { .. } | Self::Calls { .. } | Self::CallsUnknown { .. }
        )
    }
}
