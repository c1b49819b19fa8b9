//! The contents of advice: proposals with figures and reasons, and refusals.

pub use crate::line_figures::{Check, RegionLines, SizeChange};
pub use crate::pool_proposal::{PoolProposal, PooledType};
pub use crate::predicted_waits::PredictedWaits;

use crate::constraints::constraint::Binding;
use crate::judge::asserted::Asserted;
use lineup_model::region::RegionId;
use lineup_model::types::Types;
use serde::Serialize;
use std::collections::BTreeMap;

/// The reason for a member's move, or the benefit of its place.
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
    /// The offsets of the members of `new_order` under the recorded data model, in bits.
    pub new_offsets_bits: Vec<u64>,
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
    /// The gain of more moves than were asked for, if they gain something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub further: Option<FurtherMoves>,
    /// The check of its offsets.
    pub check: Check,
    /// The reasons, member by member.
    pub reasons: Vec<Reason>,
    /// Constraints that were obeyed.
    pub obeyed: Vec<Binding>,
    /// The places of objects over which the figures are averaged, if a slab cache gives several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub averaged: Option<String>,
    /// The audit's observations of it outside the regions, if there was an audit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seen_outside: Option<String>,
    /// Lines of values by position that the patch rewrites in other files, a sentence a file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rewritten_values: Vec<String>,
    /// Members whose values by position get their names in the patch.
    #[serde(skip)]
    pub named_values: Vec<String>,
    /// Room that keeps data of different threads apart, when the proposal is to do that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parted: Option<Parted>,
    /// The layouts that a build has to show.
    #[serde(skip)]
    pub asserted: Vec<Asserted>,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// The gain of more moves than a small patch makes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FurtherMoves {
    /// The number of further moves.
    pub moves: u64,
    /// The region that gains most by them.
    pub region: String,
    /// Its lines per call that they save.
    pub lines_per_call: f64,
}

/// Room between data of different threads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Parted {
    /// Line size that they are kept apart for, in bytes.
    pub line_bytes: u64,
    /// The contention between threads, in a sentence.
    pub because: String,
    /// Bytes of the room in each object.
    pub room_bytes: u64,
    /// The predicted waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictedWaits>,
}

/// The calls of the C library that a cold part changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HeapChange {
    /// Calls that make objects.
    pub makes: usize,
    /// Calls that end them.
    pub ends: usize,
    /// Hot parts come from blocks.
    pub in_blocks: bool,
}

/// Where the members are that left an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartPlace {
    /// A member owns them, and is a value of C++.
    Value,
    /// A member points to them, and calls of the C library make and end objects.
    Pointer(HeapChange),
    /// In an array of their own, in the place that the object has in its array.
    Array {
        /// A call makes both arrays.
        is_made: bool,
    },
    /// A member is a `Box` of them; the members that would have left, and why they stay, if there are any.
    Boxed(String),
}

