//! `lineup record`: calls of chosen functions, or the whole program, as a recording.

pub(crate) mod functions;
pub(crate) mod host_caches;
pub(crate) mod kernel;
mod perf;
pub(crate) mod replay;
mod text;

use crate::advice_options::line_size;
use crate::engine_name::EngineName;
use crate::files;
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::surroundings::Surroundings;
use anyhow::{Context, Result, bail};
use clap::Args;
use functions::FunctionProfile;
use kernel::KernelOptions;
use lineup_cache::CacheSpec;
use lineup_explain::process_summary::{self, ProcessSummary};
use lineup_explain::region_summary::{self, RegionSummary};
use lineup_model::line::LineSize;
use lineup_model::region::Region;
use lineup_recording::{Mode, ProgramExit, Reader, Selection, Summary, Unfollowed};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordOutcome, RecordRequest, Subject, in_words};
use perf::PerfOptions;
use serde::Serialize;
use std::ffi::OsString;
use std::io::BufReader;
use std::path::{Path, PathBuf};

/// Arguments of `lineup record`.
#[derive(Args)]
#[command(after_help = kernel::help_on_sets())]
pub(crate) struct Options {
    /// Function to record, or with --kernel a set of them, callees included; with a weight (F=3), advice multiplies
    /// its lines by it
    #[arg(long = "region", value_name = "F[=WEIGHT]", required_unless_present_any = ["whole_program", "perf"])]
    regions: Vec<Region>,
    /// Record at most this many calls of each region, spread over the run
    #[arg(long, value_name = "N")]
    calls: Option<u64>,
    /// With --calls: record the first ones instead
    #[arg(long, requires = "calls")]
    first: bool,
    /// With --calls: record 32 calls in a row at a time, so that those of threads that run at the same time overlap, as
    /// lineup threads needs it
    #[arg(long, requires = "calls", conflicts_with = "first")]
    in_runs: bool,
    /// Record at most this many calls of each region in a second, spread over all of them, natively: a server under
    /// load keeps nearly its own speed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["calls", "whole_program", "one_pass", "kernel"])]
    calls_per_second: Option<u64>,
    /// Record at most this many calls of each region in each thread, natively: up to 32 in a row, at times that are the
    /// same for all threads and spread over the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["calls", "calls_per_second", "warmup", "whole_program", "one_pass", "kernel"])]
    calls_per_thread: Option<u64>,
    /// Leave out the first calls of each region
    #[arg(long, value_name = "N", default_value_t = 0)]
    warmup: u64,
    /// Engine: the emulator, or on x86-64 the native engine, inside the program [default: native where possible, else
    /// the emulator, with the reason in a note]
    #[arg(long, value_name = "ENGINE", conflicts_with = "kernel")]
    engine: Option<EngineName>,
    /// Program that has the functions, if the started program starts it in turn; found automatically unless two have
    /// functions of these names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["whole_program", "kernel"])]
    program: Option<PathBuf>,
    /// With the native engine, also record the programs that the program starts, each process by itself, and with
    /// --whole-program those that are forked off; for calls the emulator always does so
    #[arg(long, conflicts_with_all = ["kernel", "one_pass", "pid", "log"])]
    children: bool,
    /// Running process to attach to; Lineup detaches when enough calls were made (--calls with --first,
    /// --stop-after), after --max-seconds, or with Ctrl-C
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff), conflicts_with_all = ["kernel", "whole_program", "one_pass", "program", "command", "environment", "drive", "stdin"])]
    pid: Option<u32>,
    /// File for the recording [default: lineup.rec; with --perf perf.data]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Run the program once, with everything instrumented: slower, for programs that cannot run twice alike
    #[arg(long, conflicts_with_all = ["whole_program", "kernel"])]
    one_pass: bool,
    /// Count instructions, accesses and modelled misses of every function instead of recording calls
    #[arg(long, conflicts_with_all = ["regions", "calls", "warmup", "kernel"])]
    whole_program: bool,
    /// With --whole-program: keep every instruction and every access of the run in this file, instead of counts;
    /// lineup replay counts them, in any caches
    #[arg(long, value_name = "FILE", requires = "whole_program", conflicts_with_all = ["caches", "out"])]
    log: Option<PathBuf>,
    /// Cache to model with --whole-program or --kernel, such as l1d=32K,8,64; the host's, or usual ones for a kernel,
    /// when not given
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    caches: Vec<CacheSpec>,
    /// Model no caches: calls, instructions, lines and accesses are recorded near the guest's own speed; misses and
    /// stalls are not known
    #[arg(long, requires = "kernel", conflicts_with_all = ["caches", "latency", "stream", "intervene"])]
    no_caches: bool,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable, conflicts_with = "kernel")]
    environment: Vec<(OsString, OsString)>,
    /// Cache-line size of the summary: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    line_size: LineSize,
    /// Functions shown with --whole-program, most instructions first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    top: usize,
    /// Print the summary as JSON (schema lineup.record/1); the program's output then goes to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    limits: Surroundings,
    #[command(flatten)]
    perf: PerfOptions,
    #[command(flatten)]
    kernel: KernelOptions,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["kernel", "pid"], value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// The recording, as shown.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// The recording.
    file: String,
    /// The recorder.
    recorder: String,
    /// The program's end.
    exit_status: Option<i32>,
    signal: Option<i32>,
    /// Instructions of the whole program, when they were counted.
    total_instructions: Option<u64>,
    threads: u64,
    /// Processes forked off, recorded as well.
    forks: u64,
    /// All processes, in order of their start.
    processes: Vec<ProcessSummary>,
    /// The number of the program's runs for the recording.
    runs: u32,
    /// Programs started by `exec` whose work is not recorded, each once.
    unfollowed: Vec<UnfollowedProgram>,
    /// The reason why not everything could be written.
    failure: Option<String>,
    line_bytes: u64,
    caches: Vec<String>,
    regions: Vec<RegionSummary>,
    functions: Vec<FunctionProfile>,
    notes: Vec<String>,
}

