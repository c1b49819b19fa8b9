//! `lineup fleet`: recordings of many machines, asked together. Starts `lineup-fleet`, which holds the engine for that.

use crate::recordings::usage;
use crate::terminal::errors;
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_recording::MAGIC;
use lineup_study::own_programs;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use tempfile::TempDir;

/// The program that is started.
const PROGRAM: &str = "lineup-fleet";

/// The command that installs it from Lineup's sources.
const INSTALL: &str = "cargo install --locked --path fleet (in Lineup's sources)";

/// The command that takes recordings.
const ADD: &str = "add";

/// Collects recordings and reports of many machines in one store, and answers questions about them
#[derive(Args)]
pub(crate) struct Options {
    /// add, query, report, advise or views, with its arguments; `lineup fleet -- --help` shows them
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    arguments: Vec<OsString>,
}

/// Runs `lineup fleet`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let program = own_programs::find(PROGRAM, INSTALL)?;
    let explained = match options.arguments.first() {
        Some(command) if command == ADD => Explained::of(&options.arguments)?,
        _ => Explained { arguments: options.arguments.clone(), refused: 0, _folder: None },
    };
    let status = own_programs::run(&program, &explained.arguments)?;
    let refused = explained.refused;
    drop(explained);
    match status.code() {
        Some(0) if refused == 0 => Ok(Outcome::Done),
        Some(0) => bail!("{refused} of the recordings were refused, see above; the rest went in"),
        // It has reported its error.
        Some(code) => std::process::exit(code),
        None => bail!("{PROGRAM} was ended: {status}"),
    }
}

/// The arguments, with JSON in place of recordings: naming accesses is this program's work.
struct Explained {
    arguments: Vec<OsString>,
    refused: usize,
    /// Holds that JSON until the other program has read it.
    _folder: Option<TempDir>,
}

impl Explained {
    fn of(given: &[OsString]) -> Result<Explained> {
        let folder = TempDir::new().context("no folder for what recordings say")?;
        let stages = Stages::new();
        let (mut arguments, mut refused) = (Vec::new(), 0);
        for (number, argument) in given.iter().enumerate() {
            if !is_recording(Path::new(argument)) {
                arguments.push(argument.clone());
                continue;
            }
            let usage = folder.path().join(format!("{number}.json"));
            match write_usage(Path::new(argument), &usage, &stages) {
                Ok(()) => arguments.push(usage.into()),
                Err(error) => {
                    let name = Path::new(argument).display();
                    stages.end();
                    eprintln!("lineup: refused: {}", errors::message(&error.context(name.to_string())));
                    refused += 1;
                }
            }
        }
        stages.end();
        let is_file = |argument: &OsString| Path::new(argument).is_file();
        if refused > 0 && !arguments.iter().any(is_file) {
            bail!("no file is left to add");
        }
        Ok(Explained { arguments, refused, _folder: Some(folder) })
    }
}

fn is_recording(path: &Path) -> bool {
    let mut start = [0; MAGIC.len()];
    path.is_file()
        && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == *MAGIC
}

fn write_usage(recording: &Path, to: &Path, stages: &Stages) -> Result<()> {
    let usage = usage::usage_of(recording, stages)?;
    let mut file = BufWriter::new(File::create(to)?);
    serde_json::to_writer(&mut file, &usage)?;
    Ok(file.flush()?)
}
