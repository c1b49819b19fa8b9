//! The surroundings of a study, and the commands that repeat it.

use serde::Serialize;

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
