//! The `lineup-fleet` command, which `lineup fleet` starts.

use clap::{Args, Parser, Subcommand, ValueEnum};
use lineup_fleet::advise::{self, Question, Weigh};
use lineup_fleet::cluster::{Cluster, WAIT};
use lineup_fleet::engine::{Engine, MEMORY_BYTES};
use lineup_fleet::input::{self, Labels};
use lineup_fleet::print::{self, Form};
use lineup_fleet::store::{Added, Store};
use lineup_fleet::{FleetError, Result, report, views, without_secrets};
use lineup_model::line::LineSize;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Collects recordings and reports of many machines in one store, and answers questions about them.
#[derive(Parser)]
#[command(name = "lineup fleet", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Adds files to a store: recordings, and JSON of explain --usage, find, import, layout and study, and lineup.lock
    Add(Add),
    /// Answers a question in SQL
    Query(Query),
    /// Writes one page: trends by commit, and the usual questions
    Report(Report),
    /// Works out one order of a type's members for all services, and says who gains and who loses
    Advise(Advise),
    /// Prints the questions that are asked often, for this engine and others
    Views(Views),
}

#[derive(Args)]
struct Add {
    /// The files
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The store: a folder, or s3://bucket/prefix, gs://…, az://… or abfs://…; created if missing
    #[arg(long, value_name = "DIR|URL")]
    store: String,
    /// Service that the programs belong to [default: the program's file name]
    #[arg(long)]
    service: Option<String>,
    /// The machine they ran on [default: as the file says]
    #[arg(long)]
    host: Option<String>,
    /// The commit that they were built from
    #[arg(long)]
    commit: Option<String>,
    /// Time of the commit in seconds since 1970 (git log -1 --format=%ct), by which commits are ordered
    #[arg(long, value_name = "SECONDS")]
    commit_time: Option<i64>,
    /// Build id of the program, in hexadecimal [default: as the file says]
    #[arg(long, value_name = "HEX")]
    build_id: Option<String>,
    /// Seconds that the program runs without being recorded, to count its calls per second
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
}

#[derive(Args)]
struct Query {
    /// The question, such as 'SELECT * FROM hottest_members ORDER BY accesses DESC LIMIT 10'
    sql: String,
    #[command(flatten)]
    over: Over,
    /// How the answer is printed
    #[arg(long, value_enum, default_value = "table")]
    format: Shown,
}

#[derive(Args)]
struct Report {
    #[command(flatten)]
    over: Over,
    /// The page
    #[arg(long, value_name = "FILE", default_value = "fleet.html")]
    out: PathBuf,
}

#[derive(Args)]
struct Advise {
    /// The type, without struct
    #[arg(value_name = "TYPE")]
    type_name: String,
    #[command(flatten)]
    over: Over,
    /// Weight of a function
    #[arg(long, value_enum, default_value = "calls")]
    by: By,
    /// A service is asked when it makes at least this percentage of the fleet's lines of the type
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0)]
    matters: f64,
    /// Leave this member where it is; may be repeated
    #[arg(long = "pin", value_name = "MEMBER")]
    pins: Vec<String>,
    /// Cache-line size that decides: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// Write the order into this file, for lineup advise --order and lineup study --order
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON (schema lineup.fleet-advice/1)
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Calls per second, from recordings with --seconds
    Calls,
    /// Share of time, from samples
    Time,
}

#[derive(Args)]
struct Over {
    /// The store: a folder, or s3://bucket/prefix, gs://…, az://… or abfs://…, or http(s)://… of a WebDAV server
    #[arg(long, value_name = "DIR|URL")]
    store: String,
    /// MiB for sorting and joining; larger ones use the disk
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_BYTES >> 20)]
    memory: usize,
    /// Let the Apache Ballista cluster with this scheduler answer; it must reach the store by the same path or URL
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "memory")]
    cluster: Option<String>,
    /// How long the cluster may take for each question
    #[arg(long, value_name = "SECONDS", default_value_t = WAIT.as_secs(), requires = "cluster")]
    wait: u64,
}

impl Over {
    fn engine(&self) -> Result<Engine> {
        let Some(scheduler) = &self.cluster else {
            return Engine::over(&Store::open(&self.store)?, self.memory << 20);
        };
        let cluster = Cluster::at(scheduler, Duration::from_secs(self.wait))?;
        Engine::on_cluster(&Store::open(&self.store)?, cluster)
    }
}

#[derive(Args)]
struct Views {
    /// Write each into a file NAME.sql of this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shown {
    /// Columns for people
    Table,
    /// Comma-separated values
    Csv,
    /// Schema lineup.fleet-query/1
    Json,
}

