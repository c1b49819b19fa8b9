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
mod setting;
mod side_effects;
mod study_report;

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
pub use levers::{CODE_ORDER, LAYOUT, LeverReport, PLACEMENT, POOLS, PREFETCH, TOGETHER};
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
pub use region::{
    CallTime, Footprint, LineDistribution, LineKind, MissesPerCall, Quantiles, RegionReport, region_letter,
};
pub use setting::{CYCLES, CommandLine, Fact, SOURCES, WEIGHTS};
pub use side_effects::moved_variables;
pub use study_report::{STUDY_SCHEMA, StudyReport};
