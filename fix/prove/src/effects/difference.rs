//! Effects that differ: between two variants, or already between runs of one.

/// An effect that two runs of the same variant already do differently.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NotCompared {
    /// The effect, such as `bytes written to standard output`.
    pub effect: String,
    /// The share of it, such as `2 of 14 lines or pieces`.
    pub share: String,
}

/// The first effect in which two variants differ though the runs of each agree among themselves.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{effect}: {how}")]
pub struct EffectDifference {
    /// The effect, such as `call 2 of ioctl on /dev/pts/0`.
    pub effect: String,
    /// The difference, such as `offset 8 of 16 bytes: 02 00 against 01 00`.
    pub how: String,
    /// True when runs of one variant differ elsewhere in this effect, so that chance may have made these parts alike.
    pub varies: bool,
}
