//! A call in figures.

use lineup_model::access::{AccessKind, CODE_GRANULE_BYTES, Call, CallEnd};
use lineup_model::line::LineSize;

/// A call's counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CallFigures {
    /// Loads of data.
    pub loads: u64,
    /// Stores of data.
    pub stores: u64,
    /// Different lines of data, callees and stack included.
    pub data_lines: u64,
    /// Different lines of code.
    pub code_lines: u64,
}

impl CallFigures {
    /// Counts a call's accesses, in lines of this size.
    pub fn of(call: &Call, line: LineSize) -> Self {
        let stores = call.accesses.iter().filter(|access| access.kind == AccessKind::Store).count() as u64;
        let data = call.accesses.iter().flat_map(|access| {
            let last = access.address.saturating_add(u64::from(access.size_bytes.max(1)) - 1);
            access.address / line.bytes()..=last / line.bytes()
        });
        let code = call.code_granules.iter().flat_map(|granule| line.lines(*granule, CODE_GRANULE_BYTES));
        CallFigures {
            loads: call.accesses.len() as u64 - stores,
            stores,
            data_lines: different(data.collect()),
            code_lines: different(code.collect()),
        }
    }
}

/// A call's ending, in a word for a column.
pub(crate) fn end(end: CallEnd) -> &'static str {
    match end {
        CallEnd::Returned => "returned",
        CallEnd::Abandoned => "abandoned",
        CallEnd::ThreadEnded => "thread-ended",
        CallEnd::ProcessEnded => "process-ended",
        CallEnd::Unfinished => "unfinished",
    }
}

fn different(mut lines: Vec<u64>) -> u64 {
    lines.sort_unstable();
    lines.dedup();
    lines.len() as u64
}
