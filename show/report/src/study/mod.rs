//! The report of a study, as values. Its JSON form is described in `docs/json.md`.

mod certificate;
mod code;
mod contention;
mod coverage;
mod from_advise;
mod from_explain;
mod from_findings;
mod from_usage;
mod guest;
mod levers;
mod line_map;
mod not_observed;
mod optimisers;
mod proof;
mod proposal;
mod region;
mod side_effects;

pub use certificate::{CertificateReport, OpenKind};
pub use code::{
    CALLS, COLD_AGAINST, COUNTS, CodeFigure, CodePerCall, CodeReport, ColdCall, ColdCalls, ColdTime,
    HintsReport, UnusedCode, UnusedInline, not_ordered_in_words,
};
pub use contention::{Contention, ContentionPoint};
pub use coverage::{ClassCount, Coverage, EvidenceCount, FunctionCount, NotObserved, SharedLine};
pub use from_explain::{VariantUse, maps};
pub use from_findings::ProgramFindings;
pub use from_usage::ObjectUse;
pub use guest::{GuestComparison, MeanCost, RegionCosts, TypeLines};
pub use levers::{CODE_ORDER, LAYOUT, LeverReport, PLACEMENT, PREFETCH, TOGETHER};
pub use line_map::{
    Cell, Line, LineMap, MOST_LINES, MemberUse, ObjectLines, Owner, OwnerKind, RegionUse, Sharing, UseClass,
};
pub use optimisers::{
    Figure, NotOptimised, Optimised, OptimisedPair, Optimisers, PATCH, TimeRatio, Together, USER,
};
pub use proof::{OutputCheck, ProofReport, TimeReport, TimeVerdict};
pub use proposal::{
    ConstraintNote, Gain, OffsetCheck, Patch, Proposal, ProposalStatus, Refusal, SavingReport, SizeChange,
};
pub use region::{CallTime, Footprint, LineDistribution, LineKind, MissesPerCall, Quantiles, RegionReport};
pub use side_effects::moved_variables;

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

/// A command line and its purpose.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CommandLine {
    /// Its purpose.
    pub purpose: String,
    /// The text to type.
    pub text: String,
}

/// A named circumstance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// Name of the fact with the extent of the compiler's view of the sources.
pub const SOURCES: &str = "sources";

/// Name of the fact that says where the program's modelled cycles go.
pub const CYCLES: &str = "modelled cycles";

/// Name of the fact with the regions' weights, where they come from samples.
pub const WEIGHTS: &str = "weights";

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
        self.regions.get(region).map_or(crate::figure::UNKNOWN, |region| &region.name)
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

/// The letter that stands for a region on maps: `A` for the first; past `Z` its number.
pub fn region_letter(region: usize) -> String {
    match u8::try_from(region) {
        Ok(index) if index < 26 => char::from(b'A' + index).to_string(),
        _ => format!("#{}", region + 1),
    }
}
