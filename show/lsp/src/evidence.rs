//! A program's use of its types: from a recording or from advice on one, in the JSON forms of either.

use crate::error::LspError;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The use of types, and the constraints on their members.
///
/// Read from `lineup.study/1` (a study's `report.json`, which a recording can be turned into), `lineup.explain/1` or
/// `lineup.advice/2`.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Evidence {
    /// The recorded functions.
    pub(crate) regions: Vec<String>,
    /// By the type's name, the lines of its objects that were used.
    pub(crate) types: BTreeMap<String, Vec<UsedLine>>,
    /// By the type's name, why members may not move.
    pub(crate) held: BTreeMap<String, Vec<HoldReason>>,
}

/// A line of objects of a type, with the used parts on it.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct UsedLine {
    /// Runs of bytes of the object, in its order.
    pub(crate) parts: Vec<UsedPart>,
    /// True when one thread writes bytes of it and another one reads or writes bytes of it; parts may not say which.
    pub(crate) is_shared: bool,
}

/// Bytes of an object that were used.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct UsedPart {
    /// The member, as the document names it.
    pub(crate) name: String,
    /// Offset of the first byte in the object.
    pub(crate) offset: u64,
    /// The uses by each region.
    pub(crate) uses: Vec<Use>,
    /// The threads that read and that wrote them; `None` where the document does not say it for parts.
    pub(crate) threads: Option<(Vec<u32>, Vec<u32>)>,
}

/// Accesses of one region, per call.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub(crate) struct Use {
    /// A position among the regions.
    pub(crate) region: usize,
    #[serde(rename = "loads_per_call")]
    pub(crate) loads: f64,
    #[serde(rename = "stores_per_call")]
    pub(crate) stores: f64,
}

impl UsedPart {
    pub(crate) fn is_written(&self) -> bool {
        self.uses.iter().any(|one| one.stores > 0.0)
    }
}

/// A reason for which members stay where they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct HoldReason {
    /// The members; empty when it holds the whole type.
    pub(crate) members: Vec<String>,
    /// The reason, with its place in the source when there is one.
    pub(crate) because: String,
}

impl Evidence {
    /// Reads a document.
    ///
    /// # Errors
    /// [`LspError::Evidence`] when it is no JSON, or of another schema.
    pub fn parse(text: &str) -> Result<Evidence, LspError> {
        let error = |what: String| LspError::Evidence { what };
        let document: Value = serde_json::from_str(text).map_err(|cause| error(cause.to_string()))?;
        let schema = document["schema"].as_str().unwrap_or_default().to_string();
        let read = match schema.as_str() {
            "lineup.study/1" => serde_json::from_value(document).map(of_study),
            "lineup.explain/1" => serde_json::from_value(document).map(of_explain),
            "lineup.advice/2" => serde_json::from_value(document).map(of_advice),
            "" => return Err(error("a document without a schema".to_string())),
            other => return Err(error(format!("{other} does not show how types are used"))),
        };
        read.map_err(|cause| error(format!("{schema}: {cause}")))
    }

    /// The lines used of objects of a type.
    pub(crate) fn lines(&self, type_name: &str) -> &[UsedLine] {
        self.types.get(type_name).map_or(&[], Vec::as_slice)
    }

    /// The reasons why members of a type may not move.
    pub(crate) fn held(&self, type_name: &str) -> &[HoldReason] {
        self.held.get(type_name).map_or(&[], Vec::as_slice)
    }

    fn hold(&mut self, owner: &str, held: HoldReason) {
        let all = self.held.entry(plain(owner).to_string()).or_default();
        if !all.contains(&held) {
            all.push(held);
        }
    }
}

/// Without the keyword that C has before the name.
fn plain(name: &str) -> &str {
    let keywords = ["struct ", "class ", "union "];
    keywords.iter().find_map(|keyword| name.strip_prefix(keyword)).unwrap_or(name)
}

