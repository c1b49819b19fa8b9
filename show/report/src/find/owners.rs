//! Where data stalled: the table of owners, for the terminal and the page.

use super::rows::write_table;
use super::stacks::Node;
use crate::html::{name, scroll};
use crate::text::{Align, Table, TextStyle};
use crate::visible::{one_line, shortened};
use lineup_find::{Findings, OwnerStalls};
use lineup_model::figure::{self, UNKNOWN, mean, share, whole};
use maud::{Markup, html};

/// Characters shown of a name in the terminal.
const NAME: usize = 80;
/// Members shown of an owner in the terminal.
const MEMBERS: usize = 3;
/// The most members and functions shown for each owner on the page.
const PARTS: usize = 12;
/// Rows of each table of the page.
pub(super) const ROWS: usize = 40;

/// A column of figures. Names surround them: after them in the terminal; after the first, and at the end, on the page.
struct Column {
    in_terminal: &'static str,
    on_page: &'static str,
    figure: fn(&OwnerStalls) -> Figure,
}

const fn column(
    in_terminal: &'static str,
    on_page: &'static str,
    figure: fn(&OwnerStalls) -> Figure,
) -> Column {
    Column { in_terminal, on_page, figure }
}

/// The columns of figures.
const COLUMNS: [Column; 6] = [
    column("stalls", "stalls", |owner| Figure::Share(owner.share)),
    column("time", "time", |owner| Figure::Share(owner.time)),
    column("accesses", "accesses", |owner| Figure::Count(owner.accesses)),
    column("L1 misses", "first level missed", |owner| Figure::Count(owner.l1_misses)),
    column("L2 misses", "second too", |owner| Figure::Count(owner.l2_misses)),
    column("used", "used of a line", |owner| Figure::Bytes(owner.used_bytes_per_line)),
];

enum Figure {
    Share(f64),
    Count(f64),
    Bytes(Option<f64>),
}

impl Figure {
    fn in_terminal(&self) -> String {
        match self {
            Self::Share(value) => share(*value),
            Self::Count(value) => figure::grouped(*value, 0),
            Self::Bytes(value) => value.map_or_else(String::new, |bytes| format!("{bytes:.0} B")),
        }
    }

    fn on_page(&self) -> String {
        match self {
            Self::Share(value) => share(*value),
            Self::Count(value) => mean(*value),
            Self::Bytes(value) => value.map_or_else(|| UNKNOWN.into(), |bytes| format!("{bytes:.0} B")),
        }
    }
}

/// Writes the table for a terminal or a pipe, at most `top` rows.
pub(super) fn owners_text(out: &mut String, owners: &[OwnerStalls], top: usize, style: TextStyle) {
    let columns = COLUMNS.iter().map(|column| (column.in_terminal, Align::Right));
    let has_waits = owners.iter().any(|owner| waits(owner) >= 1.0);
    let of_threads = has_waits.then_some(("thread waits", Align::Right));
    let texts = [("data", Align::Left), ("members", Align::Left), ("functions", Align::Left)];
    let mut table = Table::new(columns.chain(of_threads).chain(texts));
    for owner in owners.iter().take(top) {
        let members = owner.members.iter().filter(|member| member.stall_cycles > 0.0).take(MEMBERS);
        let members = members.map(|member| format!("{} {}", one_line(&member.path), share(member.share)));
        let functions = owner.functions.iter().map(|(name, _)| shortened(name, NAME));
        let names = [
            shortened(&owner.name, NAME),
            members.collect::<Vec<_>>().join(", "),
            functions.collect::<Vec<_>>().join(", "),
        ];
        let figures = COLUMNS.iter().map(|column| (column.figure)(owner).in_terminal());
        let of_threads = has_waits.then(|| figure::grouped(waits(owner), 0));
        table.row(figures.chain(of_threads).chain(names));
    }
    write_table(out, &table, owners.len(), top, style);
}

/// Waits of threads for its lines.
fn waits(owner: &OwnerStalls) -> f64 {
    owner.thread_waits.map_or(0.0, |waits| waits.all())
}

/// The table of the page.
pub(super) fn owners_table(findings: &Findings, root: &Node) -> Markup {
    let [first, rest @ ..] = &COLUMNS;
    let more = findings.owners.len().saturating_sub(ROWS);
    let table = html! {
        table {
            thead { tr {
                th.n { (first.on_page) } th { "what" } @for column in rest { th.n { (column.on_page) } }
                th { "members and functions" }
            } }
            tbody { @for (index, owner) in findings.owners.iter().take(ROWS).enumerate() {
                tr id=(format!("data-{}", index + 1)) {
                    td.n { ((first.figure)(owner).on_page()) }
                    td.name { (name(&owner.name)) @if let Some(size) = owner.size_bytes { " " span.muted { (whole(size)) " B" } } }
                    @for column in rest { td.n { ((column.figure)(owner).on_page()) } }
                    td.parts { (parts(findings, root, owner)) }
                }
            } }
        }
    };
    html! {
        (scroll("Stalls for data", &table))
        @if more > 0 { p.muted { (more) " more are in the JSON form." } }
    }
}

/// An owner's members with the functions that stall for each, or its functions.
fn parts(findings: &Findings, root: &Node, owner: &OwnerStalls) -> Markup {
    let all = findings.stalls.cycles();
    let Some(node) = root.inner("data").and_then(|data| data.inner(&owner.name)) else { return html! {} };
    let (inner, more) = node.largest(PARTS, all);
    html! {
        details {
            @let count = inner.len() + more;
            summary { (count) @if owner.members.is_empty() { " function" } @else { " member" } @if count != 1 { "s" } }
            ul.plain {
                @for (part, of_all) in &inner {
                    li { (share(*of_all)) " " (name(part))
                        @if let Some(member) = node.inner(part) {
                            @let (functions, _) = member.largest(3, all);
                            @if !functions.is_empty() {
                                " in " @for (index, (function, _)) in functions.iter().enumerate() { @if index > 0 { ", " } (name(function)) }
                            }
                        }
                    }
                }
                @if more > 0 { li.muted { (more) " more" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The terminal and the page have the same figures, each in its spelling.
    #[test]
    fn each_column_is_in_the_terminal_and_on_the_page() {
        let owner = OwnerStalls {
            share: 0.9,
            time: 0.5,
            accesses: 40.25,
            l1_misses: 4.0,
            l2_misses: 3.0,
            used_bytes_per_line: Some(8.0),
            ..OwnerStalls::default()
        };
        let cells = COLUMNS.map(|column| {
            let figure = (column.figure)(&owner);
            [column.in_terminal.to_owned(), figure.in_terminal(), column.on_page.to_owned(), figure.on_page()]
        });
        let expected = [
            ["stalls", "90.0 %", "stalls", "90.0 %"],
            ["time", "50.0 %", "time", "50.0 %"],
            ["accesses", "40", "accesses", "40.2"],
            ["L1 misses", "4", "first level missed", "4"],
            ["L2 misses", "3", "second too", "3"],
            ["used", "8 B", "used of a line", "8 B"],
        ];
        assert_eq!(cells, expected.map(|row| row.map(str::to_owned)));
        let mut text = String::new();
        owners_text(&mut text, std::slice::from_ref(&owner), 10, TextStyle::Plain);
        let words: Vec<&str> = text.split_whitespace().collect();
        let heads = "stalls time accesses L1 misses L2 misses used data members functions";
        assert_eq!(words.join(" "), format!("{heads} 90.0 % 50.0 % 40 4 3 8 B"));
    }
}
