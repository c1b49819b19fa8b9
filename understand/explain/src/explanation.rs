//! The result: plain values, ready for tables, JSON and advice.

pub use crate::images::lack::Lack;
use crate::memory::slabs::SlabCache;
use crate::naming::name::{Class, Evidence};
use crate::summary::quantiles::{Bar, Quantiles};
use crate::threads::{BetweenThreads, Elsewhere, Of};
use lineup_model::abi::Abi;
use lineup_model::region::RegionId;
use lineup_model::types::TypeId;
use lineup_model::usage::{
    AlignedUse, FoughtOver, FoughtVariables, LockUse, MemoryOfObjects, Sharing, ThreadUse, TypeUse,
    VariableRef, VariableUse,
};
use serde::Serialize;
use std::collections::BTreeMap;

/// The memory that a recording's accesses touched.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explanation {
    /// `lineup.explain/1`.
    pub schema: &'static str,
    /// The kinds of facts that the source of the accesses has.
    pub tells: Tells,
    /// Line size of the maps, in bytes.
    pub line_bytes: u64,
    /// Naming over all regions.
    pub coverage: Coverage,
    /// One per region, in the recording's order.
    pub regions: Vec<RegionExplanation>,
    /// Lines that pass between threads; empty when one thread only was recorded.
    pub shared_lines: Vec<SharedLine>,
    /// Threads with recorded calls.
    pub threads: u64,
    /// Contention between threads; `None` when calls of one thread only carry times. Not part of the JSON: it has one
    /// of its own.
    #[serde(skip)]
    pub between: Option<BetweenThreads>,
    /// The data that advice is derived from, per image with types; not part of the JSON.
    #[serde(skip)]
    pub usage: Vec<ImageUsage>,
}

/// The kinds of facts that a source has. Others are shown as not observed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Tells {
    /// Every access of a call from its entry to its return. Else a call holds some of them, as samples do: lines per
    /// call, misses and advice cannot be worked out.
    pub whole_calls: bool,
    /// Values of pointers that were loaded and stored: they identify the object of a pointer.
    pub values: bool,
    /// When memory was given out and given back.
    pub memory: bool,
    /// The values of registers at the beginning of calls: pointers among them identify the objects that calls were
    /// given.
    pub registers: bool,
    /// The units that run side by side: threads, or the CPUs of a whole system.
    pub of: Of,
}

/// Numbers of accesses by the kind of their names and by the evidence for them.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Coverage {
    /// Data accesses.
    pub accesses: u64,
    /// Share with a name, from 0 to 1, the stack included; `None` without accesses.
    pub named: Option<f64>,
    /// Share with a name among the accesses outside the stack.
    pub named_off_stack: Option<f64>,
    /// Accesses by class of name.
    pub by_class: BTreeMap<Class, u64>,
    /// Accesses by kind of evidence.
    pub by_evidence: BTreeMap<Evidence, u64>,
}

impl Coverage {
    /// Counts accesses.
    pub fn add(&mut self, class: Class, evidence: Evidence, accesses: u64) {
        self.accesses += accesses;
        *self.by_class.entry(class).or_default() += accesses;
        *self.by_evidence.entry(evidence).or_default() += accesses;
    }

    /// Adds another count.
    pub fn merge(&mut self, other: &Coverage) {
        self.accesses += other.accesses;
        for (class, accesses) in &other.by_class {
            *self.by_class.entry(*class).or_default() += accesses;
        }
        for (evidence, accesses) in &other.by_evidence {
            *self.by_evidence.entry(*evidence).or_default() += accesses;
        }
    }

    /// Works out the shares.
    pub fn settle(mut self) -> Self {
        let of = |class| self.by_class.get(&class).copied().unwrap_or(0);
        let (unnamed, stack) = (of(Class::Unnamed), of(Class::Stack));
        let share = |named: u64, all: u64| (all > 0).then(|| named as f64 / all as f64);
        self.named = share(self.accesses - unnamed, self.accesses);
        self.named_off_stack = share(self.accesses - unnamed - stack, self.accesses - stack);
        self
    }
}

/// One region.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RegionExplanation {
    /// Its place in the recording's table of regions.
    #[serde(skip)]
    pub id: RegionId,
    /// The function, as its source spells it.
    pub name: String,
    /// Its weight against other regions.
    pub weight: f64,
    /// Calls explained.
    pub calls: u64,
    /// Calls left out because they had not ended when the recording did.
    pub unfinished: u64,
    /// The explained calls that `longjmp` or an exception left.
    pub abandoned: u64,
    /// Blocks whose accesses the recorder did not see, over all calls.
    pub missed_blocks: u64,
    /// Calls per second of the program's own time, when that is known.
    pub calls_per_second: Option<f64>,
    /// Instructions per call.
    pub instructions: Option<Quantiles>,
    /// Lines per call, for each line size.
    pub lines: Vec<LinesPerCall>,
    /// Naming.
    pub coverage: Coverage,
    /// Functions with the most unnamed accesses.
    pub unnamed: Vec<UnnamedIn>,
    /// The lines used, most touched first.
    pub map: Vec<LineUse>,
    /// The lines of code used, by address.
    pub code: Vec<CodeLine>,
    /// Misses to expect per call.
    pub misses: Vec<ExpectedMisses>,
    /// Combinations of bytes that were folded because there were too many distinct ones.
    pub folded_patterns: u64,
}

