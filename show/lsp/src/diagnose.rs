//! A declaration's problems: holes, lines that threads take from each other, promises that are not kept.

use crate::constraints;
use crate::evidence::{Evidence, UsedLine, UsedPart};
use crate::freshness::Freshness;
use crate::hover::{Beside, named_threads, plain};
use crate::position::Lines;
use crate::view::View;
use lineup_advise::outline::Declared;
use lineup_model::figure;
use lsp_types::{Diagnostic, DiagnosticSeverity, NumberOrString};
use std::collections::BTreeSet;
use std::ops::Range;

/// The diagnostics' source.
const SOURCE: &str = "lineup";

/// The most types that a diagnostic names.
const MOST_INSTANCES: usize = 4;

/// All diagnostics of a declaration. A declaration that may differ from the built one gets only a diagnostic that says
/// so.
pub(crate) fn of_type(
    view: &View<'_>,
    declared: &Declared,
    lines: &Lines<'_>,
    beside: Beside<'_>,
) -> Vec<Diagnostic> {
    let at = |bytes: &Range<usize>, severity, code: &str, message: String| Diagnostic {
        range: lines.range(bytes),
        severity: Some(severity),
        code: Some(NumberOrString::String(code.to_string())),
        source: Some(SOURCE.to_string()),
        message,
        ..Diagnostic::default()
    };
    if let Some(why) = view.freshness.in_words(&view.program_name) {
        let message = format!("{why}: build it again to see holes and hot lines here");
        return vec![at(&declared.name_bytes, DiagnosticSeverity::HINT, "stale", message)];
    }
    let mut all = holes(view, declared)
        .into_iter()
        .map(|(bytes, message)| at(&bytes, DiagnosticSeverity::HINT, "hole", message))
        .collect::<Vec<_>>();
    let evidence = beside.evidence.map(|(evidence, _)| evidence);
    for (bytes, message) in shared(view, declared, evidence) {
        all.push(at(&bytes, DiagnosticSeverity::INFORMATION, "shared-line", message));
    }
    if let Some(lock) = beside.lock {
        let program = view.program;
        for violation in constraints::broken(lock, view.type_name(), &program.types, program.abi) {
            let member = violation.member.as_deref().and_then(|member| place_in_text(declared, member));
            let bytes = member.unwrap_or_else(|| declared.name_bytes.clone());
            all.push(at(&bytes, DiagnosticSeverity::INFORMATION, "lock", plain(&violation.message)));
        }
    }
    all
}

/// The diagnostics of the types that one declaration stands for, each once: one that does not hold for all of them
/// names those for which it does.
pub(crate) fn of_instances(instances: Vec<(&str, Vec<Diagnostic>)>) -> Vec<Diagnostic> {
    let count = instances.len();
    let mut all: Vec<(Diagnostic, Vec<String>)> = Vec::new();
    for (name, diagnostics) in instances {
        for diagnostic in diagnostics {
            match all.iter_mut().find(|(known, _)| *known == diagnostic) {
                Some((_, names)) => names.push(plain(name)),
                None => all.push((diagnostic, vec![plain(name)])),
            }
        }
    }
    let one = |(mut diagnostic, names): (Diagnostic, Vec<String>)| {
        if names.len() < count {
            let more = if names.len() > MOST_INSTANCES { ", …" } else { "" };
            let first = names.get(..MOST_INSTANCES).unwrap_or(&names).join(", ");
            diagnostic.message = format!("{first}{more}: {}", diagnostic.message);
        }
        diagnostic
    };
    all.into_iter().map(one).collect()
}

/// One of a whole text that is not as it was built: at the first declaration that the program has.
pub(crate) fn of_text(
    freshness: &Freshness,
    program: &str,
    declared: &Declared,
    lines: &Lines<'_>,
) -> Option<Diagnostic> {
    let why = freshness.in_words(program)?;
    Some(Diagnostic {
        range: lines.range(&declared.name_bytes),
        severity: Some(DiagnosticSeverity::HINT),
        code: Some(NumberOrString::String("stale".to_string())),
        source: Some(SOURCE.to_string()),
        message: format!("{why}: build it again to see holes and hot lines here"),
        ..Diagnostic::default()
    })
}

/// A member's name in the text. A member inside another one that is not declared here has the place of that one.
fn place_in_text(declared: &Declared, member: &str) -> Option<Range<usize>> {
    let path: Vec<&str> = member.split('.').collect();
    let depth = |length: usize| declared.members.iter().find(|one| one.path[..] == path[..length]);
    (1..=path.len()).rev().find_map(depth).map(|one| one.bytes.clone())
}

