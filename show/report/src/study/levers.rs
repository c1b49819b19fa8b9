//! The levers of a study that was given no region: each kind of change that it tried, and the gain of each.

use super::proof::{ProofReport, TimeVerdict};
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

/// Objects in blocks of the program's own.
pub const POOLS: &str = "pools";

/// All levers that gain.
pub const TOGETHER: &str = "together";

/// One lever.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LeverReport {
    /// [`LAYOUT`], [`POOLS`], [`PREFETCH`], [`PLACEMENT`], [`CODE_ORDER`] or [`TOGETHER`].
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
        self.elapsed.as_ref().map_or_else(|| lineup_model::figure::UNKNOWN.to_owned(), Change::in_words)
    }
}
