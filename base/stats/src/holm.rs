//! Several questions of one data set.

/// P-values adjusted by Holm's step-down method (Scandinavian Journal of Statistics 6, 1979): an adjusted value at or
/// under α keeps the chance of any false alarm among all of them at α under any dependence. The result keeps the order
/// of the input; a value that is not a number counts as 1.
///
/// ```
/// let adjusted = lineup_stats::holm::adjust(&[0.01, 0.04, 0.03]);
/// assert!((adjusted[0] - 0.03).abs() < 1e-12);
/// assert!((adjusted[1] - 0.06).abs() < 1e-12);
/// assert!((adjusted[2] - 0.06).abs() < 1e-12);
/// ```
pub fn adjust(p_values: &[f64]) -> Vec<f64> {
    let clean = |p: f64| if p.is_nan() { 1.0 } else { p.clamp(0.0, 1.0) };
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| clean(p_values[a]).total_cmp(&clean(p_values[b])));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut running = 0.0f64;
    for (rank, &index) in order.iter().enumerate() {
        let remaining = (p_values.len() - rank) as f64;
        running = running.max(clean(p_values[index]) * remaining).min(1.0);
        adjusted[index] = running;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::adjust;

    #[test]
    fn one_value_is_left_alone_and_none_is_none() {
        assert_eq!(adjust(&[0.04]), [0.04]);
        assert!(adjust(&[]).is_empty());
    }

    #[test]
    fn adjusted_values_never_exceed_one_and_keep_their_order() {
        let adjusted = adjust(&[0.5, 0.9, 0.001, f64::NAN]);
        assert_eq!(adjusted[2], 0.004);
        assert!(adjusted.iter().all(|p| *p <= 1.0));
        assert!(adjusted[0] <= adjusted[1]);
    }
}
