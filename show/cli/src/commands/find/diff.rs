//! Changes since earlier findings.

use anyhow::{Context, Result, bail};
use lineup_find::{Findings, ThreadWaits};
use lineup_model::figure;
use lineup_report::text::{Align, Table, TextStyle};
use lineup_report::visible::one_line;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Changes of less than this share of the earlier stalls are not shown.
const LEAST_CHANGE: f64 = 0.001;

/// Stalls of earlier findings, by name.
#[derive(Debug)]
pub(crate) struct Old {
    caches: Vec<String>,
    instructions: f64,
    cycles: f64,
    /// Waits of threads, where there were several.
    waits: Option<ThreadWaits>,
    data: BTreeMap<String, f64>,
    functions: BTreeMap<String, f64>,
}

impl Old {
    /// Reads the output of `lineup find --json`.
    pub(crate) fn read(path: &Path) -> Result<Old> {
        let name = || path.display().to_string();
        let bytes = std::fs::read(path).with_context(name)?;
        let value: Value = serde_json::from_slice(&bytes).with_context(name)?;
        if value["schema"] != "lineup.find/1" {
            bail!("{}: these are no findings of `lineup find --json` (schema lineup.find/1)", path.display());
        }
        Old::of(&value).with_context(|| format!("{}: something is missing in it", path.display()))
    }

    fn of(value: &Value) -> Option<Old> {
        let cycles = |of: &Value| Some(of["code_cycles"].as_f64()? + of["data_cycles"].as_f64()?);
        let mut data = BTreeMap::new();
        for owner in value["owners"].as_array()? {
            *data.entry(owner["name"].as_str()?.to_owned()).or_default() += owner["stall_cycles"].as_f64()?;
        }
        let mut functions = BTreeMap::new();
        for function in value["functions"].as_array()? {
            *functions.entry(function["name"].as_str()?.to_owned()).or_default() +=
                cycles(&function["stalls"])?;
        }
        let caches = value["caches"].as_array()?.iter().map(|cache| Some(cache.as_str()?.to_owned()));
        Some(Old {
            caches: caches.collect::<Option<_>>()?,
            instructions: value["instructions"].as_f64()?,
            cycles: cycles(&value["stalls"])?,
            waits: waits(&value["between_threads"]["waits"]),
            data,
            functions,
        })
    }
}

/// Code and data with more or fewer stalls than before, most changed first, at most `top` of each kind.
pub(crate) fn text(old: &Old, new: &Findings, top: usize, style: TextStyle) -> String {
    let mut out = String::new();
    if old.caches != new.caches {
        let _ = writeln!(out, "other caches were modelled before: {}", one_line(&old.caches.join(" ")));
    }
    let cycles = new.stalls.cycles() as f64;
    let _ = writeln!(out, "instructions: {}", from_to(old.instructions, new.instructions as f64));
    let _ = writeln!(out, "cycles of modelled stalls: {}", from_to(old.cycles, cycles));
    let now = new.between_threads.map(|between| between.waits);
    if old.waits.is_some() || now.is_some() {
        let [before, after] = [old.waits, now].map(Option::unwrap_or_default);
        let of_same_bytes = from_to(before.of_same_bytes, after.of_same_bytes);
        let of_line_alone = from_to(before.of_line_alone, after.of_line_alone);
        let _ = writeln!(out, "waits of threads for bytes of each other: {of_same_bytes}");
        let _ = writeln!(out, "waits of threads for lines alone: {of_line_alone}");
    }
    let mut data: BTreeMap<String, f64> = BTreeMap::new();
    for owner in &new.owners {
        *data.entry(owner.name.clone()).or_default() += owner.stall_cycles;
    }
    let mut functions: BTreeMap<String, f64> = BTreeMap::new();
    for function in &new.functions {
        *functions.entry(function.name.clone()).or_default() += function.stalls.cycles() as f64;
    }
    for (what, before, after) in [("data", &old.data, &data), ("function", &old.functions, &functions)] {
        changes(&mut out, what, (before, after), old.cycles, top, style);
    }
    out
}

fn waits(value: &Value) -> Option<ThreadWaits> {
    let of = |kind: &str| value[kind].as_f64();
    Some(ThreadWaits { of_same_bytes: of("of_same_bytes")?, of_line_alone: of("of_line_alone")? })
}

fn from_to(before: f64, after: f64) -> String {
    let ratio = if before > 0.0 { format!(" ({})", figure::change(after / before)) } else { String::new() };
    format!("{} → {}{ratio}", figure::grouped(before, 0), figure::grouped(after, 0))
}

fn changes(
    out: &mut String,
    what: &str,
    (before, after): (&BTreeMap<String, f64>, &BTreeMap<String, f64>),
    all: f64,
    top: usize,
    style: TextStyle,
) {
    let of = |side: &BTreeMap<String, f64>, name: &str| side.get(name).copied().unwrap_or_default();
    let fresh = after.keys().filter(|name| !before.contains_key(*name));
    let each = before.keys().chain(fresh).map(|name| (name, of(before, name), of(after, name)));
    let is_worth = |(_, before, after): &(&String, f64, f64)| (after - before).abs() >= LEAST_CHANGE * all;
    let mut changed: Vec<(&String, f64, f64)> = each.filter(is_worth).collect();
    changed.sort_by(|one, other| (other.2 - other.1).abs().total_cmp(&(one.2 - one.1).abs()));
    let columns = ["before", "after", "difference"].map(|name| (name, Align::Right));
    let mut table = Table::new(columns.into_iter().chain([(what, Align::Left)]));
    for (name, before, after) in changed.iter().take(top) {
        let difference = figure::grouped(after - before, 0);
        table.row([
            figure::grouped(*before, 0),
            figure::grouped(*after, 0),
            difference,
            one_line(name).into_owned(),
        ]);
    }
    if table.is_empty() {
        let _ = writeln!(out, "\nno {what} stalls for more or less than before");
    } else {
        let _ = write!(out, "\n{}", table.render(style));
    }
}