/// Members that leave the objects of a class for memory of their own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ColdPartProposal {
    /// The class.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The type whose objects calls use: the class, or a tuple of Rust that holds it.
    #[serde(skip)]
    pub holder: String,
    /// The new member, or the array, through which the others are reached.
    pub member: String,
    /// The members that leave.
    pub moved: Vec<String>,
    /// Their groups, where each leaves for an array of its own; empty where all leave as one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Vec<String>>,
    /// The members that stay.
    pub kept: Vec<String>,
    /// Files that change, relative to the source folder.
    pub files: Vec<String>,
    /// Lines per call before, and after where objects lie side by side.
    pub lines: Vec<RegionLines>,
    /// Size of an object before and after.
    pub sizes: Vec<SizeChange>,
    /// The check of its size.
    pub check: Check,
    /// Where the members are.
    #[serde(skip)]
    pub place: PartPlace,
    /// The name under which the change is tried, and refused when it fails: an order of the same members may still pass.
    #[serde(skip)]
    pub owner: String,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// Members of a struct of C that leave it because nothing reads them, and integers that get a smaller type.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NarrowProposal {
    /// The struct.
    #[serde(rename = "type")]
    pub type_name: String,
    /// File that declares it, relative to the source folder.
    pub path: String,
    /// The members that leave.
    pub removed: Vec<String>,
    /// The integers with a smaller type.
    pub narrowed: Vec<NarrowedMember>,
    /// The members that stay, in their new order.
    pub order: Vec<String>,
    /// Members that nothing reads and that stay, each with the reason.
    pub unread: Vec<Binding>,
    /// Files that change, relative to the source folder.
    pub files: Vec<String>,
    /// Lines per call before and after.
    pub lines: Vec<RegionLines>,
    /// Size of an object before and after.
    pub sizes: Vec<SizeChange>,
    /// The check of its offsets.
    pub check: Check,
    /// The layouts that a build has to show.
    #[serde(skip)]
    pub asserted: Vec<Asserted>,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// An integer member with a smaller type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct NarrowedMember {
    /// The member.
    pub member: String,
    /// Its type in the sources.
    pub before: String,
    /// Its type in the patch.
    pub after: String,
    /// The least value that a write in the sources may give it, or zero.
    pub low: i64,
    /// The greatest one.
    pub high: i64,
    /// File and line of the write that gives the value with the greatest distance from zero.
    #[serde(skip)]
    pub widest: Option<(String, u32)>,
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
    /// The check of its offsets.
    pub check: Check,
    /// Notes for the user.
    pub notes: Vec<Binding>,
    /// The layouts that a build has to show.
    #[serde(skip)]
    pub asserted: Vec<Asserted>,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// Variables of different threads on lines of their own.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct VariablesProposal {
    /// The variables.
    pub variables: Vec<String>,
    /// The layout of the variables.
    pub layout: VariableLayout,
    /// Line size that they are kept apart for, in bytes.
    pub line_bytes: u64,
    /// The contention between threads, in a sentence.
    pub because: String,
    /// Lines per call before and after.
    pub lines: Vec<RegionLines>,
    /// Bytes of all of them, before and at most after, under the recorded data model.
    pub sizes: Vec<SizeChange>,
    /// The predicted waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<PredictedWaits>,
    /// True when the compiler was asked for the alignment and the size; else it has taken the text.
    pub is_asserted: bool,
    /// Texts that change, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// The way variables are parted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum VariableLayout {
    /// Each begins a line.
    Aligned,
    /// Each element of an array has lines of its own.
    Spread {
        /// Bytes of an element.
        element_bytes: u64,
        /// Elements that a line would hold.
        per_line: u64,
    },
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
    /// The change to write, and its limits.
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
    /// Bytes of the pointer by which each hot part would find its other part.
    pub pointer_bytes: u64,
    /// Lines per call of the present objects, and of hot parts that are packed together: a lower bound.
    pub lines: Vec<RegionLines>,
    /// The reason why no patch splits it, where one was tried.
    #[serde(skip)]
    pub because: Option<String>,
}

/// Lines of later turns that loops ask for ahead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefetchProposal {
    /// The places.
    pub places: Vec<PrefetchedPlace>,
    /// Texts that change, whole, by path.
    pub edited: BTreeMap<String, String>,
}

/// A prefetch in a loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrefetchedPlace {
    /// File, relative to the source folder.
    pub path: String,
    /// Line of the loop, or of the push, from 1.
    pub line: u32,
    /// The function.
    pub function: String,
    /// The statement, on one line.
    pub statement: String,
}

impl PrefetchedPlace {
    /// Its place, as in `list.c:12 (walk)`.
    pub fn in_words(&self) -> String {
        format!("{}:{} ({})", self.path, self.line, self.function)
    }
}

/// A variable that is read and never written.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ImmediateAdvice {
    /// The variable.
    pub variable: String,
    /// The regions that read it.
    pub loads: Vec<LoadsPerCall>,
    /// Size in bytes.
    pub size_bytes: u64,
}

