//! Values in groups: how much of their spread the groups are.

/// The share of the variance of single values that lies between their groups, from 0 to 1: a one-way model with random
/// effects, by the analysis of variance (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6). `None`
/// with fewer than two groups, without a group of two values, and when no value differs.
pub fn share_between(groups: &[Vec<f64>]) -> Option<f64> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let values: usize = groups.iter().map(|group| group.len()).sum();
    if groups.len() < 2 || values <= groups.len() {
        return None;
    }
    let (count, between_degrees) = (values as f64, groups.len() as f64 - 1.0);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let all = groups.iter().flat_map(|group| group.iter()).sum::<f64>() / count;
    let squares = |values: &[f64], from: f64| values.iter().map(|value| (value - from).powi(2)).sum::<f64>();
    let within =
        groups.iter().map(|group| squares(group, mean(group))).sum::<f64>() / (count - groups.len() as f64);
    let between = groups.iter().map(|group| group.len() as f64 * (mean(group) - all).powi(2)).sum::<f64>();
    let sizes = groups.iter().map(|group| (group.len() as f64).powi(2)).sum::<f64>();
    let size = (count - sizes / count) / between_degrees;
    let of_groups = ((between / between_degrees - within) / size).max(0.0);
    let total = of_groups + within;
    (total > 0.0).then(|| of_groups / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_all_of_the_spread_or_none_of_it() {
        assert_eq!(share_between(&[vec![1.0, 1.0], vec![3.0, 3.0], vec![5.0, 5.0]]), Some(1.0));
        assert_eq!(share_between(&[vec![1.0, 3.0], vec![3.0, 1.0]]), Some(0.0));
        // Means 2 and 6, squares within 2 each: (16 - 2) / 2 = 7 between, 2 within.
        assert_eq!(share_between(&[vec![1.0, 3.0], vec![5.0, 7.0]]), Some(7.0 / 9.0));
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        assert_eq!(share_between(&[vec![1.0, 2.0]]), None);
        assert_eq!(share_between(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(share_between(&[vec![1.0, 1.0], vec![1.0, 1.0]]), None);
    }
}
