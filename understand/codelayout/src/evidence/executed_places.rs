//! Execution counts of source places.

use super::descriptions::{Descriptions, copies_at};
use crate::code::Code;
use crate::flow::block_graph::decoded;
use lineup_model::branch::{PlaceCounts, SourcePosition};

/// The places of all instructions that were executed, and those where inlined copies that they lie in were called.
pub(super) fn executed(code: &Code<'_>, described: &Descriptions) -> PlaceCounts {
    let mut counts = PlaceCounts::new();
    for function in &code.functions {
        let range = &function.addresses;
        let Some(bytes) = code.debug.code(range.clone()) else { continue };
        let Some((instructions, times)) = decoded(range, bytes, &code.executed) else { continue };
        for (instruction, times) in instructions.iter().zip(times).filter(|(_, times)| *times > 0) {
            add(code, described, instruction.ip(), times, &mut counts);
        }
    }
    counts
}

fn add(code: &Code<'_>, described: &Descriptions, at: u64, times: u64, counts: &mut PlaceCounts) {
    let mut note = |file: &str, place: SourcePosition| {
        if !counts.contains_key(file) {
            counts.insert(file.to_owned(), Default::default());
        }
        if let Some(places) = counts.get_mut(file) {
            let most = places.entry(place).or_default();
            *most = times.max(*most);
        }
    };
    if let Some(row) = code.debug.code_line_of(at) {
        note(
            &row.at.file,
            SourcePosition { line: row.at.line, column: (row.column > 0).then_some(row.column) },
        );
    }
    let Some(function) = described.at(at) else { return };
    for copy in copies_at(function, at) {
        if let Some(called) = function.inlined.get(copy).and_then(|copy| copy.called_at.as_ref()) {
            note(&called.file, SourcePosition { line: called.line, column: None });
        }
    }
}
