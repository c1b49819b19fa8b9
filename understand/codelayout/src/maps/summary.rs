//! The reported summary of a file's code.

use crate::code::Code;
use crate::maps::footprint::{Footprint, LINE_BYTES};
use serde::Serialize;

/// The executed part of a file's code, in figures.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct Summary {
    /// `lineup.code/1`.
    pub schema: &'static str,
    /// The file.
    pub file: String,
    /// Instructions executed in its functions.
    pub instructions: u64,
    /// All of it.
    pub code: Footprint,
    /// Lines that its executed bytes would fill without a gap.
    pub least_lines: u64,
    /// EdgeCounts between blocks whose counts follow from those of instructions.
    pub edges_exact: u64,
    /// EdgeCounts between blocks for which several counts fit.
    pub edges_estimated: u64,
    /// Times that a way of those was taken, by the estimate.
    pub estimated_times: u64,
    /// Times that any way was taken.
    pub times: u64,
    /// Functions of which some was executed, most instructions first.
    pub functions: Vec<FunctionSummary>,
    /// Functions of which some was executed and whose bytes are not all instructions: they have no counts.
    pub not_decoded: Vec<String>,
}

/// The executed part of a function.
#[derive(Clone, PartialEq, Eq, Serialize, Debug)]
pub struct FunctionSummary {
    /// Its symbol.
    pub name: String,
    /// Instructions executed in it.
    pub instructions: u64,
    /// Times it was entered at its beginning.
    pub entries: u64,
    /// Bytes of all its code.
    pub size_bytes: u64,
    /// The executed part of it.
    pub code: Footprint,
}

impl Code<'_> {
    /// The figures of the file named so.
    pub fn summary(&self, file: &str) -> Summary {
        let code = Footprint::of(self.functions.iter().flat_map(|function| &function.executed));
        let edges = || self.functions.iter().flat_map(|function| &function.edges);
        let estimated = || edges().filter(|edge| edge.taken.is_estimated);
        let mut functions: Vec<FunctionSummary> = self
            .functions
            .iter()
            .map(|function| FunctionSummary {
                name: function.name.clone(),
                instructions: function.instructions,
                entries: function.entries,
                size_bytes: function.addresses.end - function.addresses.start,
                code: Footprint::of(&function.executed),
            })
            .collect();
        functions.sort_by(|a, b| b.instructions.cmp(&a.instructions).then_with(|| a.name.cmp(&b.name)));
        Summary {
            schema: "lineup.code/1",
            file: file.to_owned(),
            instructions: functions.iter().map(|function| function.instructions).sum(),
            code,
            least_lines: code.executed_bytes.div_ceil(LINE_BYTES),
            edges_exact: (edges().count() - estimated().count()) as u64,
            edges_estimated: estimated().count() as u64,
            estimated_times: estimated().map(|edge| edge.taken.times).sum(),
            times: edges().map(|edge| edge.taken.times).sum(),
            functions,
            not_decoded: self.not_decoded.clone(),
        }
    }
}
