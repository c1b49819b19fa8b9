//! `xtask wins`: how often Lineup finds the changes of layout that others made first. A case names a public commit; the
//! user's folder holds a build of its parent.

mod case;
mod outcome;
mod score;

use anyhow::{Context, Result, bail};
use case::Case;
use outcome::Outcome;
use score::{Finding, Study};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const USAGE: &str =
    "usage: xtask wins FOLDER [--cases FOLDER] [--lineup PROGRAM] [--study SECONDS] [--out FILE] [NAME]...";

struct Options {
    /// A folder for each case that is to be run.
    folder: PathBuf,
    cases: PathBuf,
    lineup: PathBuf,
    /// The budget of a study, in seconds; none is made without.
    study: Option<u32>,
    out: PathBuf,
    /// Names of cases, where not all are wanted.
    names: Vec<String>,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options> {
    let mut options = Options {
        folder: PathBuf::new(),
        cases: "studies/wins/cases".into(),
        lineup: "target/release/lineup".into(),
        study: None,
        out: "target/wins.md".into(),
        names: Vec::new(),
    };
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().context(USAGE);
        match argument.as_str() {
            "--cases" => options.cases = value()?.into(),
            "--lineup" => options.lineup = value()?.into(),
            "--study" => options.study = Some(value()?.parse().context("--study takes seconds")?),
            "--out" => options.out = value()?.into(),
            other if other.starts_with('-') => bail!("{other} is no option; {USAGE}"),
            _ if options.folder.as_os_str().is_empty() => options.folder = argument.into(),
            _ => options.names.push(argument),
        }
    }
    if options.folder.as_os_str().is_empty() {
        bail!("{USAGE}");
    }
    options.folder =
        fs::canonicalize(&options.folder).with_context(|| format!("{}", options.folder.display()))?;
    options.lineup = fs::canonicalize(&options.lineup)
        .with_context(|| format!("{}: build Lineup, or name it with --lineup", options.lineup.display()))?;
    Ok(options)
}

pub(crate) fn wins(arguments: impl Iterator<Item = String>) -> Result<()> {
    let options = options(arguments)?;
    let mut cases = Case::all(&options.cases)?;
    cases.retain(|case| options.names.is_empty() || options.names.contains(&case.name));
    let mut outcomes = Vec::new();
    for case in &cases {
        let folder = options.folder.join(&case.name);
        let outcome = if folder.join("command").exists() {
            eprintln!("wins: {}", case.name);
            run(case, &folder, &options)
        } else {
            Outcome::NotRun
        };
        outcomes.push((case, outcome));
        // A run takes hours: each case is kept as it ends.
        fs::write(&options.out, outcome::table(&outcomes))
            .with_context(|| format!("{}", options.out.display()))?;
    }
    print!("{}", outcome::table(&outcomes));
    Ok(())
}

/// The words of a file of one line, as a shell without variables splits them; none where there is no such file.
fn words(file: &Path) -> Result<Vec<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text.split_whitespace().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("{}", file.display())),
    }
}

fn run(case: &Case, folder: &Path, options: &Options) -> Outcome {
    let found = match find(folder, options) {
        Ok(found) => found,
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    let study = options
        .study
        .map(|budget| study(case, folder, budget, options).map_err(|error| format!("{error:#}")));
    Outcome::Run { finding: Finding::of(case, &found), study }
}

/// The options that both commands take: of a server the client, and all that the case adds.
fn common(folder: &Path) -> Result<Vec<String>> {
    let mut arguments = words(&folder.join("options"))?;
    if let Ok(drive) = fs::read_to_string(folder.join("drive")) {
        arguments.extend(["--drive".to_owned(), drive.trim().to_owned()]);
    }
    Ok(arguments)
}

fn find(folder: &Path, options: &Options) -> Result<Value> {
    let built = output(Command::new("./build").current_dir(folder))?;
    if !built.status.success() {
        bail!("build ends with {}", built.status);
    }
    let mut command = Command::new(&options.lineup);
    command.args(["find", "--json"]).args(common(folder)?).arg("--").args(words(&folder.join("command"))?);
    json(command.current_dir(folder))
}

/// A study of every lever; its patch is built and tested where the case has a program `test`.
fn study(case: &Case, folder: &Path, budget: u32, options: &Options) -> Result<Study> {
    let out = options.folder.join(format!("{}.study", case.name));
    let mut command = Command::new(&options.lineup);
    command.args([
        "study",
        "--json",
        "--source",
        ".",
        "--build",
        "./build",
        "--budget",
        &budget.to_string(),
        "--out",
    ]);
    command.arg(&out).args(common(folder)?).arg("--").args(words(&folder.join("command"))?);
    let mut study = Study::of(case, &json(command.current_dir(folder))?);
    let patch = out.join("fix.patch");
    if folder.join("test").exists() && study.has_patch {
        study.passes = Some(tested(folder, &patch)?);
    }
    Ok(study)
}

/// Whether the patch applies to a copy, which then builds and passes its test.
fn tested(folder: &Path, patch: &Path) -> Result<bool> {
    let copy = folder.with_extension("tested");
    let script =
        "rm -rf \"$2\" && cp -a \"$1\" \"$2\" && cd \"$2\" && patch -s -p1 < \"$3\" && ./build && ./test";
    let output = output(Command::new("sh").args(["-c", script, "sh"]).arg(folder).arg(&copy).arg(patch))?;
    fs::remove_dir_all(&copy).ok();
    Ok(output.status.success())
}

fn output(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    command.stdin(std::process::Stdio::null()).output().with_context(|| program)
}

/// The document that a command of Lineup prints; the message of its error where it prints one.
fn json(command: &mut Command) -> Result<Value> {
    let output = output(command)?;
    let Ok(document) = serde_json::from_slice::<Value>(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().next_back().unwrap_or("Lineup printed nothing"));
    };
    if document["schema"] == "lineup.error/1" {
        bail!("{}", document["what"].as_str().unwrap_or("an error without words"));
    }
    Ok(document)
}
