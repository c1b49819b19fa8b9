//! What advice is worked out from.

use lineup_model::abi::Abi;
use lineup_model::access::RegionId;
use lineup_model::types::TypeId;
use lineup_model::usage::{Sharing, TypeUse, VariableRef, VariableUse};

/// A recorded region and how much it counts.
#[derive(Clone, PartialEq, Debug)]
pub struct Region {
    /// Its id in the recording.
    pub id: RegionId,
    /// The function's name.
    pub name: String,
    /// How much a call of it counts against a call of the others (`--region F=3`).
    pub weight: f64,
    /// How much there is to gain at all.
    pub scale: Scale,
}

impl Region {
    /// A region of which nothing is known but its name.
    pub fn new(id: RegionId, name: impl Into<String>, weight: f64) -> Self {
        Region { id, name: name.into(), weight, scale: Scale::default() }
    }
}

/// What a region's calls need in all: what a gain is a share of. `None` is not known.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Scale {
    /// Mean data lines of 32, 64 and 128 bytes per call.
    pub data_lines: Option<[f64; 3]>,
    /// Mean data misses per call by the cache model, at the greatest pressure that was modelled.
    pub data_misses: Option<f64>,
}

impl Scale {
    /// Mean data lines of this size per call.
    pub(crate) fn lines(&self, line_bytes: u64) -> Option<f64> {
        let index = match line_bytes {
            32 => 0,
            64 => 1,
            128 => 2,
            _ => return None,
        };
        self.data_lines.map(|lines| lines[index])
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

/// How the recorded regions use types and variables.
#[derive(Clone, PartialEq, Debug)]
pub struct Usage {
    /// The ABI of the recorded program.
    pub abi: Abi,
    /// Threads whose calls were recorded (of a kernel: CPUs); 0 when that is not known.
    pub threads: u64,
    /// The regions recorded.
    pub regions: Vec<Region>,
    /// How regions use the objects of types.
    pub types: Vec<TypeUse>,
    /// How regions use variables.
    pub variables: Vec<VariableUse>,
    /// Which threads touch what.
    pub sharing: Vec<Sharing>,
    /// The types of the variables in `variables`, as far as known.
    pub variable_types: Vec<TypedVariable>,
}

impl Usage {
    /// Nothing was recorded.
    pub fn empty(abi: Abi) -> Self {
        Usage {
            abi,
            threads: 0,
            regions: Vec::new(),
            types: Vec::new(),
            variables: Vec::new(),
            sharing: Vec::new(),
            variable_types: Vec::new(),
        }
    }

    /// A region's index in `regions` and weight.
    pub(crate) fn region(&self, id: RegionId) -> Option<(usize, &Region)> {
        self.regions.iter().enumerate().find(|(_, region)| region.id == id)
    }
}