fn holes(view: &View<'_>, declared: &Declared) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    for row in view.layout.rows.iter().filter(|row| row.gap_before.bytes > 0) {
        let Some((name, offset)) = row.name.as_deref().zip(row.offset_bits) else { continue };
        let Some(bytes) = place_in_text(declared, name) else { continue };
        let from = (offset / 8).saturating_sub(row.gap_before.bytes);
        let hole = figure::counted(row.gap_before.bytes, "byte");
        found.push((bytes, format!("a hole of {hole} before {}, at offset {from}", plain(name))));
    }
    // A class without members has a byte all the same.
    if view.layout.padding.bytes > 0 && !view.layout.rows.is_empty() {
        let padding = figure::counted(view.layout.padding.bytes, "byte");
        found.push((declared.name_bytes.clone(), format!("{padding} of padding at the end")));
    }
    found
}

/// Members that one thread writes on a line that another thread uses.
fn shared(view: &View<'_>, declared: &Declared, evidence: Option<&Evidence>) -> Vec<(Range<usize>, String)> {
    let mut found = Vec::new();
    for line in view.used(evidence).iter().filter(|line| line.is_shared) {
        for part in &line.parts {
            let Some(bytes) = place_in_text(declared, &part.name) else { continue };
            let told = match &part.threads {
                Some(_) => by_threads(line, part),
                None => by_use(line, part),
            };
            found.extend(told.map(|message| (bytes, message)));
        }
    }
    found.sort_by_key(|(bytes, _)| bytes.start);
    found.dedup();
    found
}

/// The problem of a member's line, where the threads that use each part are known.
fn by_threads(line: &UsedLine, part: &UsedPart) -> Option<String> {
    let (readers, writers) = part.threads.as_ref()?;
    let own: BTreeSet<u32> = readers.iter().chain(writers).copied().collect();
    let name = plain(&part.name);
    let of_others = |mine: &BTreeSet<u32>, theirs: &[u32]| {
        theirs.iter().any(|thread| mine.iter().any(|own| own != thread))
    };
    let beside = || line.parts.iter().filter(|other| other.offset != part.offset);
    if writers.is_empty() {
        // Only read: a thread that writes next to it takes its line away.
        let taking: Vec<&UsedPart> = beside()
            .filter(|other| other.threads.as_ref().is_some_and(|(_, writers)| of_others(&own, writers)))
            .collect();
        let threads: BTreeSet<u32> = taking
            .iter()
            .filter_map(|other| other.threads.as_ref())
            .flat_map(|(_, writers)| writers)
            .copied()
            .collect();
        return (!taking.is_empty()).then(|| {
            format!(
                "{name} is only read ({}) and lies on a line with {}, written by {}",
                named_threads(&own),
                names(&taking),
                named_threads(&threads)
            )
        });
    }
    let writing: BTreeSet<u32> = writers.iter().copied().collect();
    let suffering: Vec<&UsedPart> = beside()
        .filter(|other| {
            other.threads.as_ref().is_some_and(|(readers, writers)| {
                of_others(&writing, readers) || of_others(&writing, writers)
            })
        })
        .collect();
    let users: BTreeSet<u32> = suffering
        .iter()
        .filter_map(|other| other.threads.as_ref())
        .flat_map(|(readers, writers)| readers.iter().chain(writers))
        .copied()
        .collect();
    if suffering.is_empty() {
        let all = named_threads(&own);
        return (own.len() > 1)
            .then(|| format!("{name} is written by {} and used by {all}", named_threads(&writing)));
    }
    Some(format!(
        "{name} is written by {} on a line with {}, used by {}",
        named_threads(&writing),
        names(&suffering),
        named_threads(&users)
    ))
}

/// The same where it is only known that the line is shared.
fn by_use(line: &UsedLine, part: &UsedPart) -> Option<String> {
    let others: Vec<&UsedPart> = line
        .parts
        .iter()
        .filter(|other| other.offset != part.offset && other.is_written() != part.is_written())
        .collect();
    let name = plain(&part.name);
    match (part.is_written(), others.is_empty()) {
        (true, true) => Some(format!("{name} is written on a line that several threads use")),
        (true, false) => Some(format!(
            "{name} is written on a line that several threads use, with {}, only read",
            names(&others)
        )),
        (false, true) => None,
        (false, false) => Some(format!(
            "{name} is only read and lies on a line that several threads use, with {}, written",
            names(&others)
        )),
    }
}

fn names(parts: &[&UsedPart]) -> String {
    let names: Vec<String> = parts.iter().map(|part| plain(&part.name)).take(4).collect();
    let more = if parts.len() > names.len() { ", …" } else { "" };
    names.join(", ") + more
}
