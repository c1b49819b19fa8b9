//! Histograms that merge: counts by value, to within one part in 32.

use crate::layout::{BUCKETS, bucket_of, bucket_range};

/// Counts by value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS as usize] }
    }
}

impl FromIterator<u64> for Histogram {
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Self {
        let mut histogram = Self::default();
        values.into_iter().for_each(|value| histogram.add(value, 1));
        histogram
    }
}

impl Histogram {
    /// Counts `value` `times` more.
    pub fn add(&mut self, value: u64, times: u64) {
        if let Some(count) = self.counts.get_mut(bucket_of(value) as usize) {
            *count = count.saturating_add(times);
        }
    }

    /// Adds the counts of a bucket, as stored in the file.
    pub(crate) fn add_bucket(&mut self, bucket: usize, times: u64) {
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(times);
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*more);
        }
    }

    /// The number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The non-empty buckets: least value, greatest value, count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let filled = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        filled.map(|(bucket, count)| {
            let (least, greatest) = bucket_range(bucket as u64);
            (least, greatest, *count)
        })
    }

    /// The middle of the bucket that holds quantile `q` (from 0 to 1) by nearest rank; `None` when empty.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let total = self.total();
        let rank = ((q.clamp(0.0, 1.0) * total as f64).ceil() as u64).clamp(1, total.max(1));
        let mut seen = 0u64;
        self.buckets().find_map(|(least, greatest, count)| {
            seen = seen.saturating_add(count);
            (seen >= rank).then_some(least + (greatest - least) / 2)
        })
    }

    /// The middle of the fullest bucket, judged by count per unit of value; `None` when empty.
    pub fn peak(&self) -> Option<u64> {
        let density =
            |least: u64, greatest: u64, count: u64| count as f64 / ((greatest - least) as f64 + 1.0);
        self.buckets()
            .max_by(|a, b| density(a.0, a.1, a.2).total_cmp(&density(b.0, b.1, b.2)))
            .map(|(least, greatest, _)| least + (greatest - least) / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_a_bucket_of_the_truth() {
        let histogram: Histogram = (1..=10_000).collect();
        for (q, truth) in [(0.5, 5_000.0), (0.99, 9_900.0), (1.0, 10_000.0), (0.0, 1.0)] {
            let found = histogram.quantile(q).unwrap() as f64;
            assert!((found - truth).abs() <= truth / 32.0 + 1.0, "{q}: {found}");
        }
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn merging_is_counting_both() {
        let mut left: Histogram = [1, 5, 1_000].into_iter().collect();
        left.merge(&[5, 7].into_iter().collect());
        assert_eq!(left, [1, 5, 5, 7, 1_000].into_iter().collect());
        assert_eq!((left.total(), left.peak()), (5, Some(5)));
    }
}
