//! Intervals of a share of counted trials.

/// The interval of a share at a level: Wilson's score interval, which also holds for shares near 0 and 1. `None`
/// without a trial, and for an invalid level.
pub fn wilson(hits: u64, trials: u64, level: f64) -> Option<[f64; 2]> {
    if trials == 0 || hits > trials || !(0.0..1.0).contains(&level) {
        return None;
    }
    let quantile = crate::interval::normal_quantile(0.5 + level / 2.0);
    let (count, share) = (trials as f64, hits as f64 / trials as f64);
    let square = quantile * quantile;
    let centre = share + square / (2.0 * count);
    let reach = quantile * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
    let whole = 1.0 + square / count;
    Some([((centre - reach) / whole).max(0.0), ((centre + reach) / whole).min(1.0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_intervals_are_met() {
        // Newcombe, Statistics in Medicine 17 (1998), table I, method 3: 81 of 263, 15 of 148, 0 of 20, 1 of 29.
        let published = [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ];
        for (hits, trials, low, high) in published {
            let [got_low, got_high] = wilson(hits, trials, 0.95).expect("an interval");
            assert!((got_low - low).abs() < 6e-5 && (got_high - high).abs() < 6e-5, "{hits} of {trials}");
        }
    }

    #[test]
    fn what_is_no_share_has_no_interval() {
        assert_eq!([wilson(0, 0, 0.95), wilson(2, 1, 0.95), wilson(1, 2, 1.0)], [None; 3]);
        assert_eq!(wilson(1, 2, f64::NAN), None);
    }
}
