//! A review as a comment in Markdown, of sixty lines at most.

use crate::calls::{Compared, Counted, RegionChange};
use crate::finding::{Finding, Ratio};
use crate::layouts::{FileChanges, TypeChange};
use crate::review::Review;
use lineup_model::layout::Change;
use lineup_report::visible::{one_line, shortened};
use std::fmt::Write;

/// Rows of each table. Their sum, with all headings, stays below [`MOST_LINES`].
const FINDINGS: usize = 14;
const TYPES: usize = 10;
const REGIONS: usize = 8;
const SENTENCES: usize = 4;

/// Lines of a comment at most.
const MOST_LINES: usize = 60;

/// The comment.
pub fn markdown(review: &Review) -> String {
    let mut out = headline(review);
    findings(&mut out, &review.findings);
    types(&mut out, &review.files);
    calls(&mut out, &review.regions);
    guard(&mut out, review);
    if let Some(of) = &review.certificate {
        let word = if of.is_refused { ", **refused**" } else { "" };
        let _ = writeln!(out, "\n**Certificate** {}{word}: {}.", code(&of.file), text(&of.sentence));
    }
    for sentence in review.not_observed.iter().take(SENTENCES) {
        let _ = writeln!(out, "- Not observed: {}.", text(sentence));
    }
    debug_assert!(out.lines().count() <= MOST_LINES);
    out
}

fn headline(review: &Review) -> String {
    let failing = review.findings.iter().filter(|finding| finding.fails).count();
    let others = review.findings.len() - failing;
    let word = match (failing, others) {
        (0, 0) => "nothing got worse".to_owned(),
        (0, others) => format!("{others} {} worse, none that fails", things(others)),
        (failing, 0) => format!("{failing} {} worse, and fails", things(failing)),
        (failing, others) => format!("{failing} {} worse, and fails; {others} more", things(failing)),
    };
    format!("### Lineup: {word}\n\nHead {}, base {}.\n", code(&review.head), code(&review.base))
}

fn things(count: usize) -> &'static str {
    if count == 1 { "thing got" } else { "things got" }
}

fn findings(out: &mut String, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    *out += "\n| | regression | where |\n|---|---|---|\n";
    for finding in findings.iter().take(FINDINGS) {
        let place = finding.place.as_ref();
        let place = place.map(|place| code(&format!("{}:{}", place.file, place.line))).unwrap_or_default();
        let word = if finding.fails { "**fails**" } else { "" };
        let _ = writeln!(out, "| {word} {} | {} | {place} |", finding.rule.name(), text(&finding.message));
    }
    more(out, findings.len(), FINDINGS, "more in the SARIF file and with --json");
}

fn types(out: &mut String, files: &[FileChanges]) {
    let mut changed: Vec<&TypeChange> = Vec::new();
    for change in files.iter().flat_map(|file| &file.changed) {
        // A type that several files hold is one type.
        if !changed.contains(&change) {
            changed.push(change);
        }
    }
    let same: usize = files.iter().map(|file| file.same).sum();
    let _ = writeln!(out, "\n**Types**: {} changed, {same} the same.", changed.len());
    if changed.is_empty() {
        return;
    }
    // Types that grow by lines come first.
    changed.sort_by_key(|change| {
        let (before, after) = change.difference.lines;
        (std::cmp::Reverse(after.saturating_sub(before)), change.name.clone())
    });
    *out += "\n| type | bytes | lines | members |\n|---|---:|---:|---|\n";
    for change in changed.iter().take(TYPES) {
        let difference = &change.difference;
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(&change.name),
            from_to(difference.size_bytes.0, difference.size_bytes.1),
            from_to(difference.lines.0, difference.lines.1),
            members(&difference.changes)
        );
    }
    more(out, changed.len(), TYPES, "more types");
}

fn from_to(before: u64, after: u64) -> String {
    if before == after { after.to_string() } else { format!("{before} → {after}") }
}

