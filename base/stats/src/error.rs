//! The reasons for refusing a sample.

/// The reason a statistic could not be computed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StatsError {
    /// Fewer values than the statistic needs.
    #[error("{what} needs at least {needed} values and got {got}; measure more often")]
    TooFew {
        /// The statistic.
        what: &'static str,
        /// The number of values it needs.
        needed: usize,
        /// The number of values it got.
        got: usize,
    },
    /// A NaN or an infinity.
    #[error("{what}: value number {index} is {value}; only finite numbers can be averaged")]
    NotFinite {
        /// The statistic.
        what: &'static str,
        /// Position in the sample, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A ratio was asked of a value that is zero or negative.
    #[error("a ratio needs values above zero; value number {index} is {value}: compare differences instead")]
    NotPositive {
        /// Position in the sample, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A parameter outside its range.
    #[error("{name} is {value}; it must be {range}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The permitted range.
        range: &'static str,
    },
    /// The two sides of a comparison do not match up.
    #[error("block number {block} has {before} values before and {after} after; both sides need one or more")]
    Unpaired {
        /// The block, from 0.
        block: usize,
        /// Values of the first variant.
        before: usize,
        /// Values of the second variant.
        after: usize,
    },
}

/// Refuses a sample with fewer than `needed` values, or with one that is not finite.
pub(crate) fn require(what: &'static str, sample: &[f64], needed: usize) -> Result<(), StatsError> {
    if sample.len() < needed {
        return Err(StatsError::TooFew { what, needed, got: sample.len() });
    }
    match sample.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        Some((index, &value)) => Err(StatsError::NotFinite { what, index, value }),
        None => Ok(()),
    }
}

/// Refuses a confidence level outside (0, 1).
pub(crate) fn require_level(level: f64) -> Result<(), StatsError> {
    if level > 0.0 && level < 1.0 {
        return Ok(());
    }
    Err(StatsError::Parameter { name: "the confidence level", value: level, range: "above 0 and below 1" })
}
