//! All that a study found out.

use super::certificate::CertificateReport;
use super::code::CodeReport;
use super::contention::Contention;
use super::coverage::{Coverage, NotObserved, SharedLine};
use super::guest::GuestComparison;
use super::levers::{LeverReport, TOGETHER};
use super::line_map::LineMap;
use super::proof::ProofReport;
use super::proposal::{Patch, Proposal, Refusal};
use super::region::RegionReport;
use super::setting::{CommandLine, Fact};
use serde::Serialize;

/// The schema that [`StudyReport`] follows as JSON.
pub const STUDY_SCHEMA: &str = "lineup.study/1";

/// Everything that a study found out.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StudyReport {
    /// Always [`STUDY_SCHEMA`].
    pub schema: &'static str,
    /// The subject of the study, such as the program's name.
    pub title: String,
    /// The commands that repeat the study, in order.
    pub commands: Vec<CommandLine>,
    /// The surroundings of the study: machine, data model, tools, placement.
    pub setting: Vec<Fact>,
    /// The line size that decides.
    pub line_bytes: u32,
    /// The recorded data model, such as `LP64`; empty when it is not known.
    pub data_model: String,
    /// The regions, in the order in which they were given.
    pub regions: Vec<RegionReport>,
    /// The named accesses; `None` when nothing was recorded.
    pub coverage: Option<Coverage>,
    /// The line maps, most telling first.
    pub maps: Vec<LineMap>,
    /// Lines that pass between threads, most often first.
    pub shared_lines: Vec<SharedLine>,
    /// The proposals.
    pub proposals: Vec<Proposal>,
    /// The refusals.
    pub refusals: Vec<Refusal>,
    /// Types whose members already lie as well as any allowed order puts them.
    pub already_good: Vec<String>,
    /// The patch; `None` when nothing is changed.
    pub patch: Option<Patch>,
    /// The patch's certificate, or why there is none; `None` without a patch, and where no study writes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateReport>,
    /// Side effects, a sentence each: data that lies elsewhere now though no proposal names it.
    pub side_effects: Vec<String>,
    /// The comparison's result; `None` when none was made.
    pub proof: Option<ProofReport>,
    /// The times of the threads' calls on one CPU and on more; `None` when they were not compared.
    pub contention: Option<Contention>,
    /// Two kernels that were built and booted, side by side; `None` for programs, and where there is only one kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestComparison>,
    /// The program's code in another order; `None` when that was not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeReport>,
    /// The levers that were tried; none where the study was given its regions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levers: Vec<LeverReport>,
    /// The reason why two variants that were built and recorded cannot be compared; `None` when they can, or there is
    /// only one.
    pub not_proven: Option<String>,
    /// The parts that were not observed.
    pub not_observed: Vec<NotObserved>,
}

impl StudyReport {
    /// A report that holds nothing yet.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            schema: STUDY_SCHEMA,
            title: title.into(),
            commands: Vec::new(),
            setting: Vec::new(),
            line_bytes: 64,
            data_model: String::new(),
            regions: Vec::new(),
            coverage: None,
            maps: Vec::new(),
            shared_lines: Vec::new(),
            proposals: Vec::new(),
            refusals: Vec::new(),
            already_good: Vec::new(),
            patch: None,
            certificate: None,
            side_effects: Vec::new(),
            proof: None,
            contention: None,
            guest: None,
            code: None,
            levers: Vec::new(),
            not_proven: None,
            not_observed: Vec::new(),
        }
    }

    /// True for the recorded data model; for any when it is not known.
    pub(crate) fn shows_model(&self, data_model: &str) -> bool {
        self.data_model.is_empty() || self.data_model == data_model
    }

    /// The name of a region by its index; a dash when there is no such region.
    pub fn region_name(&self, region: usize) -> &str {
        self.regions.get(region).map_or(lineup_model::figure::UNKNOWN, |region| &region.name)
    }

    /// The report as JSON with line ends, for files and for `--json`.
    ///
    /// # Errors
    /// When a value cannot be turned into JSON.
    pub fn to_json(&self) -> Result<String, crate::ReportError> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        Ok(text)
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
    use crate::placement::Change;
    use crate::study::levers::{CODE_ORDER, PLACEMENT};

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
