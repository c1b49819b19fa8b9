//! What advice says: proposals with figures and reasons, and refusals.

use crate::constraint::Binding;
use serde::Serialize;
use std::collections::BTreeMap;

/// Expected lines per call of one region, at one line size under one data model.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionLines {
    /// The region's function.
    pub region: String,
    /// `LP64` or `ILP32`.
    pub data_model: &'static str,
    /// Line size in bytes.
    pub line_bytes: u64,
    /// Lines per call of the objects concerned before; `None` when not observed (addresses of variables
    /// under the data model that was not recorded).
    pub before: Option<f64>,
    /// Lines per call with the proposal.
    pub after: f64,
}

impl RegionLines {
    /// Lines per call saved; 0 when the number before is unknown.
    pub fn gain(&self) -> f64 {
        self.before.map_or(0.0, |before| before - self.after)
    }
}

/// Size of a type under one data model.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct SizeChange {
    /// `LP64` or `ILP32`.
    pub data_model: &'static str,
    /// Size before, in bytes.
    pub before_bytes: u64,
    /// Size after, in bytes.
    pub after_bytes: u64,
}

/// How far a proposal was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The compiler gave the predicted offsets, under every data model named.
    Compiled,
    /// The compiler gave the predicted offsets of the recorded data model; others are predicted.
    CompiledRecordedOnly,
    /// Nothing was compiled.
    Predicted,
}

/// Why a member moved, or what its place gives.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reason {
    /// The member.
    pub member: String,
    /// One sentence.
    pub because: String,
}

/// Members of a type in a better order.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OrderProposal {
    /// The type's name.
    #[serde(rename = "type")]
    pub type_name: String,
    /// File that declares it, relative to the source folder.
    pub path: String,
    /// Top-level members as declared now; anonymous ones as `(anonymous)`.
    pub old_order: Vec<String>,
    /// Top-level members as proposed.
    pub new_order: Vec<String>,
    /// `new_order` as indices into `old_order`.
    pub field_order: Vec<usize>,
    /// Members that change place relative to the others.
    pub moved: Vec<String>,
    /// Bytes of members that change place.
    pub moved_bytes: u64,
    /// Lines per call before and after.
    pub lines: Vec<RegionLines>,
    /// Size before and after.
    pub sizes: Vec<SizeChange>,
    /// True when no allowed order needs fewer lines.
    pub is_proven_minimal: bool,
    /// How it was checked.
    pub check: Check,
    /// Why, member by member.
    pub reasons: Vec<Reason>,
    /// Constraints that were obeyed.
    pub obeyed: Vec<Binding>,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// Variables gathered into one aligned struct.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GatherProposal {
    /// Name of the new variable.
    pub name: String,
    /// File that defines the variables.
    pub path: String,
    /// The variables, in the order of the new struct's members.
    pub variables: Vec<String>,
    /// Types whose members were reordered for it, hot ones first.
    pub reordered_types: Vec<String>,
    /// Lines per call before and after.
    pub lines: Vec<RegionLines>,
    /// Size of the new struct, per data model.
    pub sizes: Vec<SizeChange>,
    /// How it was checked.
    pub check: Check,
    /// What the user should know.
    pub notes: Vec<Binding>,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// Objects that straddle lines for want of alignment.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AlignmentAdvice {
    /// The type or variable.
    pub owner: String,
    /// Alignment that would help, in bytes.
    pub align_bytes: u64,
    /// Lines per call before and after, of the recorded data model.
    pub lines: Vec<RegionLines>,
    /// Share of the recorded objects that did not start on a line.
    pub unaligned_share: f64,
    /// What to write, and what it cannot fix.
    pub how: String,
}

/// A type of which calls use a small part.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SplitAdvice {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Members that the regions touch.
    pub hot: Vec<String>,
    /// Their bytes.
    pub hot_bytes: u64,
    /// Size of the type in bytes.
    pub size_bytes: u64,
    /// Objects used per call, over all regions.
    pub objects_per_call: f64,
    /// Hot parts that would share one primary line, were they stored apart.
    pub hot_parts_per_line: u64,
}

/// A variable that is read and never written.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ImmediateAdvice {
    /// The variable.
    pub variable: String,
    /// The region that reads it.
    pub region: String,
    /// Loads per call.
    pub loads_per_call: f64,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// Something that would help and is not done, or is not done fully.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Refusal {
    /// The type or variable.
    pub owner: String,
    /// The constraints that forbid it.
    pub constraints: Vec<Binding>,
    /// Lines per call now, and at the least that the hot bytes need.
    pub lines: Vec<RegionLines>,
}

/// All advice on one recording.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Advice {
    /// `lineup.advice/1`.
    pub schema: &'static str,
    /// Line size that decides, in bytes.
    pub line_bytes: u64,
    /// Types to reorder.
    pub orders: Vec<OrderProposal>,
    /// Variables to gather.
    pub gathers: Vec<GatherProposal>,
    /// Objects to align.
    pub alignments: Vec<AlignmentAdvice>,
    /// Types to split.
    pub splits: Vec<SplitAdvice>,
    /// Variables that deserve an immediate value.
    pub immediates: Vec<ImmediateAdvice>,
    /// What is not changed, and why.
    pub refusals: Vec<Refusal>,
    /// Types whose members already lie as well as any allowed order puts them.
    pub already_good: Vec<String>,
    /// The guard for what is proposed.
    #[serde(skip)]
    pub guard: crate::guard::Lock,
    /// Texts after all proposals, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// Version of the JSON form of [`Advice`].
pub const ADVICE_SCHEMA: &str = "lineup.advice/1";
