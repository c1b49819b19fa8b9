//! `lineup find`: findings in a whole program.

mod again;
mod allocations;
mod contexts;
mod diff;
mod folded;
mod kernel;
mod live;
mod placements;
mod pprof;
mod starter;
mod text;

use crate::engine_name::EngineName;
use crate::explain;
use crate::files;
use crate::outcome::Outcome;
use crate::progress::{ReadInStage, Stages};
use crate::record::kernel::KernelOptions;
use crate::record::{host_caches, variable};
use crate::sampled::{self, Symbols};
use crate::surroundings::{Surroundings, seconds};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use lineup_cache::CacheSpec;
use lineup_debuginfo::DebugInfo;
use lineup_find::{Again, Clock, CostSource, Findings, PageCosts, Recorded};
use lineup_recording::{Mode, ProgramExit, Reader};
use lineup_report::find::find_page;
use lineup_study::interrupt::Interrupts;
use lineup_study::page_costs;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject, in_words};
use lineup_study::run::Run;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Arguments of `lineup find`.
#[derive(Args)]
pub(crate) struct Options {
    /// Show findings whose upper bound is at least this percentage of all modelled stalls
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percentage)]
    least: f64,
    /// Rows shown of each table; findings are at most ten
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    top: usize,
    /// Cache to model, such as l1d=32K,8,64; the host's when not given
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    caches: Vec<CacheSpec>,
    /// Cycles for the first touch of a page, and for a miss of the first and of both levels of data TLBs; measured on
    /// this machine when not given
    #[arg(long, value_name = "TOUCH,FIRST,BOTH", value_parser = given_costs, conflicts_with = "kernel")]
    page_cycles: Option<PageCosts>,
    /// Memory, in MiB, for the windows of the run in which every access is kept: more gives more exact names, and
    /// takes longer
    #[arg(long, value_name = "MIB", default_value_t = WINDOW_MIB, value_parser = clap::value_parser!(u64).range(1..=1024))]
    windows: u64,
    /// Engine: the emulator, or on x86-64 the native engine, inside the program [default: native where possible, else
    /// the emulator, with the reason in a note]
    #[arg(long, value_name = "ENGINE", conflicts_with = "kernel")]
    engine: Option<EngineName>,
    /// Running process to look at, in short bursts at random times: Lineup attaches to it, and detaches after --seconds
    /// or with Ctrl-C
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff), conflicts_with_all = ["kernel", "command", "environment", "drive", "stdin", "max_seconds", "stop_after"])]
    pid: Option<u32>,
    /// Seconds for which the process of --pid is looked at
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds, requires = "pid")]
    seconds: Duration,
    /// Share of the processor time of the process of --pid that looking at it may take
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = percentage, requires = "pid")]
    overhead: f64,
    /// Do not run the program a second time, at its own speed, to see by the clock where its time goes
    #[arg(long)]
    no_clock: bool,
    /// Also write folded stacks, one line each with its modelled stalls, for viewers of flame graphs: data by type,
    /// member and function, code by function
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// Also write stalls as a profile that pprof and its viewers open
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Also write one HTML page: findings with line maps, stalls by type, member and function
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show what changed since these findings, which `lineup find --json` wrote
    #[arg(long, value_name = "OLD", conflicts_with = "json")]
    diff: Option<PathBuf>,
    /// Keep the recording in this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    environment: Vec<(OsString, OsString)>,
    /// Print JSON (schema lineup.find/1, of a perf.data lineup.samples/1); the program's output then goes to standard
    /// error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    symbols: Symbols,
    #[command(flatten)]
    limits: Surroundings,
    #[command(flatten)]
    kernel: KernelOptions,
    /// A perf.data instead of a program: lists the findings of its samples, and recordings that would show more of each
    #[arg(value_name = "PERF_DATA", conflicts_with_all = ["command", "kernel", "pid", "caches", "windows", "engine", "page_cycles", "no_clock", "folded", "pprof", "html", "diff", "out", "environment"])]
    samples: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["kernel", "samples", "pid"], value_name = "PROGRAM")]
    command: Vec<OsString>,
}