/// The loads of a variable by a region.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LoadsPerCall {
    /// The region.
    pub region: String,
    /// Loads per call.
    pub loads_per_call: f64,
}

/// The name of a kind.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KindName {
    /// In JSON: words with dashes.
    pub slug: &'static str,
    /// For people.
    pub words: &'static str,
}

impl serde::Serialize for KindName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.slug)
    }
}

/// Room between data of different threads.
pub const PART: KindName = KindName { slug: "part", words: "part data of different threads" };
/// Another order of members.
pub const REORDER: KindName = KindName { slug: "reorder", words: "reorder members" };
/// Variables gathered in one aligned struct.
pub const GATHER: KindName = KindName { slug: "gather", words: "gather variables" };
/// An alignment.
pub const ALIGN: KindName = KindName { slug: "align", words: "align" };
/// Cold members moved out of an object.
pub const SPLIT: KindName = KindName { slug: "split", words: "split hot from cold" };
/// Members of an array's elements in arrays of their own.
pub const COLUMNS: KindName = KindName { slug: "columns", words: "an array for each member" };
/// Members that leave, and integers of smaller types.
pub const NARROW: KindName = KindName { slug: "narrow", words: "remove and narrow members" };
/// The next object's line, asked for ahead.
pub const PREFETCH: KindName = KindName { slug: "prefetch", words: "prefetch the next object" };
/// Objects in blocks of the program's own.
pub const POOL: KindName = KindName { slug: "pool", words: "a pool for objects" };
/// A copy for each thread of a number that all add to.
pub const COPY_PER_THREAD: KindName = KindName { slug: "copy-per-thread", words: "a copy for each thread" };
/// A read-mostly variable made part of the instructions.
pub const IMMEDIATE_VALUE: KindName = KindName { slug: "immediate-value", words: "immediate value" };

/// The saving of a proposal in one region, and the region's total need.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionSaving {
    /// The region's number.
    #[serde(skip)]
    pub id: RegionId,
    /// The region's function.
    pub region: String,
    /// Lines per call saved at the line size that decides; negative when more are needed.
    pub lines_saved: f64,
    /// Data lines that a call needs in all; `None` when not known.
    pub of_lines: Option<f64>,
    /// The first over the second.
    pub share: Option<f64>,
    /// The share as a share of the modelled stalls; `None` if the recording has no stalls.
    pub stalls: Option<StallShare>,
    /// Calls of the region per second of the program's own time; `None` when not known.
    pub calls_per_second: Option<f64>,
}

/// The part of modelled stalls that goes with saved lines, if these miss as often as the region's other lines of data.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct StallShare {
    /// Cycles per call.
    pub cycles: f64,
    /// Their share of the stalls of the region's calls.
    pub of_region: f64,
    /// Their share of the stalls of everything that ran; `None` when not known.
    pub of_program: Option<f64>,
}

/// One proposal of any kind as reports show it.
#[derive(Clone, PartialEq, Debug)]
pub struct Description {
    /// The kind.
    pub kind: KindName,
    /// The type or variables that it concerns.
    pub target: String,
    /// The change in a sentence.
    pub summary: String,
    /// The reasons why it helps, a sentence each.
    pub reasons: Vec<String>,
    /// The predicted waits of threads, if data of different threads are parted.
    pub predicted: Option<PredictedWaits>,
    /// Its saving of each region's lines, the greatest share first.
    pub worth: Vec<RegionSaving>,
    /// Lines per call before and after.
    pub lines: Vec<RegionLines>,
    /// Sizes before and after.
    pub sizes: Vec<SizeChange>,
    /// Constraints that were obeyed, or that a person has to heed.
    pub obeyed: Vec<Binding>,
    /// The check of its offsets; `None` when it has none.
    pub check: Option<Check>,
    /// True when the edited texts hold it.
    pub is_in_patch: bool,
}

