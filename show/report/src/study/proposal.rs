//! The proposals and refusals, with their reasons.

use lineup_advise::proposal::{KindName, PredictedWaits, StallShare};
use lineup_model::figure::{mean, share};
use serde::Serialize;

/// A change that was worked out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Proposal {
    /// The kind of change.
    pub kind: KindName,
    /// The type or variables it concerns.
    pub target: String,
    /// The change in a sentence.
    pub summary: String,
    /// The reasons why it helps, a sentence each.
    pub reasons: Vec<String>,
    /// The predicted waits of threads, where data of different threads are parted. Nothing was run for the prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictedWaits>,
    /// Its savings of each region's lines, the greatest share first.
    pub worth: Vec<SavingReport>,
    /// Lines per call before and after, for each region, data model and line size.
    pub gains: Vec<Gain>,
    /// Size of the type before and after, for each data model.
    pub sizes: Vec<SizeChange>,
    /// Constraints that were obeyed and shaped the result.
    pub constraints: Vec<ConstraintNote>,
    /// The last stage that it reached.
    pub status: ProposalStatus,
    /// The check of its offsets; `None` when it has none to check.
    pub check: Option<OffsetCheck>,
}

/// The last stage that a proposal reached.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProposalStatus {
    /// In the patch.
    InPatch,
    /// Reported for a person to decide; not in the patch.
    Reported,
}

impl ProposalStatus {
    /// The status in a few words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::InPatch => "in the patch",
            Self::Reported => "reported, not in the patch",
        }
    }
}

/// The check of a proposal's offsets.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OffsetCheck {
    /// The compiler gave them, under every data model named.
    Compiled,
    /// The compiler gave them under the recorded data model; those of the others are predicted.
    CompiledRecordedOnly,
    /// Predicted only: nothing was compiled.
    Predicted,
}

impl OffsetCheck {
    /// The check in words.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Compiled => "offsets read back from the compiler under every data model named",
            Self::CompiledRecordedOnly => {
                "offsets read back from the compiler under the recorded data model, predicted for the other"
            }
            Self::Predicted => "offsets predicted, not compiled",
        }
    }
}

/// Expected lines per call of one region under one data model and line size.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Gain {
    /// Index into the report's regions.
    pub region: usize,
    /// The data model, such as `LP64`.
    pub data_model: String,
    /// The line size.
    pub line_bytes: u32,
    /// Present lines per call; `None` when they were not observed.
    pub before: Option<f64>,
    /// Lines per call with the proposal.
    pub after: f64,
}

/// A proposal's savings in one region, compared with all lines that the region needs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SavingReport {
    /// Index into the report's regions.
    pub region: usize,
    /// Lines per call saved at the line size that decides; negative when more are needed.
    pub lines_saved: f64,
    /// Data lines that a call needs in all; `None` when not known.
    pub of_lines: Option<f64>,
    /// The first over the second.
    pub share: Option<f64>,
    /// The savings as a share of the modelled stalls; `None` where none were observed.
    pub stalls: Option<StallShare>,
    /// Calls of the region per second of the program's own time; `None` when not observed.
    pub calls_per_second: Option<f64>,
}

impl SavingReport {
    /// The lines that a call saves, or needs more, compared with all that it needs.
    pub(crate) fn lines(&self) -> String {
        let of = match (self.of_lines, self.share) {
            (Some(lines), Some(part)) => format!(" of {} ({})", mean(lines), share(part.abs())),
            _ => String::new(),
        };
        let what = if self.lines_saved < 0.0 { "more" } else { "fewer" };
        let count = mean(self.lines_saved.abs());
        let lines = if count == "1" { "line" } else { "lines" };
        format!("{count} {what} {lines}{of}")
    }

    /// The savings compared with the whole run, as a part of a sentence.
    pub(crate) fn scale(&self) -> String {
        let stalls = match &self.stalls {
            None => "modelled stalls not observed".to_owned(),
            Some(stalls) => {
                let program = match stalls.of_program {
                    Some(part) => format!("{} of all that ran", share(part)),
                    None => "of all that ran not observed".to_owned(),
                };
                format!(
                    "modelled stalls, if these lines miss like others: {} cycles a call, {} of the region's, {program}",
                    mean(stalls.cycles),
                    share(stalls.of_region)
                )
            }
        };
        match self.calls_per_second {
            Some(rate) => format!("{stalls}; {} calls per second", mean(rate)),
            None => format!("{stalls}; calls per second not observed"),
        }
    }
}

/// A type's size under one data model.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SizeChange {
    /// The data model.
    pub data_model: String,
    /// Size before.
    pub before_bytes: u64,
    /// Size after.
    pub after_bytes: u64,
}

/// A constraint at work.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ConstraintNote {
    /// The constraint in words.
    pub rule: String,
    /// Members or variables it concerns; empty when it concerns the whole.
    pub names: Vec<String>,
    /// Its place in the source, as in `src/timer.c:71`.
    pub at: Option<String>,
    /// The exact observation.
    pub detail: Option<String>,
}

/// Something that was not proposed, although the lines would gain.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Refusal {
    /// The type or variables.
    pub target: String,
    /// The constraints that forbid it.
    pub because: Vec<ConstraintNote>,
    /// Present lines per call, and the least number that its hot bytes need.
    pub gains: Vec<Gain>,
    /// The user's way out, when there is one.
    pub way_out: Option<String>,
}

/// The change as text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Patch {
    /// The file it was written to.
    pub file: String,
    /// A unified diff that `git apply` takes in the source folder.
    pub text: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_more_lines_says_so() {
        let worth = |lines_saved: f64| SavingReport {
            region: 0,
            lines_saved,
            of_lines: Some(12.0),
            share: Some(lines_saved / 12.0),
            stalls: None,
            calls_per_second: None,
        };
        assert_eq!(worth(3.0).lines(), "3 fewer lines of 12 (25.0 %)");
        assert_eq!(worth(-6.0).lines(), "6 more lines of 12 (50.0 %)");
    }
}
