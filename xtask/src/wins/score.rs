//! The score of a case: the place of the right data among findings, and the change that a study makes.

use super::case::{Case, Kind};
use serde_json::Value;

/// Findings among which the right one counts as found.
pub(crate) const FIRST: usize = 3;

/// The answer of `lineup find` on the data of a case.
pub(crate) struct Finding {
    /// The place among findings, from 1; none without a finding.
    pub(crate) place: Option<usize>,
    /// The finding in a few words, or the reason why there is none.
    pub(crate) words: String,
}

/// A finding of the report, with the share of all modelled cycles that ranks it.
struct Ranked {
    names: Vec<String>,
    words: String,
    bound: f64,
}

impl Finding {
    pub(crate) fn of(case: &Case, found: &Value) -> Self {
        let ranked = ranked(found);
        let is_right = |ranked: &Ranked| match case.kind {
            Kind::Pages => ranked.names == ["pages"],
            Kind::Placement if ranked.names == ["heap"] => true,
            _ => ranked.names.iter().any(|name| case.is_of(name)),
        };
        match ranked.iter().position(is_right) {
            Some(index) => Self { place: Some(index + 1), words: ranked[index].words.clone() },
            None => Self { place: None, words: reason(case, found) },
        }
    }

    pub(crate) fn is_hit(&self) -> bool {
        self.place.is_some_and(|place| place <= FIRST)
    }
}