impl Description {
    /// A proposal that is left to a person, with no figures yet.
    pub fn told(kind: KindName, target: impl Into<String>, summary: impl Into<String>) -> Self {
        Description {
            kind,
            target: target.into(),
            summary: summary.into(),
            reasons: Vec::new(),
            predicted: None,
            worth: Vec::new(),
            lines: Vec::new(),
            sizes: Vec::new(),
            obeyed: Vec::new(),
            check: None,
            is_in_patch: false,
        }
    }
}

/// A proposal of a kind without its own list in [`Advice`]: a change that is described and left to a person.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Suggestion {
    /// The kind, by its short name.
    pub kind: KindName,
    /// The type or variable.
    pub target: String,
    /// The change in a sentence.
    pub summary: String,
    /// Lines per call before and after, when they are known.
    pub lines: Vec<RegionLines>,
}

impl Suggestion {
    /// A suggestion without figures.
    pub fn new(kind: KindName, target: impl Into<String>, summary: impl Into<String>) -> Self {
        Suggestion { kind, target: target.into(), summary: summary.into(), lines: Vec::new() }
    }
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
    /// [`ADVICE_SCHEMA`].
    pub schema: &'static str,
    /// Line size that decides, in bytes.
    pub line_bytes: u64,
    /// Threads whose calls it rests on (of a kernel: CPUs); 0 when that is not known. With only one thread it cannot
    /// know the others' writes, and so the members to keep apart.
    pub threads: u64,
    /// Classes whose cold members leave the object.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cold_parts: Vec<ColdPartProposal>,
    /// Classes that a split would help and no patch splits, with the reason.
    #[serde(skip)]
    pub not_split: BTreeMap<String, Binding>,
    /// Structs with fewer or smaller members.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub narrowings: Vec<NarrowProposal>,
    /// Types to reorder.
    pub orders: Vec<OrderProposal>,
    /// Variables to gather.
    pub gathers: Vec<GatherProposal>,
    /// Variables to part.
    pub variables: Vec<VariablesProposal>,
    /// Objects to align.
    pub alignments: Vec<AlignmentAdvice>,
    /// Types to split.
    pub splits: Vec<SplitAdvice>,
    /// Variables that deserve an immediate value.
    pub immediates: Vec<ImmediateAdvice>,
    /// Loops with prefetches.
    #[serde(skip)]
    pub prefetches: Vec<PrefetchProposal>,
    /// Types whose single objects come from blocks.
    #[serde(skip)]
    pub pools: Vec<PoolProposal>,
    /// Types of two or more members that the regions touch.
    pub types_touched: u64,
    /// Those of them whose declaration could not be read or was not found, with the reason.
    pub types_not_read: Vec<(String, Binding)>,
    /// Proposals that save too little to be in the patch.
    #[serde(skip)]
    pub too_little: Vec<Description>,
    /// The proposals of other kinds of fixes.
    pub suggestions: Vec<Suggestion>,
    /// The unchanged types and variables, with the reasons.
    pub refusals: Vec<Refusal>,
    /// Types whose members already lie as well as any allowed order puts them.
    pub already_good: Vec<String>,
    /// All proposals in words, in the order of kinds.
    #[serde(skip)]
    pub descriptions: Vec<Description>,
    /// The guard for the proposals.
    #[serde(skip)]
    pub guard: crate::guard::lock::Lock,
    /// Texts after all proposals, whole, by path.
    #[serde(skip)]
    pub edited: BTreeMap<String, String>,
}

/// A part of the patch: the sources with this proposal and those before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The names under which the changes are tried.
    pub owners: Vec<String>,
    /// The type or the variables that it changes, as the report names them.
    pub targets: Vec<String>,
    /// All texts that differ from the sources, whole, by path.
    pub edited: BTreeMap<String, String>,
}

impl Advice {
    /// True when cold members of this class leave its objects.
    pub(crate) fn is_split(&self, type_name: &str) -> bool {
        self.cold_parts.iter().any(|one| one.type_name == type_name || one.holder == type_name)
    }

