//! Line maps: rows of sixteen bytes, coloured by use.

use super::elements::{NAME_CHARACTERS, name, scroll, sentence};
use crate::study::{
    Cell, Line, LineMap, ObjectLines, OwnerKind, RegionUse, SharedLine, Sharing, StudyReport, UseClass,
    region_letter,
};
use crate::visible::shortened;
use lineup_model::figure::{UNKNOWN, mean, whole};
use maud::{Markup, html};
use std::fmt::Write;

/// Maps beyond this many are folded away.
const OPEN_MAPS: usize = 6;

/// Bytes in a row.
const ROW_BYTES: u32 = 16;

pub(super) fn maps(report: &StudyReport) -> Markup {
    html! {
        p.muted {
            "One box per cache line, sixteen bytes a row, offsets from the start of the object at the left. "
            "L and S are loads and stores per call of the region whose letter precedes them."
        }
        (legend())
        (letters("Regions", report.regions.iter().map(|region| region.name.as_str())))
        @let (first, more) = report.maps.split_at(report.maps.len().min(OPEN_MAPS));
        @for map in first { (one_map(map, "per call")) }
        @if !more.is_empty() {
            details {
                summary { (more.len()) " more types and variables" }
                @for map in more { (one_map(map, "per call")) }
            }
        }
        @if !report.shared_lines.is_empty() { (shared_lines(&report.shared_lines)) }
    }
}

/// The meaning of the colours of bytes.
pub(crate) fn legend() -> Markup {
    html! {
        ul.legend aria-label="Use of bytes" {
            @for class in UseClass::ALL { li { span class={ "swatch " (class_name(class)) } {} (class.describe()) } }
        }
    }
}

/// The functions' letters.
pub(crate) fn letters<'n>(label: &str, names: impl Iterator<Item = &'n str>) -> Markup {
    html! {
        ul.legend aria-label=(label) {
            @for (index, one) in names.enumerate() { li { span.letter { (region_letter(index)) } (name(one)) } }
        }
    }
}

/// Lines that pass between threads.
fn shared_lines(lines: &[SharedLine]) -> Markup {
    let table = html! {
        table {
            thead { tr {
                th.n { "line at" } th { "touched data (* written)" } th { "read by" } th { "written by" }
                th.n { "true handovers" } th.n { "false handovers" }
            } }
            tbody {
                @for line in lines {
                    tr {
                        td.n { (format!("{:#x}", line.address)) }
                        td.name { @for (index, part) in line.parts.iter().enumerate() { @if index > 0 { ", " } (name(part)) } }
                        td { (threads(&line.readers)) }
                        td { (threads(&line.writers)) }
                        td.n { (whole(line.true_handovers)) }
                        td.n { (whole(line.false_handovers)) }
                    }
                }
            }
        }
    };
    html! {
        h3 { "Lines between threads" }
        p.muted { "A true handover needs bytes that another thread wrote; a false one needs other bytes of the same line." }
        (scroll("Lines between threads", &table))
    }
}

/// A map's kind, and the unit of its uses.
#[derive(Clone, Copy)]
struct Of {
    kind: OwnerKind,
    per: &'static str,
}

/// One map, with a heading. `per` is the unit of the uses, as in `per call`.
pub(crate) fn one_map(map: &LineMap, per: &'static str) -> Markup {
    let (of, line_bytes) = (Of { kind: map.owner.kind, per }, map.line_bytes);
    let what = match of.kind {
        OwnerKind::Type => "",
        OwnerKind::Variable => "variable ",
        OwnerKind::Variables => "variables ",
    };
    html! {
        h3 { (what) (name(&map.owner.name)) @if let Some(at) = &map.owner.declared_at { " " span.muted { (shortened(at, NAME_CHARACTERS)) } } }
        @if !map.objects_per_call.is_empty() {
            p {
                "Objects used per call: "
                @for (index, (region, objects)) in map.objects_per_call.iter().enumerate() {
                    @if index > 0 { ", " }
                    span.letter { (region_letter(*region)) } " " (mean(*objects))
                }
                "."
            }
        }
        @for note in &map.notes { p { (sentence(note)) } }
        div.maps {
            div { (object("before", of, line_bytes, &map.before)) }
            @if let Some(after) = &map.after { div { (object("after", of, line_bytes, after)) } }
        }
        details {
            summary { "Every member as a table" }
            div.pair {
                div { (members("Members before", of, line_bytes, &map.before)) }
                @if let Some(after) = &map.after { div { (members("Members after", of, line_bytes, after)) } }
            }
        }
    }
}