fn items<'v>(value: &'v Value, name: &str) -> impl Iterator<Item = &'v Value> {
    value[name].as_array().into_iter().flatten()
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// All that the report ranks, in its order: layouts, then edits by hand; placements and pages by their cycles.
fn ranked(found: &Value) -> Vec<Ranked> {
    let stalls = found["stalls"]["data_cycles"].as_f64().unwrap_or_default()
        + found["stalls"]["code_cycles"].as_f64().unwrap_or_default();
    let cycles = stalls + found["instructions"].as_f64().unwrap_or_default();
    let in_time = |share: f64| share * stalls / cycles.max(1.0);
    let mut ranked: Vec<Ranked> = items(found, "ranking")
        .map(|row| {
            let list = text(row, "list");
            let finding = &found[list][row["index"].as_u64().unwrap_or_default() as usize];
            let kind = text(finding, "kind");
            let (words, bound) = match finding["bound"].as_f64() {
                Some(bound) => (format!("{kind}, fewer lines, {} of the time", percent(bound)), bound),
                None => {
                    let gain = finding["gain"].as_f64().unwrap_or_default();
                    (format!("{kind}, {} of stalls", percent(gain)), in_time(gain))
                }
            };
            Ranked { names: vec![text(finding, "subject").to_owned()], words, bound }
        })
        .collect();
    let mut add = |other: Ranked| {
        let at = ranked.iter().position(|finding| finding.bound < other.bound).unwrap_or(ranked.len());
        ranked.insert(at, other);
    };
    let placement = &found["placements"];
    if !text(placement, "next").is_empty() {
        let gain = placement["gains"][0].as_f64().unwrap_or_default();
        add(Ranked {
            names: vec!["heap".into()],
            words: format!("another placement, {} of stalls", percent(gain)),
            bound: in_time(gain),
        });
    }
    let waits = found["pages"]["stall_cycles"].as_f64().unwrap_or_default();
    if waits > 0.0 {
        let bound = waits / (cycles + waits);
        add(Ranked {
            names: vec!["pages".into()],
            words: format!("waits for pages, {} of cycles", percent(bound)),
            bound,
        });
    }
    let by_hand = [("allocation_pairs", "function"), ("stack_objects", "name"), ("parallel_arrays", "names")];
    for (list, name) in by_hand {
        for finding in items(found, list) {
            let names = match &finding[name] {
                Value::Array(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                other => vec![other.as_str().unwrap_or_default().to_owned()],
            };
            let bound = finding["share"].as_f64().map_or(0.0, in_time);
            ranked.push(Ranked { names, words: format!("by hand: {}", list.replace('_', " ")), bound });
        }
    }
    ranked
}

/// The reason that `find` states for data without a finding; else the share that it saw.
fn reason(case: &Case, found: &Value) -> String {
    let stated = items(found, "without_finding").find(|without| case.is_of(text(without, "name")));
    if let Some(without) = stated {
        let time = without["time"].as_f64().unwrap_or_default();
        return format!(
            "{}, {} of the time",
            text(&without["reason"], "kind").replace('_', " "),
            percent(time)
        );
    }
    let owner = items(found, "owners").find(|owner| case.is_of(text(owner, "name")));
    match owner {
        Some(owner) => {
            let of = |name: &str| percent(owner[name].as_f64().unwrap_or_default());
            format!("too little for a finding: {} of the time, {} of stalls", of("time"), of("share"))
        }
        None => "no access to it has its name".to_owned(),
    }
}

/// The answer of `lineup study` on a case.
pub(crate) struct Study {
    /// Whether there is a patch at all.
    pub(crate) has_patch: bool,
    /// Whether a patch or a lever is of the case's data.
    pub(crate) is_of_case: bool,
    /// The patch's change of time, or the lever's; with its interval.
    pub(crate) time: Option<[f64; 3]>,
    /// Whether the patched copy builds and passes its test; none where the case has no test.
    pub(crate) passes: Option<bool>,
    /// The changes in words, or the refusal.
    pub(crate) words: String,
}

impl Study {
    pub(crate) fn of(case: &Case, study: &Value) -> Self {
        let has_patch = !study["patch"].is_null();
        let made = items(study, "proposals").find(|proposal| case.is_of(text(proposal, "target")));
        let of_patch = &study["proof"]["time"];
        let ratio = ["ratio", "ratio_low", "ratio_high"].map(|name| of_patch[name].as_f64());
        let mut time = match ratio {
            [Some(ratio), Some(low), Some(high)] => Some([ratio, low, high]),
            _ => None,
        };
        let lever = match case.kind {
            Kind::Pages | Kind::Placement => "placement",
            Kind::Code => "code",
            Kind::Prefetch => "prefetch",
            _ => "layout",
        };
        let lever = items(study, "levers").find(|one| text(one, "lever") == lever);
        let gains = lever.is_some_and(|lever| lever["is_gain"] == true);
        if let Some(elapsed) = lever.map(|lever| &lever["elapsed"]).filter(|elapsed| !elapsed.is_null()) {
            let ends = [&elapsed["ratio"], &elapsed["interval"][0], &elapsed["interval"][1]];
            time = Some(ends.map(|end| end.as_f64().unwrap_or(1.0)));
        }
        let is_layout = !matches!(case.kind, Kind::Pages | Kind::Placement | Kind::Code | Kind::Prefetch);
        let refusal = items(study, "refusals").find(|refusal| case.is_of(text(refusal, "target")));
        let words = match (made, refusal, lever) {
            (Some(made), _, _) => text(made, "summary").to_owned(),
            (None, Some(refusal), _) => {
                let because = &refusal["because"][0];
                format!(
                    "refused: {}",
                    because["text"].as_str().or(because["summary"].as_str()).unwrap_or("no reason")
                )
            }
            (None, None, Some(lever)) => text(lever, "result").to_owned(),
            (None, None, None) => text(study, "not_proven").to_owned(),
        };
        Self {
            has_patch,
            is_of_case: if is_layout { has_patch && made.is_some() } else { gains },
            time,
            passes: None,
            words,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn case(kind: &str, data: &str) -> Case {
        let text = format!(
            "project = \"p\"\nparent = \"0\"\nchange = \"1\"\nkind = \"{kind}\"\ndata = [\"{data}\"]\nsentence = \"\"\n\
             claim = \"\"\nworkload = \"\""
        );
        toml::from_str(&text).expect("a case")
    }

    /// Layouts in the report's order, the waits for pages between them, and edits by hand last.
    #[test]
    fn findings_of_all_kinds_are_one_list() {
        let found = json!({
            "instructions": 600, "stalls": {"data_cycles": 300, "code_cycles": 100}, "pages": {"stall_cycles": 50},
            "ranking": [{"list": "footprints", "index": 0}, {"list": "findings", "index": 0}],
            "findings": [{"subject": "ns::node<int>", "kind": "split", "gain": 0.1}],
            "footprints": [{"subject": "state", "kind": "order", "bound": 0.3}],
            "parallel_arrays": [{"names": ["xs", "ys"], "share": 0.2}],
            "without_finding": [{"name": "full", "time": 0.25, "reason": {"kind": "full"}}],
            "owners": [{"name": "full", "time": 0.25, "share": 0.0}, {"name": "cold", "time": 0.001, "share": 0.01}],
        });
        let place = |kind: &str, data: &str| Finding::of(&case(kind, data), &found).place;
        assert_eq!(
            (place("order", "state"), place("pages", "page"), place("split", "node")),
            (Some(1), Some(2), Some(3))
        );
        assert_eq!(
            (place("gather", "ys"), place("order", "nod"), place("order", "stat")),
            (Some(4), None, None)
        );
        let words = |data: &str| Finding::of(&case("order", data), &found).words;
        assert_eq!(words("full"), "full, 25.0 % of the time");
        assert_eq!(words("cold"), "too little for a finding: 0.1 % of the time, 1.0 % of stalls");
        assert_eq!(words("none"), "no access to it has its name");
    }

    #[test]
    fn a_change_is_of_the_case_when_its_patch_or_lever_is() {
        let study = json!({
            "patch": {"file": "fix.patch", "text": ""}, "refusals": [],
            "proposals": [{"target": "node", "summary": "reorder members"}],
            "proof": {"time": {"ratio": 0.9, "ratio_low": 0.85, "ratio_high": 0.95}},
            "levers": [{"lever": "placement", "is_gain": false, "result": "nothing gained", "elapsed": null}],
        });
        let of = |kind: &str, data: &str| Study::of(&case(kind, data), &study);
        let (node, other, pages) = (of("order", "node"), of("order", "other"), of("pages", "node"));
        assert_eq!((node.is_of_case, node.words.as_str()), (true, "reorder members"));
        assert_eq!(node.time, Some([0.9, 0.85, 0.95]));
        assert!(!other.is_of_case && other.has_patch && !pages.is_of_case);
    }
}
