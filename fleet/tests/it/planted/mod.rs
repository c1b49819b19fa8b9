//! Files with known contents, as `lineup` writes them.

#![allow(dead_code, reason = "each test file uses some of it")]

use lineup_fleet::input::{self, Input, Labels};
use lineup_fleet::store::Store;
use serde_json::{Value, json};
use std::path::Path;
use tempfile::TempDir;

/// A folder with a store in it.
pub(crate) fn new_store() -> (TempDir, Store) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Store::open_or_make(folder.path().to_str().expect("a name")).expect("a store");
    (folder, store)
}

/// Labels of a recording.
pub(crate) fn labels(service: &str, host: &str, commit: (&str, i64)) -> Labels {
    Labels {
        service: Some(service.into()),
        host: Some(host.into()),
        commit: Some(commit.0.into()),
        commit_time_s: Some(commit.1),
        ..Labels::default()
    }
}

/// A struct of members of eight bytes in this order.
pub(crate) fn words(name: &str, build_id: &str, members: &[&str]) -> Value {
    let member = |(index, member): (usize, &&str)| {
        json!({ "name": member, "type": "long", "offset_bits": index * 64, "bit_size": null, "size_bytes": 8,
            "align_bytes": 8 })
    };
    let members: Vec<Value> = members.iter().enumerate().map(member).collect();
    json!({ "name": name, "image": "/srv/program", "build_id": build_id, "kind": "struct",
        "size_bytes": members.len() * 8, "align_bytes": 8, "first_is_held": false, "members": members })
}

/// Calls that each load these members of one object once: places of the members, and how many calls do so.
pub(crate) type Together<'t> = (&'t [usize], u64);

/// A planted recording of `region`, whose calls use one object of the type each.
pub(crate) struct Recorded<'r> {
    /// Distinguishes recordings.
    pub(crate) number: u64,
    pub(crate) build_id: &'r str,
    pub(crate) region: &'r str,
    pub(crate) calls_per_second: Option<f64>,
    pub(crate) data_lines: f64,
    pub(crate) layout: Value,
    pub(crate) together: &'r [Together<'r>],
}

impl Recorded<'_> {
    /// The document of `lineup explain --usage`.
    pub(crate) fn document(&self) -> Value {
        let calls: u64 = self.together.iter().map(|(_, calls)| calls).sum();
        let pattern = |(members, calls): &Together<'_>| {
            let bytes = members
                .iter()
                .map(|member| json!({ "offset": member * 8, "size_bytes": 8, "loads": calls, "stores": 0 }));
            json!({ "base_in_line": 0, "neighbour_distance_bytes": null, "occurrences": calls,
                "bytes": bytes.collect::<Vec<_>>() })
        };
        let patterns: Vec<Value> = self.together.iter().map(pattern).collect();
        json!({
            "schema": "lineup.usage/1", "file": format!("calls-{}.rec", self.number),
            "content_sha256": format!("{:064x}", self.number), "recorded_at_s": 1_700_000_000_u64 + self.number,
            "host": "here", "program": "/srv/program", "build_id": self.build_id, "command": ["/srv/program"],
            "recorder": "native engine", "machine": "x86_64", "data_model": "LP64", "threads": 1, "accesses": 1,
            "named": 1.0,
            "regions": [{ "name": self.region, "weight": 1.0, "calls": calls, "calls_made": calls,
                "calls_per_second": self.calls_per_second, "instructions_per_call": 100.0,
                "data_lines_32": null, "data_lines_64": self.data_lines, "data_lines_128": null,
                "code_lines_64": null, "data_misses_per_call": null, "stall_cycles_per_call": null }],
            "types": [self.layout],
            "uses": [{ "region": 0, "type": 0, "calls": calls, "patterns": patterns }],
            "variables": [], "shared_lines": [],
        })
    }

    pub(crate) fn input(&self, labels: &Labels) -> Input {
        of(&self.document().to_string(), labels)
    }
}

/// The rows of a document.
pub(crate) fn of(text: &str, labels: &Labels) -> Input {
    input::of_bytes(Path::new("given.json"), text.as_bytes(), Some(1), labels)
        .expect("a file that a store takes")
}