/// A program that ran unrecorded.
#[derive(Serialize)]
struct UnfollowedProgram {
    program: String,
    /// The reason, as in "it is not recorded: it …".
    why: String,
    times: u64,
}

/// Runs `lineup record`.
pub(crate) fn run(options: Options) -> Result<Outcome> {
    if options.kernel.kernel.is_some() {
        return run_kernel(&options);
    }
    if options.perf.is_wanted() {
        return perf::run(&options);
    }
    if !options.caches.is_empty() && !options.whole_program {
        bail!("--cache goes with --whole-program or --kernel");
    }
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    let request = request(&options, &interrupts, &stages)?;
    let subject = Subject::load(&request.run, options.program.as_deref())?;
    stages.stage(&doing(&request));
    let outcome = recorder::record(&request, &subject, &interrupts)?;
    stages.stage("summing up the recording");
    let mut report = report(&request, &outcome, options.line_size, &stages)?;
    stages.end();
    note_silence(&mut report, options.pid)?;
    let out = match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => text::text(&report, options.top, files::text_style()),
    };
    files::print(&out)?;
    outcome.require_whole(&request.output)?;
    match outcome.ending.exit {
        ProgramExit::Exited(_) | ProgramExit::Left => Ok(Outcome::Done),
        ProgramExit::Signaled(_) if outcome.finished.stopped.is_some() => Ok(Outcome::Done),
        exit @ ProgramExit::Signaled(_) => bail!(
            "the program {}; what was recorded until then is kept in {}{}",
            in_words(exit),
            request.output.display(),
            if report.regions.iter().any(|region| region.recorded > 0) {
                ", and `lineup explain` can read it"
            } else {
                ""
            }
        ),
    }
}