fn line_size(text: &str) -> std::result::Result<LineSize, String> {
    let size = text.parse().ok().and_then(LineSize::new).filter(|size| LineSize::ALL.contains(size));
    size.ok_or_else(|| format!("{text} is not 32, 64 or 128"))
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let number = text.parse().ok().filter(|seconds| *seconds > 0.0 && f64::is_finite(*seconds));
    number.ok_or_else(|| "more than 0".to_owned())
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Add(options) => add(&options),
        Command::Query(options) => query(&options),
        Command::Report(options) => write_report(&options),
        Command::Advise(options) => give_advice(&options),
        Command::Views(options) => show_views(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("lineup-fleet: {}", told(&error));
            ExitCode::from(2)
        }
    }
}

/// An error as text for a terminal.
fn told(error: &FleetError) -> String {
    lineup_report::visible::many_lines(&without_secrets(&error.to_string())).into_owned()
}

/// Adds each file, and continues with the next when one is refused.
fn add(options: &Add) -> Result<()> {
    let store = Store::open_or_make(&options.store)?;
    let labels = Labels {
        service: options.service.clone(),
        host: options.host.clone(),
        commit: options.commit.clone(),
        commit_time_s: options.commit_time,
        build_id: options.build_id.clone(),
        seconds: options.seconds,
    };
    let mut refused = 0;
    for (number, file) in options.files.iter().enumerate() {
        progress(number, options.files.len());
        match input::read(file, &labels).and_then(|input| Ok((store.add(&input)?, input))) {
            Ok((Added::New, input)) => say(&format!("added: {} ({})", input.name, input.source))?,
            Ok((Added::Known, input)) => say(&format!("was there: {} ({})", input.name, input.source))?,
            Err(error @ (FleetError::BadInput { .. } | FleetError::Unreadable { .. })) => {
                eprintln!("lineup-fleet: refused: {}", told(&error));
                refused += 1;
            }
            Err(error) => return Err(error),
        }
    }
    match refused {
        0 => Ok(()),
        refused => Err(FleetError::Refused { refused, given: options.files.len() }),
    }
}

/// Prints the progress on standard error when that is a terminal.
fn progress(done: usize, of: usize) {
    if of > 20 && std::io::stderr().is_terminal() {
        eprint!("\r{done} of {of} files");
    }
}

fn query(options: &Query) -> Result<()> {
    let form = match options.format {
        Shown::Table => Form::Table,
        Shown::Csv => Form::Csv,
        Shown::Json => Form::Json,
    };
    let answer = options.over.engine()?.ask(&options.sql)?;
    out(&print::text(&answer, form)?)
}

fn write_report(options: &Report) -> Result<()> {
    let (store, path) = (&options.over.store, options.out.display());
    let command = format!("lineup fleet report --store {store} --out {path}");
    let page = report::report(&options.over.engine()?, store, &command)?;
    write(&options.out, &page)?;
    say(&format!("report: {path}"))
}

fn give_advice(options: &Advise) -> Result<()> {
    let question = Question {
        type_name: options.type_name.clone(),
        weigh: match options.by {
            By::Calls => Weigh::Calls,
            By::Time => Weigh::Time,
        },
        least_share: options.matters / 100.0,
        pins: options.pins.clone(),
        line: options.line_size,
    };
    let advice = advise::advise(&options.over.engine()?, &question)?;
    match options.json {
        true => out(&(print::json(&advice)? + "\n"))?,
        false => out(&advise::text(&advice))?,
    }
    let (Some(path), Some(order)) = (&options.out, advise::order_file(&advice)) else { return Ok(()) };
    write(path, &order)?;
    eprintln!(
        "order: {0}; the patch: lineup advise RECORDING --order {0} --source DIR --patch FILE",
        path.display()
    );
    Ok(())
}

fn show_views(options: &Views) -> Result<()> {
    let Some(folder) = &options.out else {
        let texts = views::ALL.map(|view| format!("-- {}\n{}", view.name, view.sql));
        return out(&texts.join("\n"));
    };
    for view in views::ALL {
        write(&folder.join(format!("{}.sql", view.name)), view.sql)?;
    }
    Ok(())
}

fn write(path: &std::path::Path, text: &str) -> Result<()> {
    std::fs::write(path, text).map_err(|cause| FleetError::Output { what: path.display().to_string(), cause })
}

fn say(line: &str) -> Result<()> {
    out(&format!("{}\n", lineup_report::visible::one_line(line)))
}

/// Writes to standard output. A reader that closes the pipe early is no error.
fn out(text: &str) -> Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(cause) if cause.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(FleetError::Output { what: "to standard output".into(), cause })
        }
        _ => Ok(()),
    }
}
