//! The levers of a study that was given no region: each kind of change that it tried, and the gain of each.

use super::{ProofReport, StudyReport, TimeVerdict};
use crate::placement::{Action, Change, PlacementReport};
use serde::Serialize;

/// The order of members and other changes of the sources.
pub const LAYOUT: &str = "layout";
/// Other allocators, pools and huge pages.
pub const PLACEMENT: &str = "placement";
/// The program's code in another order.
pub const CODE_ORDER: &str = "code order";

/// Prefetches of the next objects.
pub const PREFETCH: &str = "prefetch";

/// All levers that gain.
pub const TOGETHER: &str = "together";

/// One lever.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LeverReport {
    /// [`LAYOUT`], [`PREFETCH`], [`PLACEMENT`], [`CODE_ORDER`] or [`TOGETHER`].
    pub lever: &'static str,
    /// The result in one sentence; the reason where the lever was not tried.
    pub result: String,
    /// The program's elapsed time with this change alone, or with all; `None` where none was measured.
    pub elapsed: Option<Change>,
    /// True where the time is less beyond doubt and beyond the margin.
    pub is_gain: bool,
    /// The ways to use it; none where it gains nothing.
    pub actions: Vec<Action>,
    /// The page with the details, below the folder of this report.
    pub page: Option<String>,
    /// The candidates that were tried, and those that were not, a sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
}

impl LeverReport {
    /// A lever that was not tried, or that came to no measurement, with the reason.
    pub fn without_time(lever: &'static str, why: impl Into<String>) -> Self {
        Self {
            lever,
            result: why.into(),
            elapsed: None,
            is_gain: false,
            actions: Vec::new(),
            page: None,
            details: Vec::new(),
        }
    }

    /// A lever whose program was compared with the unchanged one. The way to use it is shown where it gains.
    pub fn of_proof(lever: &'static str, proof: &ProofReport, action: Option<Action>) -> Self {
        let elapsed = proof
            .time
            .as_ref()
            .map(|time| Change { ratio: time.ratio, interval: [time.ratio_low, time.ratio_high] });
        let is_gain = proof
            .time
            .as_ref()
            .is_some_and(|time| time.verdict == TimeVerdict::Changed && time.ratio < 1.0 - time.margin);
        let actions = action.into_iter().filter(|_| is_gain).collect();
        Self {
            lever,
            result: proof.conclusion.clone(),
            elapsed,
            is_gain,
            actions,
            page: None,
            details: Vec::new(),
        }
    }

    /// The placements, with their page.
    pub fn of_placement(report: &PlacementReport, page: String) -> Self {
        Self {
            lever: PLACEMENT,
            result: report.verdict.clone(),
            elapsed: report.first_confirmed().map(|input| input.elapsed.clone()),
            is_gain: !report.actions.is_empty(),
            actions: report.actions.clone(),
            page: Some(page),
            details: Vec::new(),
        }
    }

    /// The measured time in words; a dash where none was measured.
    pub(crate) fn time_in_words(&self) -> String {
        self.elapsed.as_ref().map_or_else(|| crate::figure::UNKNOWN.to_owned(), Change::in_words)
    }
}

impl StudyReport {
    /// The result of all levers in one sentence; `None` where the study was given its regions.
    pub fn answer(&self) -> Option<String> {
        if self.levers.is_empty() {
            return None;
        }
        let gains = self.levers.iter().filter(|lever| lever.is_gain);
        let (together, alone): (Vec<_>, Vec<_>) = gains.partition(|lever| lever.lever == TOGETHER);
        let by: Vec<String> =
            alone.iter().map(|lever| format!("by {} {}", lever.lever, lever.time_in_words())).collect();
        Some(match (together.first(), by.as_slice()) {
            (_, []) => "No lever takes less time beyond doubt.".to_owned(),
            (_, [one]) => format!("Less time, changed: {one}."),
            (Some(all), several) => {
                format!("Less time, changed: {}; each alone {}.", all.time_in_words(), several.join(", "))
            }
            (None, several) => format!("Less time, changed: {}; each alone.", several.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gains(lever: &'static str, ratio: f64) -> LeverReport {
        let elapsed = Some(Change { ratio, interval: [ratio - 0.01, ratio + 0.01] });
        LeverReport { elapsed, is_gain: true, ..LeverReport::without_time(lever, "less time") }
    }

    fn answer(levers: Vec<LeverReport>) -> String {
        StudyReport { levers, ..StudyReport::new("demo") }.answer().expect("levers")
    }

    #[test]
    fn the_answer_is_what_all_levers_gain_together_where_that_was_confirmed() {
        let alone = [gains(PLACEMENT, 0.8), gains(CODE_ORDER, 0.9)];
        let together = gains(TOGETHER, 0.7);
        let not_confirmed = LeverReport { is_gain: false, ..together.clone() };
        let of = |last: &[LeverReport]| answer([&alone[..], last].concat());
        assert!(
            of(&[together]).starts_with("Less time, changed: −30.00 % [−31.00 %, −29.00 %]; each alone by")
        );
        for last in [vec![not_confirmed], Vec::new()] {
            let said = of(&last);
            assert!(said.starts_with("Less time, changed: by placement −20.00 %"), "{said}");
            assert!(said.ends_with("; each alone."), "{said}");
        }
    }
}
