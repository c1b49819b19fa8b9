//! Every crate has one program of integration tests, `tests/it`: each further program costs one more link.

use cargo_metadata::{Metadata, TargetKind};
use std::path::Path;

/// Programs that stay apart, by crate and name, each with its reason.
const APART: &[(&str, &str, &str)] = &[
    ("lineup-runtime", "clock", "Miri runs it without the tests that compile C"),
    ("lineup-runtime", "imv", "the values of a process are patched where all of its threads read them"),
    ("lineup-runtime", "imv_torture", "forks and handles signals while other threads patch the process"),
    ("lineup-runtime", "trace", "a session of the tracer belongs to the whole process, which forks"),
];

/// Test programs other than `it`, and files in it that no `mod` line names.
pub(crate) fn check(metadata: &Metadata) -> Vec<String> {
    let mut broken = Vec::new();
    for package in metadata.workspace_packages() {
        for target in package.targets.iter().filter(|target| target.kind.contains(&TargetKind::Test)) {
            let is_apart = APART.iter().any(|(of, name, _)| package.name == *of && *name == target.name);
            if target.name == "it" {
                broken.extend(without_line(target.src_path.as_std_path()));
            } else if !is_apart {
                let name = &target.name;
                broken.push(format!("{} has a program of tests of its own; move it to tests/it and name it in main.rs: {name}", package.name));
            }
        }
    }
    broken
}

/// Files in the program's folder that its first file does not name: their tests would not run.
fn without_line(main: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(main).unwrap_or_default();
    let folder = main.parent().expect("a file is in a folder");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let sources =
        files.filter(|path| path.extension().is_some_and(|extension| extension == "rs") && path != main);
    let unnamed = sources.filter(|path| {
        let line = format!("mod {};", path.file_stem().unwrap_or_default().display());
        !text.lines().any(|of| of.trim_start_matches("pub(crate) ") == line)
    });
    unnamed
        .map(|path| format!("{} is named by no mod line of main.rs, so its tests do not run", path.display()))
        .collect()
}
