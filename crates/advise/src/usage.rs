//! What advice is worked out from.

use lineup_model::abi::Abi;
use lineup_model::region::Regions;
use lineup_model::types::TypeId;
use lineup_model::usage::{Sharing, TypeUse, VariableRef, VariableUse};

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
    /// The regions recorded.
    pub regions: Regions,
    /// How regions use the objects of types.
    pub types: Vec<TypeUse>,
    /// How regions use variables.
    pub variables: Vec<VariableUse>,
    /// Which threads touch what.
    pub sharing: Vec<Sharing>,
    /// The types of the variables in `variables`, as far as known.
    pub variable_types: Vec<TypedVariable>,
}
