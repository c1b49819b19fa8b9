//! The predicted waits of threads.

use lineup_explain::threads::WaitsByOrder;
use serde::Serialize;

/// Waits of the recorded accesses as the coherence model counts them: a prediction, in which only the proposed data
/// lies elsewhere.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PredictedWaits {
    /// Accesses of all threads.
    pub accesses: u64,
    /// With data where they are.
    pub before: WaitsByOrder,
    /// With data where they would be.
    pub after: WaitsByOrder,
}

impl PredictedWaits {
    /// Whether at most half as many waits for the line alone are predicted, in the recorded order or in the order with most
    /// waits.
    pub(crate) fn is_half(&self) -> bool {
        let alone = |waits: &WaitsByOrder| (waits.recorded.of_line_alone, waits.of_line_alone_at_most());
        let (before, after) = (alone(&self.before), alone(&self.after));
        let is_half = |before: u64, after: u64| after < before && after <= before / 2;
        is_half(before.0, after.0) || is_half(before.1, after.1)
    }

    /// In a sentence.
    pub fn in_words(&self) -> String {
        let per_thousand = |waits: u64| 1000.0 * waits as f64 / self.accesses.max(1) as f64;
        let alone = |waits: &WaitsByOrder| {
            let range = [waits.recorded, waits.fewest, waits.most].map(|order| order.of_line_alone);
            let [recorded, least, most] =
                [range[0], range.into_iter().min().unwrap_or(0), range.into_iter().max().unwrap_or(0)];
            let [recorded, least, most] = [recorded, least, most].map(per_thousand);
            format!("{recorded:.1} ({least:.1} to {most:.1} in other orders)")
        };
        let all = |waits: &WaitsByOrder| per_thousand(waits.recorded.all());
        format!(
            "Predicted, before any run of it: of a thousand accesses {} wait for the line alone, then {}; with waits for the same bytes it is {:.1}, then {:.1}.",
            alone(&self.before),
            alone(&self.after),
            all(&self.before),
            all(&self.after)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineup_explain::threads::Waits;

    #[test]
    fn half_of_the_waits_have_to_go_in_the_recorded_order_or_the_one_with_most() {
        let waits = |recorded: u64, most: u64| {
            let alone = |of_line_alone: u64| Waits { of_same_bytes: 7, of_line_alone };
            WaitsByOrder { recorded: alone(recorded), fewest: alone(0), most: alone(most) }
        };
        let is_half = |before, after| PredictedWaits { accesses: 1000, before, after }.is_half();
        assert!(is_half(waits(10, 90), waits(0, 0)) && is_half(waits(10, 90), waits(10, 45)));
        assert!(!is_half(waits(10, 90), waits(6, 60)), "elements of an array that share a line");
        assert!(!is_half(waits(0, 0), waits(0, 0)));
    }
}