fn object(when: &str, of: Of, line_bytes: u32, lines: &ObjectLines) -> Markup {
    let (used, fetched) = lines.used_of_fetched();
    let all = lines.lines.len() as u64 + lines.lines_not_listed;
    html! {
        h4 {
            (when) ": " (whole(lines.size_bytes)) " bytes, " (lines.touched_lines()) " of " (whole(all)) " lines touched, "
            (whole(used)) " of " (whole(fetched)) " bytes fetched are used"
        }
        @for run in lines.lines.chunk_by(|a, b| a.fetched_bytes == 0 && b.fetched_bytes == 0 || b.continues(a)) {
            @match run {
                [line, more @ ..] if line.fetched_bytes > 0 => {
                    (touched(line, of, line_bytes, lines.start_in_line))
                    @if let Some(last) = more.last() {
                        p.muted { "The same up to line " (of.kind.line_text(last.index, line_bytes)) "." }
                    }
                }
                _ => { (untouched(run)) }
            }
        }
        @if lines.lines_not_listed > 0 { p.muted { (whole(lines.lines_not_listed)) " more lines are not drawn." } }
    }
}

fn touched(line: &Line, of: Of, line_bytes: u32, start_in_line: u32) -> Markup {
    let percent = (100 * line.used_bytes).checked_div(line.fetched_bytes).unwrap_or(0);
    html! {
        div.line tabindex="0" role="group" aria-label=(in_words(line, of, line_bytes)) {
            div.line-head {
                b { "line " (of.kind.line_text(line.index, line_bytes)) }
                span { (line.used_bytes) " of " (line.fetched_bytes) " bytes used" }
                span.meter aria-hidden="true" { i style=(format!("width:{percent}%")) {} }
            }
            div.bytes {
                @for row in 0..line_bytes.div_ceil(ROW_BYTES) { (byte_row(line, of, row, line_bytes, start_in_line)) }
            }
            @if !line.cold_riders.is_empty() {
                div.riders { (line.cold_riders.len()) " cold " @if line.cold_riders.len() == 1 { "member rides" } @else { "members ride" } " along" }
            }
        }
    }
}

/// Sixteen bytes: the offset, then the pieces of the cells that reach into them.
fn byte_row(line: &Line, of: Of, row: u32, line_bytes: u32, start_in_line: u32) -> Markup {
    let from = row * ROW_BYTES;
    let to = (from + ROW_BYTES).min(line_bytes);
    let offset =
        i128::from(line.index) * i128::from(line_bytes) + i128::from(from) - i128::from(start_in_line);
    // Addresses are too long for the margin; the head of the line has its own.
    let label = match u64::try_from(offset) {
        _ if of.kind == OwnerKind::Variables => format!("+{from}"),
        Ok(offset) => offset.to_string(),
        Err(_) => format!("−{}", -offset),
    };
    html! {
        div.at aria-hidden="true" { (label) }
        @for cell in line.cells.iter().filter(|cell| cell.in_line < to && cell.in_line + cell.size_bytes > from) {
            @let start = cell.in_line.max(from);
            @let bytes = (cell.in_line + cell.size_bytes).min(to) - start;
            (piece(cell, of, bytes, start > cell.in_line || cell.continued))
        }
    }
}

fn piece(cell: &Cell, of: Of, bytes: u32, continued: bool) -> Markup {
    let text = match (&cell.name, cell.class) {
        (Some(name), _) => shortened(name, NAME_CHARACTERS),
        (None, UseClass::Padding) => "pad".into(),
        (None, _) => String::new(),
    };
    html! {
        div class={ "cell " (class_name(cell.class)) } style=(format!("grid-column:span {bytes}")) title=(cell_in_words(cell, of)) {
            span { @if cell.class == UseClass::Shared { "⇄ " } @if continued && cell.name.is_some() { "…" } (text) }
            @if !continued && !cell.uses.is_empty() { span.use { (uses(&cell.uses)) } }
        }
    }
}

