//! A review in JSON.

use crate::types::changed::ChangedType;
use anyhow::{Context, Result};
use lineup_advise::guard::CheckReport;
use lineup_review::{
    CheckedCertificate, Compared, Counted, FileChanges, Finding, GuardState, Ratio, RegionChange,
    RegionFigures, Review,
};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'r> {
    schema: &'static str,
    base: &'r str,
    head: &'r str,
    line_size_bytes: u64,
    fails: bool,
    findings: &'r [Finding],
    files: Vec<File<'r>>,
    regions: Vec<Region<'r>>,
    guard: Vec<Guard<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<&'r CheckedCertificate>,
    not_observed: &'r [String],
}

#[derive(Serialize)]
struct File<'r> {
    file: &'r str,
    changed: Vec<ChangedType<'r>>,
    only_base: &'r [String],
    only_head: &'r [String],
    same: usize,
}

#[derive(Serialize)]
struct Region<'r> {
    name: &'r str,
    base: Calls,
    head: Calls,
    data_lines_per_call: Means,
    code_lines_per_call: Means,
    instructions_per_call: Means,
    types: Vec<Type>,
}

#[derive(Serialize)]
struct Calls {
    /// `None` when that was not counted, or differs from run to run.
    calls_made: Option<u64>,
    calls: u64,
    runs: usize,
}

#[derive(Serialize)]
struct Means {
    base: f64,
    head: f64,
    ratio: Option<Ratio>,
}

#[derive(Serialize)]
struct Type {
    /// `None` for variables.
    name: Option<String>,
    base_lines_per_call: f64,
    head_lines_per_call: f64,
}

#[derive(Serialize)]
struct Guard<'r> {
    file: &'r str,
    base: Option<&'r CheckReport>,
    head: &'r CheckReport,
}

/// The whole document.
pub(crate) fn text(review: &Review) -> Result<String> {
    let document = Document {
        schema: "lineup.review/1",
        base: &review.base,
        head: &review.head,
        line_size_bytes: review.line.bytes(),
        fails: review.fails(),
        findings: &review.findings,
        files: review.files.iter().map(|changes| file(changes, review)).collect(),
        regions: review.regions.iter().map(region).collect(),
        guard: review.guard.iter().map(guard).collect(),
        certificate: review.certificate.as_ref(),
        not_observed: &review.not_observed,
    };
    Ok(serde_json::to_string_pretty(&document).context("cannot write JSON")? + "\n")
}

fn file<'r>(changes: &'r FileChanges, review: &Review) -> File<'r> {
    let changed = changes.changed.iter();
    File {
        file: &changes.file,
        changed: changed.map(|one| ChangedType::of(&one.name, &one.difference, review.line)).collect(),
        only_base: &changes.gone,
        only_head: &changes.new,
        same: changes.same,
    }
}

fn region(change: &RegionChange) -> Region<'_> {
    let ty = |lines: lineup_review::TypeLines| Type {
        name: (!lines.name.is_empty()).then_some(lines.name),
        base_lines_per_call: lines.before,
        head_lines_per_call: lines.after,
    };
    Region {
        name: &change.after.name,
        base: calls(&change.before),
        head: calls(&change.after),
        data_lines_per_call: means(change, Counted::DataLines),
        code_lines_per_call: means(change, Counted::CodeLines),
        instructions_per_call: means(change, Counted::Instructions),
        types: change.types().into_iter().map(ty).collect(),
    }
}

fn calls(of: &RegionFigures) -> Calls {
    Calls { calls_made: of.calls_made(), calls: of.calls(), runs: of.runs.len() }
}

fn means(of: &RegionChange, counted: Counted) -> Means {
    let Compared { before, after, ratio } = of.compared(counted);
    Means { base: before, head: after, ratio }
}

fn guard(state: &GuardState) -> Guard<'_> {
    Guard { file: &state.file, base: state.base.as_ref(), head: &state.head }
}
