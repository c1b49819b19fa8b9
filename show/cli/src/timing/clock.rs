//! The conversion of timed cycles to nanoseconds.

use lineup_study::recorder::{TimedRegion, Times};
use lineup_trace::Histogram;
use lineup_trace::layout::bucket_range;

/// The calls of each region, and their total time in nanoseconds, without the stamps.
pub(crate) fn totals(times: &Times) -> Vec<(u64, u64)> {
    let clock = Clock::of(times);
    let total = |region: &TimedRegion| {
        let calls = histogram(region).total();
        (calls, clock.total_ns(region, calls) as u64)
    };
    times.regions.iter().map(total).collect()
}

/// Counts of calls, as a trace has them.
pub(crate) fn histogram(region: &TimedRegion) -> Histogram {
    let mut histogram = Histogram::default();
    for (count, bucket) in region.buckets.iter().zip(0..).filter(|(count, _)| **count > 0) {
        histogram.add(bucket_range(bucket).0, *count);
    }
    histogram
}

/// The mean of all but the longest hundredth, which something else has interrupted.
pub(crate) fn usual_mean(histogram: &Histogram) -> f64 {
    let longest = histogram.quantile(0.99).unwrap_or_default();
    let usual = || histogram.buckets().filter(|(from, _, _)| *from <= longest);
    let sum: f64 = usual().map(|(from, to, calls)| (from + (to - from) / 2) as f64 * calls as f64).sum();
    sum / usual().map(|(_, _, calls)| calls).sum::<u64>().max(1) as f64
}

/// The conversion of cycles to time.
pub(crate) struct Clock {
    pub(crate) cycles_ns: f64,
    pub(crate) stamp_cycles: f64,
    pub(crate) begun_at: u64,
}

impl Clock {
    pub(crate) fn of(times: &Times) -> Clock {
        Clock {
            cycles_ns: 1e9 / times.cycles_per_second.max(1.0),
            stamp_cycles: usual_mean(&histogram(&times.stamps)),
            begun_at: times.begun_at,
        }
    }

    /// The time of all these calls of a region, without that of the stamps.
    pub(crate) fn total_ns(&self, region: &TimedRegion, calls: u64) -> f64 {
        (region.sum as f64 - calls as f64 * self.stamp_cycles).max(0.0) * self.cycles_ns
    }

    /// A span of the counter.
    pub(crate) fn span_ns(&self, cycles: u64) -> f64 {
        cycles as f64 * self.cycles_ns
    }

    /// A call's time without that of the stamps.
    pub(crate) fn ns(&self, cycles: u64) -> f64 {
        (cycles as f64 - self.stamp_cycles).max(0.0) * self.cycles_ns
    }
}
