//! The order of code: the executed code of a whole program, as graphs of blocks with the counts of their edges, and as
//! input for optimisers, linkers and compilers.
//!
//! Design constraints:
//!
//! * Counts in, text out: nothing is opened, started or printed.
//! * The recording counts executions of instructions. How often each way between blocks was taken follows from them
//!   (`flow`); where several answers fit, the count is estimated and says so.
//! * Only x86-64 code is read.

mod code;
mod error;
mod evidence;
mod execution_counts;
mod fetched_lines;
mod flow;
mod maps;
mod orders;
mod profiles;

pub use code::Code;
pub use error::CodeError;
pub use execution_counts::Executed;
pub use fetched_lines::{Fetches, RegionCalls, RegionFetch};
pub use flow::edge_solver::Taken;
pub use flow::function::{Arc, Edge, Function, Way};
pub use maps::code_map::{CodeMap, MappedFunction, MappedLine, MappedPage};
pub use maps::footprint::{Footprint, LINE_BYTES, PAGE_BYTES};
pub use maps::summary::{FunctionSummary, Summary};
pub use orders::cold_order::{Fetched, cold_order};
pub use orders::function_order::CallCount;
pub use orders::kernel_order::{FetchedFunction, KERNEL_SCRIPT, fetched_functions, with_row, with_sections};
pub use orders::linker_files::{call_graph, linker_script, section_order, symbol_order};
pub use profiles::bolt::{bolt_profile, cold_profile};
pub use profiles::sample_profile::{SampleProfile, sample_profile};
