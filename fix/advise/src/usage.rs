//! The data that advice is derived from.

use lineup_explain::slabs::SlabCache;
use lineup_explain::stalls::RegionStalls;
use lineup_explain::threads::{Elsewhere, Of, SharedCounter};
use lineup_model::Library;
use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::region::{RegionId, Regions};
use lineup_model::types::{TypeId, Types};
use lineup_model::usage::{
    AlignedUse, FoughtOver, FoughtVariables, LockUse, MemoryOfObjects, Sharing, ThreadUse, TypeUse,
    VariableRef, VariableUse,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// The total needs of a region's calls: a gain is a share of them. `None` is not known.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Scale {
    /// Mean data lines of 32, 64 and 128 bytes per call.
    pub data_lines: Option<[f64; 3]>,
    /// Mean data misses per call by the cache model, at the greatest pressure that was modelled.
    pub data_misses: Option<f64>,
    /// The stalls of calls in the recorder's processor model.
    pub stalls: Option<RegionStalls>,
    /// Calls per second of the program's own time.
    pub calls_per_second: Option<f64>,
}

/// Fewer misses per call than this cost nothing that could be measured.
const LEAST_MISSES: f64 = 0.02;

impl Scale {
    /// False when the cache model says that calls hardly ever miss: then fewer lines save no time.
    pub(crate) fn may_miss(&self) -> bool {
        self.data_misses.is_none_or(|misses| misses >= LEAST_MISSES)
    }

    /// Mean data lines of this size per call.
    pub(crate) fn lines(&self, line_bytes: u64) -> Option<f64> {
        let size = LineSize::place_in_all(line_bytes)?;
        self.data_lines.map(|lines| lines[size])
    }
}

/// A global or static variable with its type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypedVariable {
    /// The variable.
    pub variable: VariableRef,
    /// Its type.
    pub ty: TypeId,
}

/// Uses of types and variables by the recorded regions.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    /// The ABI of the recorded program.
    pub abi: Abi,
    /// Threads whose calls were recorded (of a kernel: CPUs); 0 when that is not known.
    pub threads: u64,
    /// The regions recorded.
    pub regions: Regions,
    /// The total possible gain, by region; a region that is missing is not known.
    pub scales: BTreeMap<RegionId, Scale>,
    /// Uses of types' objects by regions.
    pub types: Vec<TypeUse>,
    /// Uses of variables by regions.
    pub variables: Vec<VariableUse>,
    /// The threads' uses of bytes.
    pub sharing: Vec<Sharing>,
    /// The kinds of memory in which objects lay; `None` if the recorder did not look, as in a kernel.
    pub memory: Option<MemoryOfObjects>,
    /// The threads' uses of objects that several threads use.
    pub thread_uses: Vec<ThreadUse>,
    /// Types with false sharing of their objects, worst first.
    pub fought_over: Vec<FoughtOver>,
    /// Variables with false sharing, worst first.
    pub fought_variables: Vec<FoughtVariables>,
    /// Numbers that several threads add to, most waits first.
    pub counters: Vec<SharedCounter>,
    /// Whether threads add to them, or a kernel's CPUs.
    pub counters_of: Of,
    /// Locks in objects, which several threads take.
    pub locks: Vec<LockUse>,
    /// Waits with data elsewhere, when threads wait for each other.
    pub elsewhere: Option<Elsewhere>,
    /// Bytes of objects that instructions ask to be aligned.
    pub aligned_uses: Vec<AlignedUse>,
    /// The slab caches of a kernel's types, as far as their objects show them.
    pub slabs: BTreeMap<TypeId, SlabCache>,
    /// The types of the variables in `variables`, as far as known.
    pub variable_types: Vec<TypedVariable>,
    /// Types of which most objects seen lay on a stack.
    pub stack_types: BTreeSet<TypeId>,
    /// Link addresses of the variables of which every CPU has a copy; a kernel has them.
    pub per_cpu: Option<Range<u64>>,
}

impl Usage {
    /// The structs, unions and classes that calls use, typedefs removed.
    pub(crate) fn aggregates(&self, types: &Types) -> BTreeSet<TypeId> {
        self.types.iter().filter_map(|used| types.aggregate(used.ty).map(|(id, _)| id)).collect()
    }

    /// Those that may be the program's own.
    pub(crate) fn own_aggregates(&self, types: &Types) -> Vec<TypeId> {
        let is_own = |id: &TypeId| types.get(*id).is_none_or(|ty| Library::of(ty, None).is_none());
        self.aggregates(types).into_iter().filter(is_own).collect()
    }

    /// Nothing was recorded.
    pub fn empty(abi: Abi) -> Self {
        Usage {
            abi,
            threads: 0,
            regions: Regions::default(),
            scales: BTreeMap::new(),
            types: Vec::new(),
            variables: Vec::new(),
            sharing: Vec::new(),
            memory: None,
            thread_uses: Vec::new(),
            fought_over: Vec::new(),
            fought_variables: Vec::new(),
            counters: Vec::new(),
            counters_of: Of::default(),
            locks: Vec::new(),
            elsewhere: None,
            aligned_uses: Vec::new(),
            slabs: BTreeMap::new(),
            variable_types: Vec::new(),
            stack_types: BTreeSet::new(),
            per_cpu: None,
        }
    }

    /// True for a variable of which every CPU has a copy.
    pub(crate) fn is_per_cpu(&self, variable: &VariableRef) -> bool {
        self.per_cpu.as_ref().is_some_and(|addresses| addresses.contains(&variable.address))
    }

    /// The total possible gain in a region.
    pub(crate) fn scale(&self, region: RegionId) -> Scale {
        self.scales.get(&region).copied().unwrap_or_default()
    }
}