fn run_kernel(options: &Options) -> Result<Outcome> {
    if !options.command.is_empty() {
        bail!("a guest runs its workload: give the command with --workload instead of after --");
    }
    let wanted = kernel::GuestSettings {
        regions: options.regions.iter().cloned().collect(),
        calls: options.calls,
        selection: options.selection(),
        warmup: options.warmup,
        caches: &options.caches,
        out: options.output(),
        what: match options.no_caches {
            true => kernel::GuestRecordKind::CallsWithoutCaches,
            false => kernel::GuestRecordKind::Calls,
        },
    };
    kernel::run(&options.kernel, &wanted, options.json)
}

impl Options {
    /// The file that is written.
    fn output(&self) -> &Path {
        let usual = if self.perf.is_wanted() { perf::FILE } else { "lineup.rec" };
        self.log.as_ref().or(self.out.as_ref()).map_or(Path::new(usual), PathBuf::as_path)
    }

    /// True for options that only the native engine supports.
    fn is_native(&self) -> bool {
        self.children || self.calls_per_second.is_some() || self.calls_per_thread.is_some()
    }

    fn selection(&self) -> Selection {
        match (self.first, self.in_runs) {
            _ if self.calls_per_thread.is_some() => Selection::Threads,
            (true, _) => Selection::First,
            (false, true) => Selection::Runs,
            (false, false) => Selection::Spread,
        }
    }
}

fn request(options: &Options, interrupts: &Interrupts, stages: &Stages) -> Result<RecordRequest> {
    let run = match options.pid {
        Some(process) => options.limits.of_process(process)?,
        None => options.limits.run(&options.command, &options.environment, interrupts, stages)?,
    };
    Ok(RecordRequest {
        run,
        engine: match (options.engine, options.pid) {
            (Some(EngineName::Qemu), _) if options.log.is_some() => {
                bail!("--log is the native engine's; leave --engine qemu out")
            }
            (_, None) if options.log.is_some() => Engine::Native,
            (Some(EngineName::Qemu), Some(_)) => {
                bail!("the emulator attaches to no process; leave --engine qemu out")
            }
            (Some(EngineName::Qemu), _) if options.children && options.whole_program => {
                bail!("the emulator counts the first process alone; leave --engine qemu or --children out")
            }
            (Some(EngineName::Qemu), _) if options.calls_per_second.is_some() => {
                bail!("--calls-per-second is the native engine's; leave --engine qemu out")
            }
            (Some(EngineName::Qemu), _) if options.calls_per_thread.is_some() => {
                bail!("--calls-per-thread is the native engine's; leave --engine qemu out")
            }
            (Some(name), _) => name.into(),
            (None, Some(_)) => Engine::Native,
            (None, None) if options.is_native() => Engine::Native,
            (None, None) => Engine::Fitting,
        },
        process: options.pid,
        bursts: None,
        children: options.children,
        regions: options.regions.iter().cloned().collect(),
        mode: match (options.whole_program, options.one_pass) {
            (true, _) => Mode::WholeProgram,
            (false, true) => Mode::OnePass,
            (false, false) => Mode::TwoPass,
        },
        max_calls: options.calls.or(options.calls_per_thread),
        selection: options.selection(),
        calls_per_second: options.calls_per_second,
        interventions: None,
        // A process that is left running is left as soon as there is nothing more to record.
        stop_after: options.limits.stop_after().or_else(|| {
            let first = options.calls.filter(|_| options.first && options.pid.is_some());
            first.map(|calls| calls.saturating_add(options.warmup))
        }),
        warmup_calls: options.warmup,
        caches: match options.whole_program && options.caches.is_empty() && options.log.is_none() {
            true => host_caches::read()?,
            false => options.caches.clone(),
        },
        logs_all: options.log.is_some(),
        window_bytes: 0,
        keeps_windows: true,
        output: options.output().to_owned(),
        output_stays: true,
        streams: if options.json { Streams::Shown } else { Streams::Ours },
    })
}

/// `KEY=VALUE`.
pub(crate) fn variable(text: &str) -> Result<(OsString, OsString), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err(format!("{text}: write KEY=VALUE")),
    }
}

