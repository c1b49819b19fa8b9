//! Lines of text that the short and the full explanation share.

use lineup_debuginfo::spelled;
use lineup_explain::Explanation;
use lineup_explain::explanation::{Coverage, PartUse, RegionExplanation, UnnamedIn};
use lineup_explain::name::Class;
use lineup_report::visible::one_line;
use std::borrow::Cow;

/// The amount of text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Everything, or only the first screen.
    pub(crate) is_full: bool,
    /// Lines of memory shown per region, when the user says.
    pub(crate) top: Option<usize>,
    /// Characters that fit on a terminal's line, when there is a terminal.
    pub(crate) columns: Option<usize>,
}

/// The name of a function as its source spells it.
pub(crate) fn function_name(name: &str) -> String {
    one_line(&spelled(name)).into_owned()
}

/// A line in place of names, where fewer than one access in a hundred has one in any region. Accesses to the stack are
/// identified by their place, and do not count.
pub(crate) fn no_names(explanation: &Explanation) -> Option<String> {
    let mut seen = explanation.regions.iter().filter_map(|region| region.coverage.named_off_stack).peekable();
    let has_none = seen.peek().is_some() && seen.all(|named| named < 0.01);
    has_none.then(|| {
        "Next to no access outside the stack has a name: no file that was recorded has symbols or types that can be read. Lines are \
         counted all the same."
            .to_owned()
    })
}

pub(crate) fn percent(share: Option<f64>) -> String {
    share.map_or("not observed".to_owned(), lineup_model::figure::share)
}

pub(crate) fn coverage_line(coverage: &Coverage) -> String {
    format!(
        "  named {} of {} accesses; {} outside the stack",
        percent(coverage.named),
        coverage.accesses,
        percent(coverage.named_off_stack)
    )
}

/// Parts that a region's figures leave out, or that are uncertain.
pub(crate) fn notes(region: &RegionExplanation) -> impl Iterator<Item = String> {
    let notes = [
        (region.unfinished, "calls left out: not ended when the recording did"),
        (region.abandoned, "calls left by longjmp, an exception or a switch of stacks"),
        (region.missed_blocks, "blocks entered whose accesses were not recorded"),
        (region.folded_patterns, "combinations of bytes folded: too many distinct ones"),
    ];
    let counted =
        notes.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("  {count} {what}"));
    counted.chain(region.calls_per_second.map(|rate| format!("  {rate:.1} calls per second")))
}

pub(crate) fn unnamed_line(unnamed: &UnnamedIn) -> String {
    let (function, image) = (function_name(&unnamed.function), one_line(&unnamed.image));
    let why = unnamed.lacks.map_or(String::new(), |lacks| format!(": {}", lacks.advice()));
    format!("    unnamed {:>10}  {function} ({image}){why}", unnamed.accesses)
}

/// The message where only one thread was recorded.
pub(crate) const ONE_THREAD: &str = "One thread was recorded: traffic between threads was not observed.";

/// The message where the accesses are samples.
pub(crate) const SAMPLES: &str =
    "Samples, not whole calls: the data that a call touches together was not observed.";

/// The message where registers might have named unnamed data.
pub(crate) fn no_registers(explanation: &Explanation) -> Option<String> {
    let by_class = &explanation.coverage.by_class;
    let is_open = [Class::Unnamed, Class::Library].iter().any(|class| by_class.contains_key(class));
    let tells = explanation.tells;
    (tells.whole_calls && !tells.registers && is_open).then(|| NO_REGISTERS.to_owned())
}

/// A part of a line, or the elements of an array on it that are used alike, as one.
pub(crate) struct Row<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) offset: u64,
    pub(crate) size_bytes: u64,
    pub(crate) loads_per_call: f64,
    pub(crate) stores_per_call: f64,
    pub(crate) elements: u64,
}

/// The parts of a line with the elements of arrays folded into one row each.
pub(crate) fn rows(parts: &[PartUse]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for part in parts {
        let is_element = part.name.contains("[]");
        let same =
            |row: &&mut Row<'_>| is_element && row.name == part.name && row.size_bytes == part.size_bytes;
        match rows.iter_mut().find(same) {
            Some(row) => {
                row.loads_per_call += part.loads_per_call;
                row.stores_per_call += part.stores_per_call;
                row.elements += 1;
            }
            None => rows.push(Row {
                name: one_line(&part.name),
                offset: part.offset,
                size_bytes: part.size_bytes,
                loads_per_call: part.loads_per_call,
                stores_per_call: part.stores_per_call,
                elements: 1,
            }),
        }
    }
    rows
}

impl Row<'_> {
    /// The name, and of an array how many elements.
    pub(super) fn label(&self) -> String {
        match self.elements {
            1 => self.name.to_string(),
            elements => format!("{} ({elements} elements)", self.name),
        }
    }
}

/// The recorder read no registers.
pub(crate) const NO_REGISTERS: &str =
    "Registers were not read: pointers given to calls name no objects here. QEMU 9.0 and later show them.";

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, offset: u64) -> PartUse {
        PartUse { name: name.to_owned(), offset, size_bytes: 4, loads_per_call: 1.0, stores_per_call: 0.5 }
    }

    #[test]
    fn elements_of_an_array_are_one_row_with_their_number() {
        let parts =
            [part("id", 0), part("counts[]", 4), part("counts[]", 8), part("peer", 12), part("counts[]", 16)];
        let labels: Vec<(String, f64)> =
            rows(&parts).iter().map(|row| (row.label(), row.loads_per_call)).collect();
        let expected = [("id", 1.0), ("counts[] (3 elements)", 3.0), ("peer", 1.0)];
        assert_eq!(labels, expected.map(|(label, loads)| (label.to_owned(), loads)));
    }

    #[test]
    fn functions_are_spelled_as_in_their_source() {
        assert_eq!(function_name("_ZN3app3runERNS_7DerivedEi"), "app::run(app::Derived&, int)");
        assert_eq!(
            function_name("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE"),
            "core::fmt::Formatter::pad"
        );
        assert_eq!(function_name("main"), "main");
    }
}