fn percentage(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.map(|percent| percent / 100.0).ok_or_else(|| "a number from 0 to 100".to_owned())
}

fn given_costs(text: &str) -> Result<PageCosts, String> {
    let costs: Option<Vec<u32>> = text.split(',').map(|one| one.parse().ok()).collect();
    match costs.as_deref() {
        Some([first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles]) => Ok(PageCosts {
            first_touch_cycles: *first_touch_cycles,
            dtlb_l1_cycles: *dtlb_l1_cycles,
            dtlb_l2_cycles: *dtlb_l2_cycles,
            source: CostSource::Given,
        }),
        _ => Err("three whole numbers of cycles, such as 1500,7,30".to_owned()),
    }
}

/// A run to examine.
pub(crate) struct FindRequest {
    /// The run itself.
    pub(crate) run: Run,
    /// The recording engine.
    pub(crate) engine: Engine,
    /// Caches to model; the host's when the list is empty.
    pub(crate) caches: Vec<CacheSpec>,
    /// Memory for windows of the run, in MiB.
    pub(crate) window_mib: u64,
    /// The recording's file.
    pub(crate) recording: PathBuf,
    /// It stays when the work is ended early.
    pub(crate) recording_stays: bool,
    /// The costs of pages; those of this machine when none are given.
    pub(crate) page_costs: Option<PageCosts>,
    /// The destination of the program's output.
    pub(crate) streams: Streams,
    /// The share of all modelled stalls that a finding gains at least.
    pub(crate) least_gain: f64,
    /// True when the clock samples the run as well.
    pub(crate) asks_clock: bool,
    /// The way in which the findings' next commands run the program.
    pub(crate) again: Again,
}

/// Memory for windows of the run when nothing else is asked for, in MiB.
pub(crate) const WINDOW_MIB: u64 = 16;

