//! Comma-separated values: a line for each recorded call, or for each member that calls used.

use super::figures::{CallFigures, end};
use lineup_explain::Explanation;
use lineup_model::access::Call;
use std::fmt::Write;

/// The head of a table of calls.
pub const CALLS_HEAD: &str = "region,number,process,thread,entered_at,begun_cycles,ended_cycles,end,depth,instructions,\
                              binding_instructions,missed_blocks,loads,stores,data_lines,code_lines\n";

/// A call as a line of the table. Times are those of a counter with one value for all threads; empty where none was
/// read.
pub fn call_line(region: &str, call: &Call, figures: &CallFigures) -> String {
    let cycles = |mark: Option<&lineup_model::access::TimeMark>| {
        mark.map(|mark| mark.cycles.to_string()).unwrap_or_default()
    };
    format!(
        "{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
        quoted(region),
        call.sequence,
        call.process.0,
        call.thread.0,
        call.entered_at,
        cycles(call.times.first()),
        cycles(call.times.last()),
        end(call.end),
        call.depth,
        call.instructions,
        call.binding_instructions,
        call.missed_blocks,
        figures.loads,
        figures.stores,
        figures.data_lines,
        figures.code_lines
    )
}

/// Each region's accesses to members of objects and to variables, by their line. A variable has no type, and its offset
/// is its link address. A member on two lines stands on both with all of its accesses.
pub fn members(explanation: &Explanation) -> String {
    let mut text = String::from(
        "region,calls,type,base_in_line,line,line_bytes,member,offset,size_bytes,loads_per_call,stores_per_call,shared\n",
    );
    for region in &explanation.regions {
        for line in &region.map {
            for part in &line.parts {
                let base = line.base_in_line.map(|base| base.to_string()).unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "{},{},{},{base},{},{},{},{},{},{},{},{}",
                    quoted(&region.name),
                    region.calls,
                    line.type_name.as_deref().map(quoted).unwrap_or_default(),
                    line.line,
                    explanation.line_bytes,
                    quoted(&part.name),
                    part.offset,
                    part.size_bytes,
                    part.loads_per_call,
                    part.stores_per_call,
                    line.is_shared
                );
            }
        }
    }
    text
}

/// Between quotes, on one line. A name that a spreadsheet would take for a formula is kept from being one.
pub(crate) fn quoted(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("\"{guard}{}\"", crate::visible::one_line(text).replace('"', "\"\""))
}
