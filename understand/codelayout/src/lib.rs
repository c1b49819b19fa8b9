//! The order of code: the executed code of a whole program, as graphs of blocks with the counts of their edges, and as
//! input for optimisers, linkers and compilers.
//!
//! Design constraints:
//!
//! * Counts in, text out: nothing is opened, started or printed.
//! * The recording counts executions of instructions. How often each way between blocks was taken follows from them
//!   ([`flow`]); where several answers fit, the count is estimated and says so.
//! * Only x86-64 code is read.

mod bolt;
mod code;
mod cold;
mod edge_counts;
mod error;
mod evidence;
mod executed;
mod fetched;
mod flow;
mod footprint;
mod function;
mod graph;
mod kernel_order;
mod linkers;
mod map;
mod names;
mod order;
mod sample_profile;
mod summary;
mod tables;

pub use bolt::{bolt_profile, cold_profile};
pub use code::Code;
pub use cold::{Fetched, cold_order};
pub use error::CodeError;
pub use executed::Executed;
pub use fetched::{Fetches, RegionCalls, RegionFetch};
pub use flow::Taken;
pub use footprint::{Footprint, LINE_BYTES, PAGE_BYTES};
pub use function::{Arc, Edge, Function, Way};
pub use kernel_order::{FetchedFunction, KERNEL_SCRIPT, fetched_functions, with_row, with_sections};
pub use linkers::{call_graph, linker_script, section_order, symbol_order};
pub use map::{CodeMap, MappedFunction, MappedLine, MappedPage};
pub use order::CallCount;
pub use sample_profile::{SampleProfile, sample_profile};
pub use summary::{FunctionSummary, Summary};