/// Runs `lineup find`.
pub(crate) fn run(options: &Options) -> Result<Outcome> {
    if let Some(samples) = &options.samples {
        return sampled::find(
            samples,
            &options.symbols,
            (options.least, options.top),
            options.json,
            &Stages::new(),
        );
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let old = options.diff.as_deref().map(diff::Old::read).transpose()?;
    let FindOutcome { findings, crash } = match (options.kernel.kernel.is_some(), options.pid) {
        (true, _) => FindOutcome { findings: kernel::find(options, &stages, &interrupts)?, crash: None },
        (_, Some(process)) => {
            FindOutcome { findings: live::find(options, process, &stages, &interrupts)?, crash: None }
        }
        (_, None) => of_program(options, &stages, &interrupts)?,
    };
    stages.end();
    write(options, &findings)?;
    let out = match (options.json, old) {
        (true, _) => serde_json::to_string_pretty(&findings)? + "\n",
        (false, Some(old)) => diff::text(&old, &findings, options.top, files::text_style()),
        (false, None) => text::text(&findings, options.top, files::text_style()),
    };
    files::print(&out)?;
    Ok(crash.map_or(Outcome::Done, |crash| Outcome::CutShort(anyhow!(crash))))
}

/// The findings, and the program's crash.
pub(crate) struct FindOutcome {
    pub(crate) findings: Findings,
    /// The program did not end by itself, or only started the one that is meant: why the findings are not of that.
    pub(crate) crash: Option<String>,
}

impl FindOutcome {
    /// The findings of a program that ended by itself.
    pub(crate) fn whole(self) -> Result<Findings> {
        match self.crash {
            Some(crash) => bail!(crash),
            None => Ok(self.findings),
        }
    }
}

fn of_program(options: &Options, stages: &Stages, interrupts: &Interrupts) -> Result<FindOutcome> {
    let scratch = interrupts.temporary_folder().context("making a temporary folder")?;
    let wanted = FindRequest {
        run: options.limits.run(&options.command, &options.environment, interrupts, stages)?,
        engine: options.engine.map_or(Engine::Fitting, Engine::from),
        caches: options.caches.clone(),
        window_mib: options.windows,
        page_costs: options.page_cycles,
        recording: options.out.clone().unwrap_or_else(|| scratch.path().join("find.rec")),
        recording_stays: options.out.is_some(),
        streams: if options.json { Streams::Shown } else { Streams::Ours },
        least_gain: options.least,
        asks_clock: !options.no_clock,
        again: again::again(
            &options.command,
            &options.environment,
            &options.limits,
            (options.engine, &options.caches),
        ),
    };
    let subject = Subject::load(&wanted.run, None)?;
    let recording = wanted.recording.clone();
    find(wanted, subject, stages, interrupts).map_err(|error| {
        let is_cut_short = interrupts.check().is_err() || error.is::<Unfinished>();
        if !(is_cut_short && options.out.is_none() && recording.exists()) {
            return error;
        }
        let _keeping = interrupts.keeping();
        with_kept(error, &recording)
    })
}

/// The recording does not have all.
#[derive(Debug, thiserror::Error)]
#[error("the recording could not be written to its end: {0}")]
struct Unfinished(String);

/// Takes the recording of a work that was ended early out of the temporary folder, and names it.
fn with_kept(error: anyhow::Error, recording: &Path) -> anyhow::Error {
    match kept(recording) {
        Ok(kept) => error.context(format!(
            "the work was ended early; what was recorded until then is kept in {0}, which `lineup code {0}` reads",
            kept.display()
        )),
        Err(cause) => error.context(format!("what was recorded until then cannot be kept here: {cause}")),
    }
}

/// Copies the recording to the current folder, under a name that nothing has there.
fn kept(recording: &Path) -> io::Result<PathBuf> {
    for number in 1.. {
        let name =
            if number == 1 { "lineup-find.rec".to_owned() } else { format!("lineup-find-{number}.rec") };
        match File::create_new(&name) {
            Ok(mut file) => {
                io::copy(&mut File::open(recording)?, &mut file)?;
                return Ok(name.into());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("one of the names is free")
}

/// Writes the files that are wanted.
fn write(options: &Options, findings: &Findings) -> Result<()> {
    let to = |file: &Path, bytes: Vec<u8>| {
        std::fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
    };
    if let Some(file) = &options.folded {
        to(file, folded::text(&findings.stacks).into_bytes())?;
    }
    if let Some(file) = &options.pprof {
        to(file, pprof::bytes(&findings.stacks))?;
    }
    if let Some(file) = &options.html {
        let words: Vec<String> =
            std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
        let title = findings.command.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        to(file, find_page(findings, title, &shell_words::join(&words)).into_bytes())?;
    }
    Ok(())
}

fn costs_of_this_machine() -> PageCosts {
    let page_costs::PageCosts { first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles } =
        page_costs::PageCosts::of_this_machine();
    PageCosts { first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles, source: CostSource::Measured }
}

/// Records a whole program, and works out the findings.
pub(crate) fn find(
    wanted: FindRequest,
    subject: Subject,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<FindOutcome> {
    let (recording, recording_stays) = (wanted.recording.clone(), wanted.recording_stays);
    let page_costs = wanted.page_costs.unwrap_or_else(|| {
        stages.stage("measuring what pages cost here");
        costs_of_this_machine()
    });
    let options = lineup_find::Options {
        page_costs,
        least_gain: wanted.least_gain,
        again: wanted.again.clone(),
        ..lineup_find::Options::default()
    };
    let timed = wanted.asks_clock.then(|| wanted.run.clone());
    let shares_output = wanted.streams == Streams::Ours;
    stages.stage(&format!("recording {}", subject.program().display()));
    let outcome = recorder::record(&request(wanted)?, &subject, interrupts)?;
    if let Some(why) = &outcome.failure {
        if recording_stays {
            outcome.require_whole(&recording)?;
        }
        return Err(Unfinished(why.clone()).into());
    }
    let crash = match outcome.ending.exit {
        exit @ ProgramExit::Signaled(_) if outcome.finished.stopped.is_none() => Some(format!(
            "{} {} while it was recorded; the findings are of what it did until then",
            subject.program().display(),
            in_words(exit)
        )),
        _ => None,
    };
    let clock = timed.map(|run| clock(&run, &subject, stages, interrupts)).transpose()?;
    let (clock, ends_line) = match clock {
        Some(Ok((clock, ends_line))) => (Some(Ok(clock)), ends_line),
        Some(Err(why)) => (Some(Err(why)), EndsLine::Unknown),
        None => (None, EndsLine::Unknown),
    };
    if shares_output && ends_line != EndsLine::Yes {
        // The report begins with a line of its own.
        files::print("\n")?;
    }
    let sampled = clock.as_ref().and_then(|one| one.as_ref().ok());
    let recorded = read(&recording, stages)?;
    let crash = crash.or_else(|| starter::only_starts(&recorded, &subject));
    let mut findings = work_out(&recorded, subject, sampled, &options, stages)?;
    findings.notes.extend(clock.and_then(Result::err));
    Ok(FindOutcome { findings, crash })
}

/// The end of the program's last output line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EndsLine {
    Yes,
    No,
    /// Lineup did not see the program's output.
    Unknown,
}

/// Runs the program at its own speed, and samples it; why not, where that cannot be.
fn clock(
    run: &Run,
    subject: &Subject,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<Result<(Clock, EndsLine), String>> {
    if !subject.debug().abi().machine.is_host() {
        return Ok(Err("the clock was not asked: the program is another machine's".to_owned()));
    }
    if run.drive.is_some() {
        return Ok(Err("the clock was not asked: the program is driven by a client".to_owned()));
    }
    stages.stage(&format!("running {} at its own speed", subject.program().display()));
    let sampled = lineup_study::clock::sample(run, interrupts);
    interrupts.check()?;
    let samples = match sampled {
        Ok(samples) => samples,
        Err(error) => return Ok(Err(format!("the clock was not asked: {error}"))),
    };
    let lost = samples.lost;
    let path = |file: PathBuf| file.to_string_lossy().into_owned();
    let places = samples.places.into_iter().map(|((file, offset), count)| (path(file), offset, count));
    let ends_line = if samples.prints_open_line { EndsLine::No } else { EndsLine::Yes };
    let clock = Clock { event: samples.event, places: places.collect(), outside: samples.outside, lost };
    Ok(Ok((clock, ends_line)))
}

fn request(wanted: FindRequest) -> Result<RecordRequest> {
    // The same misses whenever it runs.
    let run = Run { fixed_addresses: true, ..wanted.run };
    Ok(RecordRequest {
        caches: match wanted.caches.is_empty() {
            true => host_caches::read()?,
            false => wanted.caches,
        },
        window_bytes: wanted.window_mib << 20,
        output: wanted.recording,
        output_stays: wanted.recording_stays,
        streams: wanted.streams,
        ..RecordRequest::new(run, wanted.engine, Mode::WholeProgram)
    })
}

/// Works a recording out.
fn work_out(
    recorded: &Recorded,
    subject: Subject,
    clock: Option<&Clock>,
    options: &lineup_find::Options,
    stages: &Stages,
) -> Result<Findings> {
    // The path under which it is mapped: the user may have named a link.
    let program = subject.program().canonicalize().unwrap_or_else(|_| subject.program().to_owned());
    let program = program.to_string_lossy().into_owned();
    let mut known = subject.into_debug_infos();
    let images = recorded.images.iter().map(|image| Path::new(&image.path));
    let debug: Vec<Option<DebugInfo>> =
        images.map(|image| known.take_or(image, || explain::debug_info(image, stages))).collect();
    stages.stage("naming accesses and trying layouts");
    Ok(lineup_find::work_out(recorded, &debug, &program, clock, options)?)
}

/// Reads a recording of a whole program.
pub(crate) fn read(recording: &Path, stages: &Stages) -> Result<Recorded> {
    let name = || recording.display().to_string();
    stages.stage(&format!("reading {}", recording.display()));
    let file = lineup_mapping::open(recording).with_context(name)?;
    Ok(Recorded::read(Reader::new(BufReader::new(ReadInStage::new(file, stages))).with_context(name)?))
}
