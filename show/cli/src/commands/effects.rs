//! `lineup effects`: the effects of a program, alone or compared with another program's.

use crate::options::surroundings::Surroundings;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_report::effects::{EffectsCheck, EffectsReport, agreement_text, difference_text, effects_text};
use lineup_study::effects::{Snapshot, observe, observe_variants};
use lineup_study::interrupt::Interrupts;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Arguments of `lineup effects`.
#[derive(Args)]
pub(crate) struct Options {
    /// Run this program, too, with the same arguments, each twice in an empty folder; exit 1 when they differ
    #[arg(long, value_name = "PROGRAM")]
    against: Option<PathBuf>,
    /// With --against: a folder whose content every run starts with
    #[arg(long, value_name = "DIR", requires = "against")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    surroundings: Surroundings,
    /// Print JSON (schema lineup.effects/1, or lineup.effects-check/1 with --against)
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Runs `lineup effects`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let surroundings = &options.surroundings;
    let like = Run {
        input: surroundings.input(&interrupts, &stages)?,
        max_time: surroundings.max_time(),
        drive: surroundings.drive(),
        ..Run::default()
    };
    match &options.against {
        None => alone(options, &like, &interrupts, &stages),
        Some(other) => against(options, &like, other, &interrupts, &stages),
    }
}

fn alone(options: &Options, like: &Run, interrupts: &Interrupts, stages: &Stages) -> Result<Outcome> {
    let run = Run { command: options.command.clone(), ..like.clone() };
    stages.stage("observing the effects of the processes");
    let effects = observe(&run, false, interrupts)??.effects;
    stages.end();
    let command = options.command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let report = EffectsReport::of(command, &effects);
    output::print(&match options.json {
        true => report.to_json()?,
        false => effects_text(&report, output::text_style()),
    })?;
    Ok(Outcome::Done)
}

fn against(
    options: &Options,
    like: &Run,
    other: &Path,
    interrupts: &Interrupts,
    stages: &Stages,
) -> Result<Outcome> {
    let root = interrupts.temporary_folder().context("cannot make a folder to run in")?;
    let [program, arguments @ ..] = options.command.as_slice() else { bail!("no program given") };
    // Folders of equal length, as a path's length moves the program's stack.
    let run = |program: &Path, name: &str| -> Result<Run> {
        let command = [absolute(program)?].into_iter().chain(arguments.iter().cloned()).collect();
        let folder = folder(options.folder.as_deref(), root.path().join(name))?;
        Ok(Run { command, directory: Some(folder), ..like.clone() })
    };
    let (before, after) = (run(Path::new(program), "a")?, run(other, "b")?);
    stages.stage("observing the effects of the processes of both variants");
    let [before, after] = observe_variants(&before, &after, interrupts)??;
    let found = before.agreement(&after);
    stages.end();
    let check = found.as_ref().map(EffectsCheck::from);
    output::print(&match (&check, options.json) {
        (Ok(check), false) => agreement_text(check),
        (Err(difference), false) => difference_text(difference),
        (_, true) => check_json(check.as_ref().map_err(|difference| (&difference.effect, &difference.how)))?,
    })?;
    Ok(if check.is_ok() { Outcome::Done } else { Outcome::Finding })
}

/// A new folder with the content of another.
fn folder(from: Option<&Path>, folder: PathBuf) -> Result<PathBuf> {
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    if let Some(from) = from {
        Snapshot::copy(from, &folder).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(folder)
}

/// A program named by its path is found from any folder; one named alone is looked for in PATH.
fn absolute(program: &Path) -> Result<OsString> {
    let is_path = program.components().count() > 1;
    let path = if is_path { std::path::absolute(program)? } else { program.to_owned() };
    Ok(path.into_os_string())
}

fn check_json(check: Result<&EffectsCheck, (&String, &String)>) -> Result<String> {
    let difference = check.err().map(|(effect, how)| serde_json::json!({ "effect": effect, "how": how }));
    let document = serde_json::json!({
        "schema": "lineup.effects-check/1",
        "check": check.ok(),
        "difference": difference,
    });
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
