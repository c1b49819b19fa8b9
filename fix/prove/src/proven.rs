//! A value that only a comparison that ran can make.

/// A value together with the evidence for it. There is no way to make one but to run a comparison:
///
/// ```compile_fail
/// use lineup_prove::{Evidence, Proven};
/// let claimed = Proven { value: "5 % faster", evidence: Evidence { runs: 0, blocks: 0 } };
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Proven<T> {
    value: T,
    evidence: Evidence,
}

/// The evidence for a proven value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Evidence {
    /// The number of runs of all variants, warm-up included.
    pub runs: u64,
    /// The number of complete timed blocks.
    pub blocks: u64,
}

impl<T> Proven<T> {
    /// For the comparisons of this crate alone.
    pub(crate) fn new(value: T, evidence: Evidence) -> Self {
        Self { value, evidence }
    }

    /// The value.
    pub fn value(&self) -> &T {
        &self.value
    }

    /// The evidence it rests on.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }
}
