//! Lists all tests: asks every test program that cargo names for its own.

use anyhow::{Context, Result, bail};
use cargo_metadata::{Message, TargetKind};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A test, and the program that it is in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Test {
    pub(super) package: String,
    /// The package's folder, in which its tests run.
    pub(super) folder: PathBuf,
    /// The name of cargo's target: `it`, or the library's for the tests inside of it.
    pub(super) target: String,
    pub(super) program: PathBuf,
    /// Modules and function.
    pub(super) path: String,
    /// Marked by `#[ignore]`.
    pub(super) is_ignored: bool,
}

impl Test {
    /// The test among all of the workspace.
    pub(super) fn name(&self) -> String {
        format!("{} {} {}", self.package, self.target, self.path)
    }
}

/// The tests of all programs in cargo's messages.
pub(super) fn tests(built: &Path) -> Result<Vec<Test>> {
    let file = File::open(built).with_context(|| format!("{}: `make built` writes it", built.display()))?;
    let mut tests = Vec::new();
    for message in Message::parse_stream(BufReader::new(file)) {
        let Message::CompilerArtifact(artifact) = message? else { continue };
        let (true, Some(program)) = (artifact.profile.test, artifact.executable) else { continue };
        // Clippy reads benchmarks, too; they have no tests.
        if artifact.target.kind.contains(&TargetKind::Bench) {
            continue;
        }
        let folder = artifact.manifest_path.parent().context("a manifest is in a folder")?;
        // The package's name is that of the manifest; messages have an identifier that changes from cargo to cargo.
        let package = package_name(artifact.manifest_path.as_std_path())?;
        let of_program = |path: String, is_ignored: bool| Test {
            package: package.clone(),
            folder: folder.as_std_path().to_owned(),
            target: artifact.target.name.clone(),
            program: program.as_std_path().to_owned(),
            path,
            is_ignored,
        };
        let ignored: BTreeSet<String> = names(program.as_std_path(), &["--ignored"])?.into_iter().collect();
        let all = names(program.as_std_path(), &[])?;
        tests.extend(all.into_iter().map(|path| {
            let is_ignored = ignored.contains(&path);
            of_program(path, is_ignored)
        }));
    }
    if tests.is_empty() {
        bail!("{} names no program of tests: `make built` writes it", built.display());
    }
    Ok(tests)
}

fn package_name(manifest: &Path) -> Result<String> {
    let text = std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(name.with_context(|| format!("{} has no name", manifest.display()))?.to_owned())
}

fn names(program: &Path, options: &[&str]) -> Result<Vec<String>> {
    let output = Command::new(program).args(["--list", "--format", "terse"]).args(options).output();
    let output = output.with_context(|| format!("{}: `make built` builds it", program.display()))?;
    if !output.status.success() {
        bail!("{} does not list its tests: {}", program.display(), String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8(output.stdout)?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}
