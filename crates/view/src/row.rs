//! The rows of the lists, in words and figures.

use crate::column::Column;
use crate::subject::{CallRow, Subject};
use lineup_report::figure::{UNKNOWN, mean, whole};
use lineup_report::study::{
    Cell, Line, LineKind, LineMap, OwnerKind, RegionReport, RegionUse, UseClass, region_letter,
};
use lineup_report::visible::one_line;

/// What sets a row apart, besides its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// A row like others.
    Plain,
    /// A row above those that belong to it.
    Heading,
    /// A member that is used.
    Used,
    /// What is there and not used.
    Faint,
}

/// A row of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name, without characters that steer a terminal.
    pub name: String,
    /// Its other columns.
    pub cells: Vec<String>,
    /// How it looks.
    pub look: Look,
}

const fn column(title: &'static str, width: u16) -> Column {
    Column { title, width }
}

/// The columns of functions.
pub(crate) const FUNCTIONS: &[Column] =
    &[column("data lines", 10), column("code lines", 10), column("calls", 9), column("instructions", 12)];
/// The columns of types.
pub(crate) const TYPES: &[Column] =
    &[column("bytes", 9), column("lines touched", 13), column("bytes used", 17)];
/// The columns of lines.
pub(crate) const LINES: &[Column] =
    &[column("offset", 6), column("size", 5), column("use", 8), column("per call", 24)];
/// The columns of calls.
pub(crate) const CALLS: &[Column] = &[
    column("data lines", 10),
    column("code lines", 10),
    column("instructions", 12),
    column("thread", 6),
    column("ended", 18),
];

pub(crate) fn function(index: usize, region: &RegionReport) -> Row {
    let lines = |kind: LineKind| {
        let found = region.footprints.iter().find(|one| one.kind == kind && one.line_bytes == 64);
        found.map_or_else(|| UNKNOWN.to_owned(), |one| mean(one.before.mean()))
    };
    let instructions =
        region.instructions_per_call.map_or_else(|| UNKNOWN.to_owned(), |one| mean(one.median));
    Row {
        name: format!("{} {}", region_letter(index), one_line(&region.name)),
        cells: vec![lines(LineKind::Data), lines(LineKind::Code), whole(region.calls_recorded), instructions],
        look: Look::Plain,
    }
}

pub(crate) fn owner(map: &LineMap) -> Row {
    let (used, fetched) = map.before.used_of_fetched();
    let what = match map.owner.kind {
        OwnerKind::Type => "",
        OwnerKind::Variable => "variable ",
        OwnerKind::Variables => "variables ",
    };
    let lines = map.before.lines.len() as u64 + map.before.lines_not_listed;
    // What lies beyond the listed lines is not counted here.
    let more = if map.before.lines_not_listed > 0 { "+" } else { "" };
    Row {
        name: format!("{what}{}", one_line(&map.owner.name)),
        cells: vec![
            whole(map.before.size_bytes),
            format!("{}{more} of {}", map.before.touched_lines(), whole(lines)),
            format!("{}{more} of {}{more}", whole(used), whole(fetched)),
        ],
        look: Look::Plain,
    }
}

/// The lines of an owner, each with its members below it.
pub(crate) fn lines(map: &LineMap) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in &map.before.lines {
        rows.push(heading(line, map));
        rows.extend(
            line.cells.iter().filter(|cell| cell.class != UseClass::Outside).map(|cell| member(cell, map)),
        );
    }
    if map.before.lines_not_listed > 0 {
        let name = format!("{} more lines are not listed", whole(map.before.lines_not_listed));
        rows.push(Row { name, cells: Vec::new(), look: Look::Heading });
    }
    rows
}

fn heading(line: &Line, map: &LineMap) -> Row {
    let used = match line.fetched_bytes {
        0 => "not touched".to_owned(),
        fetched => format!("{} of {fetched} bytes used", line.used_bytes),
    };
    let text = map.owner.kind.line_text(line.index, map.line_bytes);
    Row { name: format!("line {text}: {used}"), cells: Vec::new(), look: Look::Heading }
}

fn member(cell: &Cell, map: &LineMap) -> Row {
    let name = cell.name.as_deref().map_or("padding".into(), one_line);
    let begun = if cell.continued { "…" } else { "" };
    let offset = cell.offset.map_or_else(|| UNKNOWN.to_owned(), |offset| map.owner.kind.offset_text(offset));
    Row {
        name: format!("  {begun}{name}"),
        cells: vec![offset, cell.size_bytes.to_string(), cell.class.word().to_owned(), uses(&cell.uses)],
        look: if cell.uses.is_empty() { Look::Faint } else { Look::Used },
    }
}

/// Loads and stores of each function, such as `A 64L 64S · B 1L`.
fn uses(uses: &[RegionUse]) -> String {
    let one = |one: &RegionUse| {
        let counted = [(one.loads_per_call, "L"), (one.stores_per_call, "S")];
        let counted = counted.iter().filter(|(count, _)| *count > 0.0);
        counted
            .fold(region_letter(one.region), |text, (count, unit)| format!("{text} {}{unit}", mean(*count)))
    };
    uses.iter().map(one).collect::<Vec<_>>().join(" · ")
}

pub(crate) fn call(call: &CallRow, subject: &Subject) -> Row {
    let name = subject.regions.get(call.region).map_or("", |region| region.name.as_str());
    Row {
        name: format!("#{} {}", call.number, one_line(name)),
        cells: vec![
            whole(call.data_lines),
            whole(call.code_lines),
            whole(call.instructions),
            call.thread.to_string(),
            call.ended.unwrap_or_default().to_owned(),
        ],
        look: Look::Plain,
    }
}