/// The stage's name.
fn doing(request: &RecordRequest) -> String {
    let program = request.run.command.first().map_or(String::new(), |program| program.display().to_string());
    if let Some(process) = request.process {
        return format!("recording process {process}, {program}");
    }
    match request.mode {
        _ if request.engine == Engine::Native => format!("recording {program} with the native engine"),
        _ if request.engine == Engine::Fitting => format!("recording {program}"),
        Mode::TwoPass => format!("recording {program}: runs twice"),
        Mode::OnePass | Mode::WholeProgram | Mode::System => format!("recording {program}"),
    }
}

fn report(
    request: &RecordRequest,
    outcome: &RecordOutcome,
    line: LineSize,
    stages: &Stages,
) -> Result<Report> {
    let (exit_status, signal) = match outcome.ending.exit {
        ProgramExit::Exited(status) => (Some(status), None),
        ProgramExit::Signaled(signal) => (None, Some(signal)),
        ProgramExit::Left => (None, None),
    };
    let summary = &outcome.summary;
    let mut notes = outcome.notes.clone();
    notes.extend(each_once(&summary.notes));
    Ok(Report {
        schema: "lineup.record/1",
        file: request.output.display().to_string(),
        recorder: outcome.recorder.clone(),
        exit_status,
        signal,
        total_instructions: outcome.ending.total_instructions.or(summary.total_instructions),
        threads: summary.threads,
        forks: summary.forks,
        runs: outcome.runs,
        processes: processes(&request.output)?,
        unfollowed: unfollowed(summary),
        failure: outcome.failure.clone(),
        line_bytes: line.bytes(),
        caches: request.caches.iter().map(ToString::to_string).collect(),
        regions: summarise(&request.output, line)?,
        functions: functions::profile(&request.output, stages)?,
        notes,
    })
}

/// Notes that several processes have alike, each once.
fn each_once(notes: &[String]) -> Vec<String> {
    let mut counted: Vec<(&String, u64)> = Vec::new();
    for note in notes {
        match counted.iter_mut().find(|(other, _)| *other == note) {
            Some((_, times)) => *times += 1,
            None => counted.push((note, 1)),
        }
    }
    let text = |(note, times): (&String, u64)| match times {
        1 => note.clone(),
        times => format!("{note} ({times} times)"),
    };
    counted.into_iter().map(text).collect()
}

/// The programs that ran unrecorded, each once.
fn unfollowed(summary: &Summary) -> Vec<UnfollowedProgram> {
    let one = |(one, times): (&Unfollowed, u64)| UnfollowedProgram {
        program: one.program.clone(),
        why: one.why.clone(),
        times,
    };
    summary.unfollowed_each_once().into_iter().map(one).collect()
}

/// The recording's processes, with their counts.
fn processes(recording: &Path) -> Result<Vec<ProcessSummary>> {
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    Ok(process_summary::summarise(Reader::new(BufReader::new(file))?.without_log()))
}

/// The summary of the recorded calls, by region.
fn summarise(recording: &Path, line: LineSize) -> Result<Vec<RegionSummary>> {
    let file = lineup_mapping::open(recording).with_context(|| recording.display().to_string())?;
    Ok(region_summary::summarise(Reader::new(BufReader::new(file))?.without_log(), line))
}

/// Notes regions without a call. When no region was called, there is nothing to sum up: that is an error.
fn note_silence(report: &mut Report, process: Option<u32>) -> Result<()> {
    let silent = report.regions.iter().filter(|region| region.seen == Some(0));
    let silent: Vec<&str> = silent.map(|region| region.name.as_str()).collect();
    if silent.is_empty() {
        return Ok(());
    }
    let names = silent.join(", ");
    let message = match process {
        Some(process) => format!("process {process} made no call of {names} while it was recorded"),
        None => format!("the program ended without a call of {names}; do its arguments lead there?"),
    };
    if silent.len() == report.regions.len() {
        bail!(message);
    }
    report.notes.push(message);
    Ok(())
}
