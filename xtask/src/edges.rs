//! Data flows one way: every dependency edge between our crates, and every use of a heavy library,
//! must be on these lists.

use cargo_metadata::{DependencyKind, Metadata, Package};
use std::collections::BTreeMap;

/// Crate, and the crates of ours that it may use (normal, dev or build).
const EDGES: &[(&str, &[&str])] = &[
    ("lineup-model", &[]),
    ("lineup-stats", &[]),
    // For tests alone.
    ("lineup-browser", &[]),
    ("lineup-fixtures", &[]),
    ("lineup-bundle", &[]),
    ("lineup-cache", &["lineup-model"]),
    ("lineup-coherence", &[]),
    ("lineup-debuginfo", &["lineup-model"]),
    ("lineup-recording", &["lineup-model"]),
    // Itself, with the writers of its files, in tests.
    ("lineup-samples", &["lineup-samples"]),
    ("lineup-kernel", &["lineup-model", "lineup-debuginfo"]),
    ("lineup-sources", &["lineup-model"]),
    ("lineup-follow", &["lineup-model", "lineup-recording"]),
    ("lineup-profile", &["lineup-model", "lineup-cache", "lineup-recording"]),
    (
        "lineup-plugin",
        &["lineup-model", "lineup-cache", "lineup-recording", "lineup-follow", "lineup-profile"],
    ),
    ("lineup-engine", &["lineup-recording", "lineup-profile"]),
    (
        "lineup-explain",
        &["lineup-model", "lineup-cache", "lineup-coherence", "lineup-debuginfo", "lineup-recording"],
    ),
    (
        "lineup-find",
        &[
            "lineup-model",
            "lineup-cache",
            "lineup-coherence",
            "lineup-debuginfo",
            "lineup-recording",
            "lineup-samples",
            "lineup-explain",
        ],
    ),
    ("lineup-codelayout", &["lineup-model", "lineup-debuginfo", "lineup-recording"]),
    ("lineup-tail", &["lineup-model", "lineup-stats", "lineup-recording"]),
    (
        "lineup-advise",
        &["lineup-fixtures", "lineup-model", "lineup-stats", "lineup-explain", "lineup-sources"],
    ),
    ("lineup-heap-plan", &[]),
    ("lineup-heap", &["lineup-fixtures", "lineup-heap-plan"]),
    ("lineup-prove", &["lineup-model", "lineup-stats", "lineup-explain"]),
    // None of ours: a fault of theirs must not be one of the check.
    ("lineup-check", &[]),
    (
        "lineup-report",
        &[
            "lineup-model",
            "lineup-stats",
            "lineup-recording",
            "lineup-explain",
            "lineup-find",
            "lineup-codelayout",
            "lineup-tail",
            "lineup-advise",
            "lineup-prove",
            "lineup-sched",
            "lineup-trace",
        ],
    ),
    ("lineup-review", &["lineup-model", "lineup-stats", "lineup-advise", "lineup-report"]),
    ("lineup-lsp", &["lineup-model", "lineup-advise"]),
    ("lineup-sched", &["lineup-stats"]),
    ("lineup-load", &["lineup-stats"]),
    ("lineup-mapping", &[]),
    (
        "lineup-study",
        &[
            "lineup-model",
            "lineup-stats",
            "lineup-cache",
            "lineup-check",
            "lineup-debuginfo",
            "lineup-recording",
            "lineup-samples",
            "lineup-follow",
            "lineup-heap-plan",
            "lineup-profile",
            "lineup-sources",
            "lineup-kernel",
            "lineup-advise",
            "lineup-prove",
            "lineup-mapping",
            "lineup-bundle",
        ],
    ),
    (
        "lineup",
        &[
            "lineup-browser",
            "lineup-bundle",
            "lineup-fixtures",
            "lineup-model",
            "lineup-stats",
            "lineup-cache",
            "lineup-check",
            "lineup-debuginfo",
            "lineup-recording",
            "lineup-samples",
            "lineup-kernel",
            "lineup-explain",
            "lineup-find",
            "lineup-codelayout",
            "lineup-tail",
            "lineup-advise",
            "lineup-prove",
            "lineup-report",
            "lineup-review",
            "lineup-sched",
            "lineup-load",
            "lineup-lsp",
            "lineup-mapping",
            "lineup-study",
            "lineup-trace",
        ],
    ),
    ("lineup-trace", &["lineup-stats"]),
    ("lineup-runtime", &["lineup-fixtures", "lineup-trace"]),
    ("lineup-preload", &["lineup-fixtures", "lineup-runtime", "lineup-trace"]),
    ("xtask", &[]),
];