/// Members that were added or removed, or lie on another line now; the others as a count.
fn members(changes: &[Change]) -> String {
    const NAMED: usize = 4;
    let mut named = Vec::new();
    let mut moved = 0;
    for change in changes {
        match change {
            Change::Added { name, offset } => named.push(format!("{} added at {offset}", code(name))),
            Change::Removed { name, .. } => named.push(format!("{} removed", code(name))),
            Change::Moved { name, lines: Some((from, to)), .. } => {
                named.push(format!("{} line {from} → {to}", code(name)));
            }
            Change::Moved { lines: None, .. } => moved += 1,
            Change::Resized { name, from, to, is_in_bits } => {
                let unit = if *is_in_bits { "bits" } else { "bytes" };
                named.push(format!("{} {from} → {to} {unit}", code(name)));
            }
        }
    }
    let others = moved + named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    if others > 0 {
        named.push(format!("{others} more moved or resized"));
    }
    named.join(", ")
}

fn calls(out: &mut String, regions: &[RegionChange]) {
    if regions.is_empty() {
        return;
    }
    *out += "\n| per call of | calls | lines of data | lines of code | instructions | lines of types |\n\
             |---|---:|---:|---:|---:|---|\n";
    for region in regions.iter().take(REGIONS) {
        let (before, after) = (&region.before, &region.after);
        let types: Vec<String> = region
            .types()
            .iter()
            .filter(|lines| !lines.name.is_empty())
            .take(2)
            .map(|lines| format!("{} {:.2} → {:.2}", code(&lines.name), lines.before, lines.after))
            .collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(&after.name),
            from_to(before.calls(), after.calls()),
            Counted::ALL.map(|counted| means(region.compared(counted))).join(" | "),
            types.join(", ")
        );
    }
    more(out, regions.len(), REGIONS, "more functions");
}

/// Means, and the change when it is certain: a difference as large as that between a side's own runs is not mentioned.
fn means(compared: Compared) -> String {
    let (before, after) = (compared.before, compared.after);
    if format!("{before:.2}") == format!("{after:.2}") {
        return format!("{after:.2}");
    }
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    let change = match compared.ratio {
        None => String::new(),
        Some(ratio) if ratio.low <= 1.0 && ratio.high >= 1.0 => " (no difference found)".to_owned(),
        Some(ratio) if ratio.low == ratio.high => format!(" ({:+.1} %)", percent(ratio.value)),
        Some(Ratio { value, low, high }) => {
            format!(" ({:+.1} % [{:+.1}, {:+.1}])", percent(value), percent(low), percent(high))
        }
    };
    format!("{before:.2} → {after:.2}{change}")
}

fn guard(out: &mut String, review: &Review) {
    if review.guard.is_empty() {
        *out += "\n";
        return;
    }
    let sum = |of: &dyn Fn(&lineup_advise::guard::CheckReport) -> usize| -> usize {
        review.guard.iter().map(|state| of(&state.head)).sum()
    };
    let (groups, kept, other) = (sum(&|one| one.groups), sum(&|one| one.kept), sum(&|one| one.not_checked));
    let _ = write!(out, "\n**Promises**: {kept} of {} kept", groups - other);
    if other > 0 {
        let _ = write!(out, "; {other} are for another data model");
    }
    *out += ".\n\n";
}

fn more(out: &mut String, all: usize, shown: usize, what: &str) {
    if all > shown {
        let _ = writeln!(out, "\n{} {what}.", all - shown);
    }
}

/// Characters of a name at most.
const NAME: usize = 72;
/// Characters of a sentence at most.
const SENTENCE: usize = 280;

/// A name that cannot end its own code span or its cell.
fn code(name: &str) -> String {
    format!("`{}`", shortened(name, NAME).replace('`', "'").replace('|', "\\|"))
}

/// A sentence in which nothing of Markdown or HTML acts.
fn text(sentence: &str) -> String {
    let mut plain = String::new();
    for c in shortened(&one_line(sentence), SENTENCE).chars() {
        match c {
            '<' => plain.push_str("&lt;"),
            '>' => plain.push_str("&gt;"),
            '&' => plain.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' | '@' | '!' => {
                plain.push('\\');
                plain.push(c);
            }
            c => plain.push(c),
        }
    }
    plain
}
