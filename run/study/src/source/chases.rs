//! Loops of functions that stall, read with clang, in the advice's terms.

use crate::source::meaning::{Reading, build};
use lineup_advise::meaning::{Address, Ahead, Bound, ChaseMeaning, Insertion};
use std::collections::BTreeSet;
use std::path::Path;

/// The loops that chase pointers or index through memory in these functions, and in those of the same unit that they
/// call. `root` is the copy in which the reading's calls were made.
///
/// # Errors
/// The reason, where clang reads nothing.
pub fn chases(
    reading: &Reading,
    root: &Path,
    functions: &BTreeSet<String>,
) -> Result<Vec<ChaseMeaning>, String> {
    let build = build(reading.calls.clone(), root, BTreeSet::new());
    let found = lineup_sources::chases(&build, functions).map_err(|error| error.to_string())?;
    Ok(found.found.into_iter().map(meant).collect())
}

fn meant(chase: lineup_sources::Chase) -> ChaseMeaning {
    let ahead = chase.outcome.map(|ahead| Ahead {
        address: match ahead.address {
            lineup_sources::Address::Pointer { pointer, member } => Address::Pointer { pointer, member },
            lineup_sources::Address::Element { before, after, is_address, member, index, bound } => {
                let lineup_sources::Bound { limit, is_inclusive, is_unsigned } = bound;
                let bound = Bound { limit, is_inclusive, is_unsigned };
                Address::Element { before, after, is_address, member, index, bound }
            }
        },
        insert: match ahead.insert {
            lineup_sources::Insertion::Behind(at) => Insertion::Behind(at),
            lineup_sources::Insertion::Before(at) => Insertion::Before(at),
            lineup_sources::Insertion::Around { start, end } => Insertion::Around { start, end },
        },
        needs_whole_object: ahead.needs_whole_object,
        file_bytes: ahead.file_bytes,
    });
    ChaseMeaning {
        path: chase.path,
        line: chase.line,
        function: chase.function,
        asked: chase.asked,
        object: chase.object,
        ahead,
    }
}
