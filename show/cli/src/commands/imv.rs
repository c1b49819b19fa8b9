//! `lineup imv`: the immediate values of a running program.

use crate::terminal::outcome::Outcome;
use anyhow::{Context, Result, anyhow, bail};
use lineup_trace::control::{Answer, Request, socket_folder, socket_path};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Shows and changes immediate values of a running program that serves them (`lineup_imv_serve`).
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Command,
    /// Print JSON, the form lineup.imv/1.
    #[arg(long, global = true)]
    json: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Shows every value
    List {
        /// The program's process number.
        pid: u32,
    },
    /// Shows one value
    Get {
        /// The program's process number.
        pid: u32,
        /// The variable's name, as `list` shows it.
        name: String,
    },
    /// Changes a value; done when every thread sees it
    Set {
        /// The program's process number.
        pid: u32,
        /// The variable's name, as `list` shows it.
        name: String,
        /// The new value: decimal, 0x hexadecimal, or true and false.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
}

/// Runs the command.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    let (pid, request) = match &options.command {
        Command::List { pid } => (*pid, Request::List),
        Command::Get { pid, name } => (*pid, Request::Get { name: name.clone() }),
        Command::Set { pid, name, value } => {
            (*pid, Request::Set { name: name.clone(), value: value.clone() })
        }
    };
    if Request::parse(&request.to_line()).as_ref() != Some(&request) {
        bail!("names and values hold no spaces");
    }
    let line = ask(pid, &request)?;
    let answer: Answer =
        serde_json::from_str(&line).with_context(|| format!("process {pid} sent no answer"))?;
    if let Some(error) = answer.error {
        return Err(anyhow!("process {pid}: {error}"));
    }
    let text = if options.json { line } else { table(&answer) };
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error).context("standard output"),
        _ => Ok(Outcome::Done),
    }
}

fn ask(pid: u32, request: &Request) -> Result<String> {
    const PATIENCE: Duration = Duration::from_secs(5);
    let process =
        std::fs::metadata(format!("/proc/{pid}")).map_err(|_| anyhow!("there is no process {pid}"))?;
    let uid = process.uid();
    let folder = socket_folder(uid, std::path::Path::new(&format!("/run/user/{uid}")).is_dir());
    let path = socket_path(&folder, pid);
    let mut stream = UnixStream::connect(&path).with_context(|| {
        format!(
            "process {pid} does not serve its immediate values at {} (it must call lineup_imv_serve, and only its \
             own user may ask)",
            path.display()
        )
    })?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{}\n", request.to_line()).as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).with_context(|| format!("process {pid} did not answer"))?;
    Ok(line)
}

fn table(answer: &Answer) -> String {
    let mut text = String::new();
    for value in &answer.values {
        let sites = match value.plain_sites {
            0 => format!("{} sites", value.patched_sites),
            plain => format!("{} sites, {plain} read memory", value.patched_sites),
        };
        let kind = format!("{}{}", value.class, 8 * u32::from(value.size_bytes));
        let _ = writeln!(text, "{:<40} {:<10} {:<20} {sites}", value.name, kind, value.value);
    }
    text
}
