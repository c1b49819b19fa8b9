//! Samples added up.

/// Samples added up.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Sum {
    /// The number of samples.
    pub samples: u64,
    /// Events they stand for.
    pub period: u64,
    /// Their weights.
    pub weight: u64,
}

impl Sum {
    /// Adds others.
    pub fn add(&mut self, other: Sum) {
        self.samples += other.samples;
        self.period = self.period.saturating_add(other.period);
        self.weight = self.weight.saturating_add(other.weight);
    }
}
