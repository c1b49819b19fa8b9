//! The Dockerfile for continuous integration, as far as it can be held without Docker: its instructions, the stages and files
//! that it names, the commands that it runs, and the release of Rust that builds it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Instructions with their arguments; comments and empty lines left out, continued lines joined.
fn instructions() -> Vec<(String, String)> {
    let text = fs::read_to_string(workspace().join("ci/Dockerfile")).expect("the Dockerfile");
    let lines = text.replace("\\\n", " ");
    let lines = lines.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').expect("an instruction and its arguments");
            (word.to_string(), rest.trim().to_string())
        })
        .collect()
}

#[test]
fn what_it_names_is_there() {
    let root = workspace();
    let makefile = fs::read_to_string(root.join("Makefile")).expect("the Makefile");
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the manifest");
    let mut stages: BTreeSet<String> = BTreeSet::new();
    for (word, rest) in instructions() {
        match word.as_str() {
            "FROM" => {
                if let Some((image, name)) = rest.split_once(" AS ") {
                    let release = image.strip_prefix("rust:").and_then(|image| image.split('-').next());
                    let release = release.expect("the stage that builds is of Rust");
                    assert!(manifest.contains(&format!("rust-version = \"{release}\"")), "{image}");
                    stages.insert(name.to_string());
                }
            }
            "COPY" => match rest.strip_prefix("--from=") {
                Some(from) => assert!(stages.contains(from.split(' ').next().expect("a stage")), "{rest}"),
                None => {
                    let words: Vec<&str> = rest.split(' ').collect();
                    let (_, sources) = words.split_last().expect("a place to copy to");
                    assert!(sources.iter().all(|source| root.join(source).exists()), "{rest}");
                }
            },
            "RUN" => {
                let commands = rest.split("&&").map(str::trim);
                for target in commands.filter_map(|command| command.strip_prefix("make ")) {
                    assert!(makefile.contains(&format!("\n{target}:")), "make {target}");
                }
            }
            "WORKDIR" | "CMD" => {}
            other => panic!("{other} {rest}"),
        }
    }
    assert_eq!(stages.len(), 1);
}

/// The package that is copied is the one that `make deb` leaves, and packages are installed without asking.
#[test]
fn it_installs_the_package_that_it_builds() {
    let runs: Vec<String> =
        instructions().into_iter().filter(|(word, _)| word == "RUN").map(|(_, rest)| rest).collect();
    assert!(runs.iter().any(|run| run == "make deb"));
    let copied =
        instructions().into_iter().any(|(word, rest)| word == "COPY" && rest.contains("/src/target/debian/"));
    assert!(copied, "where the Makefile says that the package is");
    for run in runs.iter().filter(|run| run.contains("apt-get install")) {
        assert!(
            run.contains("install --yes --no-install-recommends") && run.starts_with("apt-get update"),
            "{run}"
        );
        assert!(run.contains("/var/lib/apt/lists/*"), "{run}");
    }
}

/// Cargo refuses an older release of Rust, so every text that names one names this one.
#[test]
fn every_text_names_the_release_of_rust_that_the_manifest_asks_for() {
    let root = workspace();
    let text =
        |name: &str| fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let manifest = text("Cargo.toml");
    let release = manifest
        .split("rust-version = \"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a release");
    for name in ["README.md", "docs/install.md", "scripts/setup"] {
        assert!(
            text(name).contains(&format!("Rust {release} or later")),
            "{name} does not name Rust {release}"
        );
    }
    for name in ["fleet/Cargo.toml", "mcp/Cargo.toml"] {
        assert!(text(name).contains(&format!("rust-version = \"{release}\"")), "{name}");
    }
}
