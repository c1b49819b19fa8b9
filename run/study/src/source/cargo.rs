//! Cargo in a copy of the source folder: checks of all targets, and the format.

use crate::error::{BuildError, Doing};
use crate::source::build_failure::last_lines;
use crate::source::scratch::Scratch;
use crate::source::tree::Tree;
use lineup_advise::judge::{CargoCheck, RustError};
use lineup_prove::run::Ending;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines of Cargo's output that are shown.
const LAST_LINES: usize = 5;

/// Has Cargo check every target of the workspace that holds this file, with the features of the build command. `None`
/// where no package holds it.
pub(crate) fn check(
    scratch: &Scratch,
    tree: &mut Tree,
    edited: &BTreeMap<String, String>,
    path: &str,
) -> Result<Option<CargoCheck>, BuildError> {
    let Some(package) = package_of(&tree.path, path) else { return Ok(None) };
    let manifest = tree.path.join(&package).join("Cargo.toml");
    let manifest = fs::read_to_string(&manifest)
        .doing_with(|| format!("cannot read {}", manifest.display()))
        .map_err(BuildError::around)?;
    tree.edit(edited).and_then(|()| tree.freshen()).map_err(BuildError::around)?;
    let seen = scratch.built_in(tree);
    let line = format!(
        "cd {} && cargo locate-project --workspace --message-format plain && exec cargo check --workspace \
         --all-targets --keep-going --offline --message-format short --color never --target-dir {} {}",
        quoted(&seen.join(&package)),
        quoted(&scratch.further_folder("check")),
        shell_words::join(features(scratch.build_command()))
    );
    let (ending, words) = scratch.run_line(&tree.path, &line).map_err(BuildError::around)?;
    scratch.check_untouched().map_err(BuildError::around)?;
    let root = words.lines().next().and_then(|line| Path::new(line).parent()).unwrap_or(Path::new(""));
    let root = root.strip_prefix(seen).unwrap_or(Path::new(""));
    let errors: BTreeSet<RustError> = words.lines().filter_map(|line| error(line, root)).collect();
    if ending != Ending::Exited(0) && errors.is_empty() {
        // No verdict on the edit, and no reason to end the study: other changes need no Cargo.
        return Err(BuildError::Rejected { words: last_lines(&words, LAST_LINES) });
    }
    let errors = if ending == Ending::Exited(0) { Vec::new() } else { errors.into_iter().collect() };
    let package = package.to_string_lossy().into_owned();
    Ok(Some(CargoCheck { errors, package, manifest }))
}

/// These texts as the workspace's formatter writes them, where it would have left the texts before unchanged.
pub(crate) fn format(
    scratch: &Scratch,
    tree: &mut Tree,
    edited: &BTreeMap<String, String>,
    path: &str,
) -> Result<BTreeMap<String, String>, BuildError> {
    let Some(package) = package_of(&tree.path, path) else { return Ok(edited.clone()) };
    let folder = quoted(&scratch.built_in(tree).join(package));
    let mut run = |texts: &BTreeMap<String, String>, more: &str| {
        tree.edit(texts)?;
        scratch.run_line(&tree.path, &format!("cd {folder} && exec cargo fmt --all {more}"))
    };
    let is_done = |ran: &(Ending, String)| ran.0 == Ending::Exited(0);
    let was_formatted = run(&BTreeMap::new(), "-- --check").map_err(BuildError::around)?;
    if !is_done(&was_formatted) || !is_done(&run(edited, "").map_err(BuildError::around)?) {
        return Ok(edited.clone());
    }
    let read = |path: &String| {
        let file = tree.path.join(path);
        let text = fs::read_to_string(&file).doing_with(|| format!("cannot read {}", file.display()));
        text.map(|text| (path.clone(), text)).map_err(BuildError::around)
    };
    edited.keys().map(read).collect()
}

fn quoted(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// The folder of the package that holds a file, relative to the source folder.
fn package_of(folder: &Path, path: &str) -> Option<PathBuf> {
    let has_manifest = |inside: &&Path| folder.join(inside).join("Cargo.toml").is_file();
    Path::new(path).ancestors().skip(1).find(has_manifest).map(Path::to_owned)
}

/// The options of a build command that choose features.
fn features(build: &str) -> Vec<String> {
    let words = shell_words::split(build).unwrap_or_default();
    let mut chosen = Vec::new();
    let mut words = words.into_iter().skip_while(|word| word != "cargo");
    while let Some(word) = words.next() {
        match word.as_str() {
            "--all-features" | "--no-default-features" => chosen.push(word),
            "--features" | "-F" => chosen.extend([Some(word), words.next()].into_iter().flatten()),
            "&&" | ";" | "|" | "--" => break,
            _ if word.starts_with("--features=") => chosen.push(word),
            _ => {}
        }
    }
    chosen
}

/// An error from a line like `src/main.rs:3:5: error[E0609]: no field`.
fn error(line: &str, root: &Path) -> Option<RustError> {
    let (place, words) = line.split_once(": error")?;
    let (code, words) = match words.strip_prefix('[') {
        Some(rest) => rest.split_once("]: ")?,
        None => ("", words.strip_prefix(": ")?),
    };
    let mut parts = place.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let row = parts.next()?.parse().ok()?;
    let path = root.join(parts.next()?);
    let path = path.to_string_lossy().into_owned();
    Some(RustError { path, line: row, column, code: code.to_owned(), words: words.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_its_place_in_the_source_folder() {
        let line = "src/a b.rs:12:9: error[E0609]: no field `x` on type `&T`: unknown field";
        let found = error(line, Path::new("crates/one")).expect("an error");
        assert_eq!((found.path.as_str(), found.line, found.column), ("crates/one/src/a b.rs", 12, 9));
        assert_eq!(
            (found.code.as_str(), found.words.as_str()),
            ("E0609", "no field `x` on type `&T`: unknown field")
        );
        assert_eq!(error("src/a.rs:1:2: error: unused variable", Path::new("")).expect("an error").code, "");
        assert_eq!(error("error: could not compile `x` (lib) due to 1 previous error", Path::new("")), None);
        assert_eq!(error("src/a.rs:1:2: warning: unused: error", Path::new("")), None);
    }

    #[test]
    fn features_are_those_of_the_build() {
        let of = |build: &str| features(build).join(" ");
        assert_eq!(of("cargo build --release --features a,b --bin x"), "--features a,b");
        assert_eq!(
            of("cd x && cargo build -F a --no-default-features && cp --features y"),
            "-F a --no-default-features"
        );
        assert_eq!(of("make --features"), "");
    }
}
