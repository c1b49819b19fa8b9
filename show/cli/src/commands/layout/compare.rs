//! `--diff`: the differences from another build.

use super::args::Options;
use crate::terminal::errors::UnknownName;
use crate::terminal::output;
use crate::types::changed::ChangedType;
use crate::types::select;
use crate::types::subject::Subject;
use anyhow::{Context, Result};
use lineup_model::layout::{Change, Difference, diff};
use lineup_model::types::TypeId;
use lineup_report::visible::many_lines;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The differences between two files.
struct Comparison<'c> {
    changed: Vec<(&'c str, Difference)>,
    only_old: Vec<&'c str>,
    only_new: Vec<&'c str>,
    same: usize,
}

/// Compares the requested types, or all, and prints the result. Returns the names that neither file has a type for.
pub(crate) fn run(options: &Options, old: &Subject, new: &Subject) -> Result<Option<UnknownName>> {
    let mut unknown = Vec::new();
    let (before, after) = if options.types.is_empty() {
        (select::all(old), select::all(new))
    } else {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for name in &options.types {
            let name = std::slice::from_ref(name);
            let (in_old, in_new) = (select::named(old, name), select::named(new, name));
            if !in_old.unknown.is_empty() && !in_new.unknown.is_empty() {
                unknown.extend(in_new.unknown);
            }
            before.extend(in_old.types);
            after.extend(in_new.types);
        }
        (before, after)
    };
    let unknown = UnknownName::all(&unknown);
    if before.is_empty()
        && after.is_empty()
        && let Some(unknown) = unknown
    {
        return Err(unknown.into());
    }
    let comparison = compare(options, (old, by_name(before)), (new, by_name(after)));
    let output = if options.json {
        serde_json::to_string_pretty(&json(options, old, new, &comparison)).context("cannot write JSON")?
            + "\n"
    } else {
        many_lines(&text(old, new, &comparison)).into_owned()
    };
    output::print(&output)?;
    Ok(unknown)
}

fn by_name(types: Vec<(&str, TypeId)>) -> BTreeMap<&str, Vec<TypeId>> {
    let mut map: BTreeMap<&str, Vec<TypeId>> = BTreeMap::new();
    for (name, id) in types {
        map.entry(name).or_default().push(id);
    }
    map
}

type Named<'c> = (&'c Subject, BTreeMap<&'c str, Vec<TypeId>>);

/// The number of types of one name that a type is compared with.
const MOST_OF_ONE_NAME: usize = 64;

/// A program may hold several types of one name. Those that are the same in both builds belong together, and the others
/// in their order.
fn compare<'c>(options: &Options, old: Named<'c>, new: Named<'c>) -> Comparison<'c> {
    let mut found = Comparison { changed: Vec::new(), only_old: Vec::new(), only_new: Vec::new(), same: 0 };
    for (&name, before) in &old.1 {
        let Some(after) = new.1.get(name) else {
            found.only_old.push(name);
            continue;
        };
        let difference = |before: TypeId, after: TypeId| {
            diff((old.0.types(), before), (new.0.types(), after), options.line_size)
        };
        let (mut left, mut after) = (Vec::new(), after.clone());
        for &before in before {
            let is_same = |id: &TypeId| difference(before, *id).is_some_and(|found| found.is_empty());
            match after.iter().take(MOST_OF_ONE_NAME).position(is_same) {
                Some(at) => {
                    after.remove(at);
                    found.same += 1;
                }
                None => left.push(before),
            }
        }
        let changed = left.iter().zip(&after).filter_map(|(&before, &after)| difference(before, after));
        found.changed.extend(changed.map(|difference| (name, difference)));
        found.only_old.extend(left.iter().skip(after.len()).map(|_| name));
        found.only_new.extend(after.iter().skip(left.len()).map(|_| name));
    }
    found.only_new.extend(new.1.keys().filter(|name| !old.1.contains_key(*name)).copied());
    found.only_new.sort_unstable();
    found
}

fn text(old: &Subject, new: &Subject, found: &Comparison<'_>) -> String {
    let mut out = format!("old: {}\nnew: {}\n", old.path.display(), new.path.display());
    for (name, difference) in &found.changed {
        let (size, lines) = (difference.size_bytes, difference.lines);
        let grown = match i128::from(size.1) - i128::from(size.0) {
            0 => String::new(),
            bytes => format!(" ({bytes:+})"),
        };
        let _ =
            writeln!(out, "\n{name}: size {} -> {}{grown}, lines {} -> {}", size.0, size.1, lines.0, lines.1);
        for change in &difference.changes {
            let _ = match change {
                Change::Added { name, offset } => writeln!(out, "    added    {name} at {offset}"),
                Change::Removed { name, offset } => writeln!(out, "    removed  {name}, was at {offset}"),
                Change::Moved { name, from, to, bits, lines } => {
                    let (from_bit, to_bit) = bits.map_or_else(Default::default, |(from, to)| {
                        (format!(" bit {from}"), format!(" bit {to}"))
                    });
                    let lines = lines.map_or_else(String::new, |(from, to)| format!(", line {from} -> {to}"));
                    writeln!(out, "    moved    {name} {from}{from_bit} -> {to}{to_bit}{lines}")
                }
                Change::Resized { name, from, to, is_in_bits } => {
                    let unit = if *is_in_bits { " bits" } else { "" };
                    writeln!(out, "    resized  {name} {from} -> {to}{unit}")
                }
            };
        }
    }
    let mut list = |title: &str, names: &[&str]| {
        if !names.is_empty() {
            let _ = writeln!(out, "\n{title}: {}", names.join(", "));
        }
    };
    list("only in old", &found.only_old);
    list("only in new", &found.only_new);
    let _ = writeln!(out, "\n{} changed, {} the same", found.changed.len(), found.same);
    out
}

#[derive(Serialize)]
struct Document<'d> {
    schema: &'static str,
    old: String,
    new: String,
    line_size_bytes: u64,
    changed: Vec<ChangedType<'d>>,
    only_old: &'d [&'d str],
    only_new: &'d [&'d str],
    same: usize,
}

fn json<'d>(options: &Options, old: &Subject, new: &Subject, found: &'d Comparison<'d>) -> Document<'d> {
    let line = options.line_size;
    let changed = |(name, difference): &'d (&'d str, Difference)| ChangedType::of(name, difference, line);
    Document {
        schema: "lineup.layout-diff/1",
        old: old.path.display().to_string(),
        new: new.path.display().to_string(),
        line_size_bytes: line.bytes(),
        changed: found.changed.iter().map(changed).collect(),
        only_old: &found.only_old,
        only_new: &found.only_new,
        same: found.same,
    }
}