#[derive(Deserialize)]
struct Study {
    regions: Vec<Named>,
    maps: Vec<Map>,
    proposals: Vec<Target>,
    refusals: Vec<Target>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Map {
    owner: Owner,
    before: Lines,
}

#[derive(Deserialize)]
struct Owner {
    kind: String,
    name: String,
}

#[derive(Deserialize)]
struct Lines {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    offset: Option<u64>,
    name: Option<String>,
    continued: bool,
    uses: Vec<Use>,
    sharing: Option<Sharing>,
}

#[derive(Deserialize)]
struct Sharing {
    readers: Vec<u32>,
    writers: Vec<u32>,
}

#[derive(Deserialize)]
struct Target {
    target: String,
    #[serde(alias = "because")]
    constraints: Vec<Note>,
}

#[derive(Deserialize)]
struct Note {
    rule: String,
    names: Vec<String>,
    at: Option<String>,
    detail: Option<String>,
}

fn of_study(study: Study) -> Evidence {
    let mut evidence = Evidence {
        regions: study.regions.into_iter().map(|region| region.name).collect(),
        ..Evidence::default()
    };
    for map in study.maps.into_iter().filter(|map| map.owner.kind == "type") {
        let lines = map.before.lines.into_iter().map(|line| {
            // A member's uses stand with its first bytes; cells that continue on another line would count twice.
            let used = line.cells.into_iter().filter(|cell| !cell.uses.is_empty() && !cell.continued);
            let parts: Vec<UsedPart> = used.filter_map(part).collect();
            UsedLine { is_shared: are_shared(&parts), parts }
        });
        evidence.types.entry(plain(&map.owner.name).to_string()).or_default().extend(lines);
    }
    for one in study.proposals.into_iter().chain(study.refusals) {
        for note in one.constraints {
            let because = because(note.rule, note.detail, note.at);
            evidence.hold(&one.target, HoldReason { members: note.names, because });
        }
    }
    evidence
}

fn part(cell: Cell) -> Option<UsedPart> {
    Some(UsedPart {
        name: cell.name?,
        offset: cell.offset?,
        uses: cell.uses,
        threads: cell.sharing.map(|sharing| (sharing.readers, sharing.writers)),
    })
}

/// True when one thread writes data that another thread uses, or data next to it.
fn are_shared(parts: &[UsedPart]) -> bool {
    let threads = || parts.iter().filter_map(|part| part.threads.as_ref());
    threads().flat_map(|(_, writers)| writers).any(|writer| {
        threads().any(|(readers, writers)| readers.iter().chain(writers).any(|other| other != writer))
    })
}

#[derive(Deserialize)]
struct Explain {
    regions: Vec<ExplainedRegion>,
}

#[derive(Deserialize)]
struct ExplainedRegion {
    name: String,
    map: Vec<ExplainedLine>,
}

#[derive(Deserialize)]
struct ExplainedLine {
    type_name: Option<String>,
    base_in_line: Option<u64>,
    line: u64,
    is_shared: bool,
    parts: Vec<ExplainedPart>,
}

#[derive(Deserialize)]
struct ExplainedPart {
    name: String,
    offset: u64,
    loads_per_call: f64,
    stores_per_call: f64,
}

fn of_explain(explain: Explain) -> Evidence {
    let mut evidence = Evidence::default();
    // Lines of one number are different ones where objects begin elsewhere in their line.
    let mut lines: BTreeMap<(String, u64, u64), UsedLine> = BTreeMap::new();
    for (region, explained) in explain.regions.into_iter().enumerate() {
        evidence.regions.push(explained.name);
        for line in explained.map {
            let Some(name) = line.type_name else { continue };
            let known = lines.entry((name, line.base_in_line.unwrap_or(0), line.line)).or_default();
            known.is_shared |= line.is_shared;
            for part in line.parts {
                let one = Use { region, loads: part.loads_per_call, stores: part.stores_per_call };
                let same = known.parts.iter_mut().find(|other| other.offset == part.offset);
                match same {
                    Some(other) => other.uses.push(one),
                    None => known.parts.push(UsedPart {
                        name: part.name,
                        offset: part.offset,
                        uses: vec![one],
                        threads: None,
                    }),
                }
            }
        }
    }
    for ((name, ..), mut line) in lines {
        line.parts.sort_by_key(|part| part.offset);
        evidence.types.entry(name).or_default().push(line);
    }
    evidence
}

#[derive(Deserialize)]
struct Advice {
    orders: Vec<Order>,
    refusals: Vec<Refused>,
}

#[derive(Deserialize)]
struct Order {
    #[serde(rename = "type")]
    type_name: String,
    obeyed: Vec<Binding>,
}

#[derive(Deserialize)]
struct Refused {
    owner: String,
    constraints: Vec<Binding>,
}

#[derive(Deserialize)]
struct Binding {
    constraint: String,
    names: Vec<String>,
    at: Option<SourcePlace>,
    detail: Option<String>,
}

#[derive(Deserialize)]
struct SourcePlace {
    path: String,
    line: u32,
}

fn of_advice(advice: Advice) -> Evidence {
    let mut evidence = Evidence::default();
    let obeyed = advice.orders.into_iter().map(|order| (order.type_name, order.obeyed));
    let refused = advice.refusals.into_iter().map(|refusal| (refusal.owner, refusal.constraints));
    for (owner, bindings) in obeyed.chain(refused) {
        for binding in bindings {
            let at = binding.at.map(|at| format!("{}:{}", at.path, at.line));
            let because = because(binding.constraint.replace('-', " "), binding.detail, at);
            evidence.hold(&owner, HoldReason { members: binding.names, because });
        }
    }
    evidence
}

fn because(rule: String, detail: Option<String>, at: Option<String>) -> String {
    let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
    let at = at.map(|at| format!(" ({at})")).unwrap_or_default();
    format!("{rule}{detail}{at}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_study_tells_uses_threads_and_reasons() {
        let cell = |offset, name, continued, uses: Value, sharing: Value| json!({ "offset": offset, "name": name, "continued": continued, "uses": uses, "sharing": sharing });
        let uses = json!([{ "region": 0, "loads_per_call": 2.0, "stores_per_call": 1.0 }]);
        let evidence = Evidence::parse(
            &json!({
                "schema": "lineup.study/1",
                "regions": [{ "name": "f" }],
                "maps": [
                    { "owner": { "kind": "type", "name": "struct s" }, "before": { "lines": [{ "cells": [
                        cell(0, "a", false, uses.clone(), json!({ "readers": [1], "writers": [1] })),
                        cell(8, "b", false, uses.clone(), json!({ "readers": [2], "writers": [] })),
                        cell(16, "c", false, json!([]), Value::Null),
                    ] }, { "cells": [cell(64, "b", true, uses.clone(), Value::Null)] }] } },
                    { "owner": { "kind": "variable", "name": "v" }, "before": { "lines": [] } },
                ],
                "proposals": [{ "target": "struct s", "constraints": [
                    { "rule": "moves whole", "names": ["a"], "at": "s.c:3", "detail": "a run" }] }],
                "refusals": [{ "target": "s", "because": [
                    { "rule": "packed", "names": [], "at": null, "detail": null }] }],
            })
            .to_string(),
        )
        .expect("a study");
        let lines = evidence.lines("s");
        assert_eq!(lines.len(), 2);
        assert!(lines[0].is_shared && lines[0].parts.len() == 2 && lines[1].parts.is_empty());
        let because: Vec<&str> = evidence.held("s").iter().map(|held| held.because.as_str()).collect();
        assert_eq!(because, ["moves whole: a run (s.c:3)", "packed"]);
        assert!(evidence.lines("v").is_empty());
    }

    #[test]
    fn of_an_explanation_lines_of_regions_are_brought_together() {
        let line = |base: u64, offset: u64, shared: bool| {
            json!({ "type_name": "s", "base_in_line": base, "line": 0, "is_shared": shared,
                    "parts": [{ "name": "a", "offset": offset, "loads_per_call": 1.0, "stores_per_call": 0.0 }] })
        };
        let evidence = Evidence::parse(
            &json!({ "schema": "lineup.explain/1", "regions": [
                { "name": "f", "map": [line(0, 8, false), line(32, 8, false)] },
                { "name": "g", "map": [line(0, 8, true), line(0, 0, false), { "type_name": null, "base_in_line": null,
                    "line": 3, "is_shared": false, "parts": [] }] },
            ] })
            .to_string(),
        )
        .expect("an explanation");
        let lines = evidence.lines("s");
        assert_eq!(lines.len(), 2);
        let offsets: Vec<(u64, usize)> =
            lines[0].parts.iter().map(|part| (part.offset, part.uses.len())).collect();
        assert_eq!((offsets, lines[0].is_shared), (vec![(0, 1), (8, 2)], true));
    }

    #[test]
    fn what_is_no_such_document_is_refused_with_what_would_be_one() {
        for text in ["", "[]", "{}", r#"{"schema":"lineup.layout/1"}"#, r#"{"schema":"lineup.study/1"}"#] {
            let error = Evidence::parse(text).expect_err("no document").to_string();
            assert!(error.contains("lineup explain --json"), "{error}");
        }
    }
}
