//! `lineup lsp`: a language server over standard input and output. `lineup-lsp` works out its answers.

use crate::options::values::line_size;
use crate::recordings::{report, survey};
use crate::terminal::errors::message;
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use crate::types::opening;
use anyhow::{Context, Result, bail};
use clap::Args;
use lineup_lsp::wire::{Incoming, outgoing};
use lineup_lsp::{Config, Server, SessionEnd, Stamp, World};
use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::types::Types;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// Bytes that are read from the client at once.
const AT_ONCE: usize = 64 << 10;

/// Shows layouts, holes and hot lines in an editor: a language server over standard input and output
#[derive(Args)]
pub(crate) struct Options {
    /// Programs, libraries or object files with debug information; if several define a type, the first one counts
    #[arg(value_name = "FILE")]
    binaries: Vec<PathBuf>,
    /// How types are used: a recording, the folder or report.json of a study, or what `lineup explain --json` or
    /// `lineup advise --json` printed
    #[arg(long, value_name = "FILE")]
    recording: Option<PathBuf>,
    /// The lineup.lock whose promises are shown
    #[arg(long, value_name = "FILE")]
    lock: Option<PathBuf>,
    /// Bytes in a cache line: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// Editors may add this; there is no other way to talk
    #[arg(long, hide = true)]
    stdio: bool,
}

/// Runs `lineup lsp`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let here = std::env::current_dir().context("cannot find the current folder")?;
    let config = Config {
        binaries: options.binaries.iter().map(|path| here.join(path)).collect(),
        recording: options.recording.as_ref().map(|path| here.join(path)),
        lock: options.lock.as_ref().map(|path| here.join(path)),
        line: options.line_size,
    };
    let mut server = Server::new(Disk, config, env!("CARGO_PKG_VERSION"));
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut incoming = Incoming::default();
    let mut bytes = vec![0; AT_ONCE];
    loop {
        while let Some(message) = incoming.next_message()? {
            for answer in server.handle(message) {
                output.write_all(&outgoing(&answer))?;
            }
            output.flush()?;
            match server.ended() {
                Some(SessionEnd::Properly) => return Ok(Outcome::Done),
                Some(SessionEnd::Abruptly) => return Ok(Outcome::Finding),
                None => {}
            }
        }
        match input.read(&mut bytes)? {
            0 if incoming.is_begun() => bail!("the client closed the pipe within a message"),
            0 => return Ok(Outcome::Finding),
            read => incoming.push(&bytes[..read]),
        }
    }
}

/// The files of this machine.
struct Disk;

impl World for Disk {
    fn stamp(&self, path: &Path) -> Option<Stamp> {
        let metadata = std::fs::metadata(path).ok()?;
        Some(Stamp { modified: metadata.modified().ok()?, bytes: metadata.len() })
    }

    fn canonical(&self, path: &Path) -> Option<PathBuf> {
        std::fs::canonicalize(path).ok()
    }

    fn text(&self, path: &Path) -> Result<String, String> {
        std::fs::read_to_string(path).map_err(|error| error.to_string())
    }

    fn types(&self, path: &Path) -> Result<(Types, Abi), String> {
        opening::types_of(path).map_err(|error| without_path(&error, path))
    }

    fn evidence(&self, path: &Path) -> Result<String, String> {
        evidence(path).map_err(|error| without_path(&error, path))
    }
}

/// An error without the file's name in front: the caller adds that.
fn without_path(error: &anyhow::Error, path: &Path) -> String {
    let told = message(error);
    let name = format!("{}: ", path.display());
    told.strip_prefix(&name).map_or_else(|| told.clone(), str::to_string)
}

/// The document itself, or the one worked out from a recording.
fn evidence(path: &Path) -> Result<String> {
    let path = if path.is_dir() { path.join("report.json") } else { path.to_owned() };
    let mut begins = [0; 1];
    let read = lineup_mapping::open(&path)?.read(&mut begins)?;
    if begins[..read] == *b"{" {
        return Ok(lineup_mapping::read_text(&path)?);
    }
    let stages = Stages::new();
    let surveyed = survey::survey(&path, &stages)?;
    report::refuse_others(&surveyed, &path)?;
    Ok(report::report(surveyed, &path, LineSize::B64, &stages)?.to_json()?)
}