fn untouched(run: &[Line]) -> Markup {
    let (Some(first), Some(last)) = (run.first(), run.last()) else { return html! {} };
    let which = if run.len() == 1 {
        format!("Line {}", first.index)
    } else {
        format!("Lines {} to {}", first.index, last.index)
    };
    let names: Vec<String> = run
        .iter()
        .flat_map(|line| &line.cells)
        .filter(|cell| !cell.continued)
        .filter_map(|cell| cell.name.as_deref())
        .map(|name| shortened(name, NAME_CHARACTERS))
        .collect();
    html! {
        details.untouched {
            summary { (which) ": not touched, " (names.len()) @if names.len() == 1 { " member begins there" } @else { " members begin there" } }
            code { (names.join(", ")) }
        }
    }
}

fn members(label: &str, of: Of, line_bytes: u32, lines: &ObjectLines) -> Markup {
    let cells = || lines.lines.iter().flat_map(|line| line.cells.iter().map(move |cell| (line.index, cell)));
    let is_shared = cells().any(|(_, cell)| cell.sharing.is_some());
    let table = html! {
        table {
            thead { tr { th.n { "line" } th.n { "offset" } th.n { "size" } th { "member" } th { "use" } th { (of.per) } @if is_shared { th { "threads" } } } }
            tbody {
                @for (line, cell) in cells().filter(|(_, cell)| cell.class != UseClass::Outside) {
                    tr {
                        td.n { (of.kind.line_text(line, line_bytes)) }
                        td.n { (cell.offset.map_or_else(|| UNKNOWN.into(), |offset| of.kind.offset_text(offset))) }
                        td.n { (cell.size_bytes) }
                        td { @match &cell.name { Some(text) => { @if cell.continued { "…" } (name(text)) } None => { span.muted { "padding" } } } }
                        td.size { span class={ "swatch " (class_name(cell.class)) } {} " " (cell.class.word()) }
                        td { (uses(&cell.uses)) }
                        @if is_shared { td { @if let Some(sharing) = &cell.sharing { (sharing_in_words(sharing)) } } }
                    }
                }
            }
        }
    };
    html! { h4 { (label) } (scroll(label, &table)) }
}

fn class_name(class: UseClass) -> &'static str {
    match class {
        UseClass::Loaded => "loaded",
        UseClass::Stored => "stored",
        UseClass::Shared => "shared",
        UseClass::Cold => "cold",
        UseClass::Padding => "padding",
        UseClass::Outside => "outside",
    }
}

/// Loads and stores of each region, such as `A 64L 64S · B 1L`.
fn uses(uses: &[RegionUse]) -> String {
    let one = |one: &RegionUse| {
        let mut text = region_letter(one.region);
        for (count, unit) in [(one.loads_per_call, "L"), (one.stores_per_call, "S")] {
            if count > 0.0 {
                // Writing to a String cannot fail.
                let _ = write!(text, " {}{unit}", mean(count));
            }
        }
        text
    };
    uses.iter().map(one).collect::<Vec<_>>().join(" · ")
}

fn cell_in_words(cell: &Cell, of: Of) -> String {
    let name = cell
        .name
        .as_deref()
        .map_or_else(|| cell.class.describe().to_owned(), |name| shortened(name, NAME_CHARACTERS));
    let offset = cell.offset.map_or_else(|| UNKNOWN.into(), |offset| of.kind.offset_text(offset));
    let mut text = format!("{name}: offset {offset}, {} bytes, {}", cell.size_bytes, cell.class.describe());
    if !cell.uses.is_empty() {
        let _ = write!(text, "; {} {}", of.per, uses(&cell.uses));
    }
    if let Some(sharing) = &cell.sharing {
        let _ = write!(text, "; {}", sharing_in_words(sharing));
    }
    text
}

fn sharing_in_words(sharing: &Sharing) -> String {
    format!(
        "read by threads {}, written by {}, {} handovers",
        threads(&sharing.readers),
        threads(&sharing.writers),
        whole(sharing.handovers)
    )
}

fn in_words(line: &Line, of: Of, line_bytes: u32) -> String {
    let used: Vec<String> = line
        .cells
        .iter()
        .filter(|cell| !cell.uses.is_empty())
        .filter_map(|cell| {
            cell.name
                .as_deref()
                .map(|name| format!("{} {}", shortened(name, NAME_CHARACTERS), uses(&cell.uses)))
        })
        .collect();
    format!(
        "Line {}: {} of {} bytes used; {}; {} cold members",
        of.kind.line_text(line.index, line_bytes),
        line.used_bytes,
        line.fetched_bytes,
        used.join(", "),
        line.cold_riders.len()
    )
}

fn threads(threads: &[u32]) -> String {
    match threads {
        [] => "none".to_owned(),
        threads => threads.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}