/// Distinct lines one call needs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LinesPerCall {
    /// Line size in bytes.
    pub line_bytes: u64,
    /// Lines of data.
    pub data: Option<Quantiles>,
    /// Lines of code.
    pub code: Option<Quantiles>,
    /// Calls by number of data lines.
    pub data_distribution: Vec<Bar>,
    /// Calls by number of code lines.
    pub code_distribution: Vec<Bar>,
}

/// A line of code that calls fetched.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CodeLine {
    /// Its first byte.
    pub address: u64,
    /// The function on it; two that share it, with a bar between.
    pub function: String,
    /// Calls that fetched it.
    pub calls: u64,
}

/// Unnamed accesses of one function.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct UnnamedIn {
    /// The function.
    pub function: String,
    /// The file it is in.
    pub image: String,
    /// Accesses without a name.
    pub accesses: u64,
    /// The missing part of the function's debug information, when that is the reason.
    pub lacks: Option<Lack>,
}

/// One line of an object or of variables, and how a region uses it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LineUse {
    /// The type of the objects, or `None` for variables.
    pub type_name: Option<String>,
    /// For objects: where they start in their line, in bytes.
    pub base_in_line: Option<u64>,
    /// For objects: the line, counted from the one that the object starts on. For variables: the link
    /// address divided by the line size.
    pub line: u64,
    /// Times the line was needed per call: objects of the type that a call touches count each.
    pub needed_per_call: f64,
    /// Loads per call.
    pub loads_per_call: f64,
    /// Stores per call.
    pub stores_per_call: f64,
    /// Bytes used of a fetched line, on average.
    pub bytes_used: f64,
    /// The touched parts, in memory order.
    pub parts: Vec<PartUse>,
    /// The untouched parts, in memory order.
    pub cold: Vec<ColdPart>,
    /// True when a thread writes bytes of it and another reads or writes it.
    pub is_shared: bool,
}

/// A member or variable on a line, and its use.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PartUse {
    /// Path of the member, or variable with path.
    pub name: String,
    /// Offset in the object, or link address.
    pub offset: u64,
    /// Bytes of it.
    pub size_bytes: u64,
    /// Loads per call.
    pub loads_per_call: f64,
    /// Stores per call.
    pub stores_per_call: f64,
}

/// A member or variable on a line that the region does not touch.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ColdPart {
    /// Path of the member, or variable with path.
    pub name: String,
    /// Offset in the object, or link address.
    pub offset: u64,
    /// Bytes of it on this line.
    pub size_bytes: u64,
}

/// The expected misses of a footprint when other data passes through a cache between calls.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ExpectedMisses {
    /// The cache, as given: `l1d=32K,8,64`.
    pub cache: String,
    /// Bytes of other data between two calls.
    pub pressure_bytes: u64,
    /// Mean misses per call.
    pub misses_per_call: f64,
    /// Calls whose footprint went into the mean.
    pub calls: u64,
}

/// A line that passes between threads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SharedLine {
    /// Runtime address of the line.
    pub address: u64,
    /// Members and variables touched on it; `*` marks those written.
    pub parts: Vec<String>,
    /// Threads that read it.
    pub readers: Vec<u32>,
    /// Threads that wrote it.
    pub writers: Vec<u32>,
    /// Times a call needed bytes that another thread had written.
    pub true_handovers: u64,
    /// Times a call needed the line because another thread had written other bytes of it.
    pub false_handovers: u64,
}

/// Uses of one image's types and variables by regions.
#[derive(Clone, PartialEq, Debug)]
pub struct ImageUsage {
    /// Path of the image.
    pub image: String,
    /// Index of the image.
    pub index: usize,
    /// Its machine and data model.
    pub abi: Abi,
    /// Objects that calls used: type and runtime address, each once.
    pub objects: Vec<(TypeId, u64)>,
    /// Use of types; ids are of the image's table.
    pub types: Vec<TypeUse>,
    /// Use of variables.
    pub variables: Vec<VariableUse>,
    /// Sharing between threads.
    pub sharing: Vec<Sharing>,
    /// The kinds of memory in which objects lay; `None` if the recorder did not look.
    pub memory: Option<MemoryOfObjects>,
    /// The threads' uses of objects that several threads use.
    pub thread_uses: Vec<ThreadUse>,
    /// Types with false sharing of their objects, worst first.
    pub fought_over: Vec<FoughtOver>,
    /// Variables with false sharing, worst first.
    pub fought_variables: Vec<FoughtVariables>,
    /// Locks in objects, which several threads take.
    pub locks: Vec<LockUse>,
    /// Waits if data lay elsewhere; `None` if threads hardly wait.
    pub elsewhere: Option<Elsewhere>,
    /// Bytes of objects that instructions ask to be aligned.
    pub aligned_uses: Vec<AlignedUse>,
    /// The slab caches of a kernel's types, as far as their objects show them.
    pub slabs: Vec<(TypeId, SlabCache)>,
    /// Types of the variables used.
    pub variable_types: Vec<(VariableRef, TypeId)>,
}