/// Heavy library, and the crates that may use it.
const HEAVY: &[(&str, &[&str])] = &[
    ("gimli", &["lineup-debuginfo", "lineup-check"]),
    ("object", &["lineup-debuginfo", "lineup-kernel", "lineup-check"]),
    (
        "iced-x86",
        &["lineup-explain", "lineup-codelayout", "lineup-plugin", "lineup-profile", "lineup-engine"],
    ),
    ("capstone", &["lineup-explain"]),
    ("clang-sys", &["lineup-sources"]),
    ("tree-sitter", &["lineup-advise"]),
    ("tree-sitter-c", &["lineup-advise"]),
    ("tree-sitter-cpp", &["lineup-advise"]),
    ("tree-sitter-rust", &["lineup-advise"]),
    ("statrs", &["lineup-stats"]),
    ("zstd", &["lineup-recording", "lineup-kernel", "lineup-samples", "lineup-study"]),
    ("lzma-rust2", &["lineup-kernel"]),
    ("lz4_flex", &["lineup-kernel"]),
    ("memmap2", &["lineup-mapping"]),
    ("lsp-types", &["lineup-lsp"]),
    ("maud", &["lineup-report"]),
    ("comfy-table", &["lineup-report"]),
    ("scraper", &["lineup-report"]),
    ("clap", &["lineup"]),
    ("indicatif", &["lineup"]),
    ("prost", &["lineup"]),
    ("anyhow", &["lineup", "xtask"]),
    ("cargo_metadata", &["xtask"]),
];

/// The folders of crates, in the order of the flow: a crate uses crates of its own folder and of those in earlier rows.
const FLOW: &[&[&str]] =
    &[&["base"], &["read", "runtime", "sched"], &["recorder", "understand"], &["fix"], &["run"], &["show"]];

/// The folder of crates that only tests use.
const TESTING: &str = "testing";

/// The folder that a crate lies in, by the path of its manifest.
fn folder(manifest: &str, root: &str) -> Option<String> {
    let below = manifest.strip_prefix(root)?.trim_start_matches('/');
    below.split_once('/').map(|(folder, _)| folder.to_owned())
}

fn row(folder: &str) -> Option<usize> {
    FLOW.iter().position(|row| row.contains(&folder))
}

/// True when a crate of the folder `from` may use one of the folder `to`.
fn flows(from: &str, to: &str, is_for_tests: bool) -> bool {
    let is_earlier = || matches!((row(from), row(to)), (Some(from), Some(to)) if to < from);
    from == to || to == TESTING && is_for_tests || is_earlier()
}

/// Edges against the flow, one sentence each.
fn against_the_flow(metadata: &Metadata) -> Vec<String> {
    let root = metadata.workspace_root.as_str();
    let folders: BTreeMap<&str, String> = metadata
        .workspace_packages()
        .into_iter()
        .filter_map(|package| Some((package.name.as_str(), folder(package.manifest_path.as_str(), root)?)))
        .collect();
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        let Some(from) = folders.get(name) else { continue };
        if name != "xtask" && from != TESTING && row(from).is_none() {
            broken.push(format!(
                "{name} lies in {from}/, which is no folder of the flow in xtask/src/edges.rs"
            ));
        }
        for dependency in &package.dependencies {
            let Some(to) = folders.get(dependency.name.as_str()) else { continue };
            if !flows(from, to, dependency.kind == DependencyKind::Development) {
                broken.push(format!(
                    "{name} ({from}/) may not use {} ({to}/): data flows the other way",
                    dependency.name
                ));
            }
        }
    }
    broken
}

/// The edges and heavy uses that no list allows, and those that a list allows but no package uses, one sentence each.
pub(crate) fn check(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let ours: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut broken = Vec::new();
    for package in &packages {
        let name = package.name.as_str();
        let Some((_, allowed)) = EDGES.iter().find(|(from, _)| *from == name) else {
            broken.push(format!("crate {name} is not on the list in xtask/src/edges.rs"));
            continue;
        };
        for dependency in &package.dependencies {
            let to = dependency.name.as_str();
            if ours.contains(&to) && !allowed.contains(&to) {
                broken.push(format!("{name} may not use {to} ({:?} dependency)", dependency.kind));
            }
            if let Some((_, users)) = HEAVY.iter().find(|(library, _)| *library == to)
                && !users.contains(&name)
            {
                broken.push(format!("{to} belongs to {}, not to {name}", users.join(" and ")));
            }
        }
    }
    broken.extend(unused(&packages));
    broken.extend(against_the_flow(metadata));
    broken
}

/// Allowed edges and uses that no package has.
fn unused(packages: &[&Package]) -> Vec<String> {
    let uses = |from: &str, to: &str| {
        let package = packages.iter().find(|package| package.name.as_str() == from);
        package.is_some_and(|package| package.dependencies.iter().any(|used| used.name == to))
    };
    let edges = EDGES.iter().flat_map(|(from, allowed)| allowed.iter().map(move |to| (*from, *to)));
    let heavy = HEAVY.iter().flat_map(|(library, users)| users.iter().map(move |from| (*from, *library)));
    let unused = edges.chain(heavy).filter(|(from, to)| !uses(from, to));
    unused.map(|(from, to)| format!("{from} does not use {to}: take that off the list")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_uses_its_own_folder_and_earlier_ones() {
        for (from, to) in [("show", "base"), ("fix", "understand"), ("run", "run"), ("show", "runtime")] {
            assert!(flows(from, to, false), "{from} {to}");
        }
        for (from, to) in
            [("base", "read"), ("recorder", "understand"), ("read", "sched"), ("fix", "testing")]
        {
            assert!(!flows(from, to, false), "{from} {to}");
        }
        assert!(flows("fix", "testing", true));
    }

    #[test]
    fn a_folder_is_the_first_below_the_workspace() {
        assert_eq!(folder("/w/base/model/Cargo.toml", "/w").as_deref(), Some("base"));
        assert_eq!(folder("/w/Cargo.toml", "/w"), None);
    }
}
