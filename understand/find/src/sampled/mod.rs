//! Findings from samples: functions, types and members, and the evidence for the name of each access.

mod findings;
mod model_comparison;
mod noteworthy;
mod operands;
mod options;
mod passed_lines;
mod place_names;
mod search;
mod sums;
mod wording;

pub use findings::{
    AgainstModel, FileInformation, FindingReason, SampledAccesses, SampledByte, SampledCpu, SampledData,
    SampledEvent, SampledEvidence, SampledFile, SampledFinding, SampledFindings, SampledFunction,
    SampledLine, SampledMember, SampledNext, SampledProcess, SampledSource, SampledUser, SampledWithCallees,
};
pub use model_comparison::against_model;
pub use operands::operand_at;
pub use options::{MoreNames, SampledOptions};
pub use search::sampled;
