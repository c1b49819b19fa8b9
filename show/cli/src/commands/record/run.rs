//! Runs `lineup record`.

use super::args::Options;
use super::report::{Report, UnfollowedProgram};
use super::{perf, sweep, view};
use crate::host::caches;
use crate::kernels::guest::{self, GuestRecordKind, GuestSettings};
use crate::options::engine::EngineName;
use crate::terminal::outcome::Outcome;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::whole_program::functions;
use anyhow::{Context, Result, bail};
use lineup_explain::process_summary::{self, ProcessSummary};
use lineup_explain::region_summary::{self, RegionSummary};
use lineup_model::figure;
use lineup_model::line::LineSize;
use lineup_recording::{Mode, ProgramExit, Reader, Summary, Unfollowed};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordOutcome, RecordRequest, Subject, in_words};
use lineup_study::run::Stopped;
use std::io::BufReader;
use std::path::Path;

/// Runs `lineup record`.
pub(crate) fn run(options: Options) -> Result<Outcome> {
    if !options.varied.is_empty() {
        return sweep::run::run(&options);
    }
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
    note_silence(&mut report, &options, (&subject, outcome.finished.stopped))?;
    let out = match options.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => view::text(&report, options.top, output::text_style()),
    };
    output::print(&out)?;
    outcome.require_whole(&request)?;
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
    let wanted = GuestSettings {
        regions: options.regions.iter().cloned().collect(),
        calls: options.calls,
        selection: options.selection(),
        warmup: options.warmup,
        caches: &options.caches,
        out: options.output(),
        what: match options.no_caches {
            true => GuestRecordKind::CallsWithoutCaches,
            false => GuestRecordKind::Calls,
        },
    };
    guest::run(&options.kernel, &wanted, options.json)
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
            true => caches::of_this_machine()?,
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

/// The sentence on a region of which no call came after the first ones that were to be left out.
fn left_out(warmup: u64) -> impl Fn(&RegionSummary) -> String {
    move |region| {
        format!(
            "no call of {} was recorded: the program made {}, and --warmup leaves the first {} out",
            region.name,
            figure::whole(region.seen.unwrap_or(0)),
            figure::whole(warmup)
        )
    }
}

/// Notes regions without a call, and those whose calls all came before the end of --warmup. When nothing was recorded,
/// there is nothing to sum up: that is an error.
fn note_silence(
    report: &mut Report,
    options: &Options,
    (subject, stopped): (&Subject, Option<Stopped>),
) -> Result<()> {
    let is_left_out = |region: &&RegionSummary| {
        options.warmup > 0 && region.recorded == 0 && region.seen.is_some_and(|seen| seen > 0)
    };
    let left_out: Vec<String> =
        report.regions.iter().filter(is_left_out).map(left_out(options.warmup)).collect();
    if !left_out.is_empty() && report.regions.iter().all(|region| region.recorded == 0) {
        bail!("{}; give --warmup fewer", left_out.join("; "));
    }
    report.notes.extend(left_out);
    let silent = report.regions.iter().filter(|region| region.seen == Some(0));
    let silent: Vec<&str> = silent.map(|region| region.name.as_str()).collect();
    if silent.is_empty() {
        return Ok(());
    }
    let message = match options.pid {
        Some(process) => {
            format!("process {process} made no call of {} while it was recorded", silent.join(", "))
        }
        None => recorder::without_call(&silent, subject, stopped, None),
    };
    if silent.len() == report.regions.len() {
        bail!(message);
    }
    report.notes.push(message);
    Ok(())
}