    /// True when this struct gets fewer or smaller members.
    pub(crate) fn is_narrowed(&self, type_name: &str) -> bool {
        self.narrowings.iter().any(|one| one.type_name == type_name)
    }

    /// The patch, one proposal after the other.
    pub fn steps(&self) -> Vec<Step> {
        let gathers = self.gathers.iter().map(|one| (one.variables.clone(), &one.edited));
        let variables = self.variables.iter().map(|one| (one.variables.clone(), &one.edited));
        let orders = self.orders.iter().map(|one| (vec![one.type_name.clone()], &one.edited));
        let prefetches = self.prefetches.iter().map(|one| {
            let owners = one.places.iter().map(PrefetchedPlace::in_words).collect();
            (owners, &one.edited)
        });
        let pools = self.pools.iter().map(|one| {
            let owners = one.types.iter().map(|ty| ty.type_name.clone()).collect();
            (owners, &one.edited)
        });
        let mut edited = BTreeMap::new();
        let step = |(owner, targets, texts): (Option<String>, Vec<String>, &BTreeMap<String, String>)| {
            edited.extend(texts.clone());
            let owners = owner.map_or_else(|| targets.clone(), |owner| vec![owner]);
            Step { owners, targets, edited: edited.clone() }
        };
        let cold_parts = self
            .cold_parts
            .iter()
            .map(|one| (Some(one.owner.clone()), vec![one.type_name.clone()], &one.edited));
        let narrowings = self
            .narrowings
            .iter()
            .map(|one| (Some(narrow_owner(&one.type_name)), vec![one.type_name.clone()], &one.edited));
        let others = gathers.chain(variables).chain(orders).chain(pools).chain(prefetches);
        cold_parts
            .chain(narrowings)
            .chain(others.map(|(targets, edited)| (None, targets, edited)))
            .filter(|(_, _, texts)| !texts.is_empty())
            .map(step)
            .collect()
    }

    /// Whether a build has every layout that was asserted.
    pub(crate) fn is_in(&self, types: &Types) -> bool {
        let gathered = self.gathers.iter().flat_map(|one| &one.asserted);
        let narrowed = self.narrowings.iter().flat_map(|one| &one.asserted);
        let mut asserted = gathered.chain(narrowed).chain(self.orders.iter().flat_map(|one| &one.asserted));
        asserted.all(|one| one.is_in(types))
    }

    /// Advice that says nothing yet.
    pub fn none(line_bytes: u64) -> Self {
        Advice {
            schema: ADVICE_SCHEMA,
            line_bytes,
            threads: 0,
            cold_parts: Vec::new(),
            not_split: BTreeMap::new(),
            narrowings: Vec::new(),
            orders: Vec::new(),
            gathers: Vec::new(),
            variables: Vec::new(),
            alignments: Vec::new(),
            splits: Vec::new(),
            immediates: Vec::new(),
            prefetches: Vec::new(),
            pools: Vec::new(),
            types_touched: 0,
            types_not_read: Vec::new(),
            too_little: Vec::new(),
            suggestions: Vec::new(),
            refusals: Vec::new(),
            already_good: Vec::new(),
            descriptions: Vec::new(),
            guard: crate::guard::lock::Lock::default(),
            edited: BTreeMap::new(),
        }
    }

    /// The suggestions of one kind in words.
    pub fn suggestions_of(&self, kind: KindName) -> Vec<Description> {
        let of_kind = self.suggestions.iter().filter(|suggestion| suggestion.kind == kind);
        let described = |one: &Suggestion| Description {
            lines: one.lines.clone(),
            ..Description::told(kind, &one.target, &one.summary)
        };
        of_kind.map(described).collect()
    }
}

/// Version of the JSON form of [`Advice`].
pub const ADVICE_SCHEMA: &str = "lineup.advice/2";

/// The name under which a struct with fewer or smaller members is tried, and refused when it fails.
pub(crate) fn narrow_owner(type_name: &str) -> String {
    format!("{type_name} (narrow)")
}
