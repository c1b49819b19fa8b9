//! Measurements in the order they were taken: drift and memory.

use crate::error::{StatsError, require};
use crate::interval::{normal_cdf, t_two_sided_p};
use crate::summary::{deviation, mean};

/// The trend and memory that the order of a series shows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesCheck {
    /// Change over the whole series along the fitted line, as a share of the mean.
    pub drift: f64,
    /// P-value of "no drift", by the t test of the slope.
    pub drift_p_value: f64,
    /// Correlation of each value with the next, after the line is taken out.
    pub autocorrelation: f64,
    /// P-value of "no memory".
    pub autocorrelation_p_value: f64,
}

/// P-values below this are flagged.
const FLAG: f64 = 0.01;

impl SeriesCheck {
    /// True when the series drifts beyond doubt.
    pub fn drifts(&self) -> bool {
        self.drift_p_value < FLAG
    }

    /// True when neighbours resemble each other beyond doubt.
    pub fn remembers(&self) -> bool {
        self.autocorrelation > 0.0 && self.autocorrelation_p_value < FLAG
    }
}

/// Looks for drift and memory in a series.
///
/// # Errors
/// With fewer than eight values or one that is not finite.
pub fn check(series: &[f64]) -> Result<SeriesCheck, StatsError> {
    require("the search for drift", series, 8)?;
    let n = series.len() as f64;
    let centre = mean(series);
    let middle = (n - 1.0) / 2.0;
    let (mut products, mut squares) = (0.0, 0.0);
    for (index, value) in series.iter().enumerate() {
        let step = index as f64 - middle;
        products += step * (value - centre);
        squares += step * step;
    }
    let slope = products / squares;
    let rest: Vec<f64> =
        series.iter().enumerate().map(|(at, value)| value - centre - slope * (at as f64 - middle)).collect();
    let noise = deviation(&rest) * ((n - 1.0) / (n - 2.0)).sqrt();
    let error = noise / squares.sqrt();
    let drift_p_value = if error > 0.0 {
        t_two_sided_p(slope / error, n - 2.0)
    } else if slope == 0.0 {
        1.0
    } else {
        0.0
    };
    let autocorrelation = neighbours(&rest);
    // Under independence the lag-one correlation of residuals has mean −1/n and variance near 1/n.
    let z = (autocorrelation + 1.0 / n) * n.sqrt();
    Ok(SeriesCheck {
        drift: if centre == 0.0 { 0.0 } else { slope * (n - 1.0) / centre.abs() },
        drift_p_value,
        autocorrelation,
        autocorrelation_p_value: 2.0 * normal_cdf(-z.abs()),
    })
}

/// Lag-one autocorrelation of values whose mean is zero.
fn neighbours(rest: &[f64]) -> f64 {
    let squares: f64 = rest.iter().map(|value| value * value).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    rest.windows(2).map(|pair| pair[0] * pair[1]).sum::<f64>() / squares
}

/// The number of neighbouring blocks to resample together when the series remembers: the cube root of its length
/// (Künsch, Annals of Statistics 17, 1989, gives the order of growth). 1 when it does not.
pub fn run_length(series: &[f64]) -> usize {
    match check(series) {
        Ok(check) if check.remembers() => ((series.len() as f64).cbrt().ceil() as usize).max(2),
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Seed;
    use crate::synthetic::{Disturbance, SyntheticProgram};

    fn series(disturbance: Disturbance, seed: u64) -> Vec<f64> {
        let mut program = SyntheticProgram::new(0.0, disturbance, Seed(seed));
        (0..60).map(|_| program.run(false)).collect()
    }

    #[test]
    fn plain_noise_is_rarely_flagged_and_drift_nearly_always() {
        let flagged = |disturbance, flag: fn(&SeriesCheck) -> bool| {
            (0..200).filter(|seed| flag(&check(&series(disturbance, *seed)).unwrap())).count()
        };
        assert!(flagged(Disturbance::Plain, SeriesCheck::drifts) <= 6);
        assert!(flagged(Disturbance::Plain, SeriesCheck::remembers) <= 6);
        assert!(flagged(Disturbance::Drift, SeriesCheck::drifts) >= 190);
    }

    #[test]
    fn a_wave_remembers_and_asks_for_longer_runs() {
        let wave: Vec<f64> = (0..64).map(|i| 100.0 + (f64::from(i) / 5.0).sin()).collect();
        assert!(check(&wave).unwrap().remembers());
        assert_eq!(run_length(&wave), 4);
        assert_eq!(run_length(&series(Disturbance::Plain, 1)), 1);
    }

    #[test]
    fn a_constant_series_neither_drifts_nor_remembers() {
        let flat = check(&[3.0; 10]).unwrap();
        assert!(!flat.drifts() && !flat.remembers());
    }
}
