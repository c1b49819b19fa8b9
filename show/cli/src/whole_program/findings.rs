//! Records a whole program, and works out its findings.

use crate::host::caches;
use crate::recordings::debug_info;
use crate::terminal::output;
use crate::terminal::progress::Stages;
use crate::whole_program::counts::read;
use crate::whole_program::starter;
use anyhow::{Result, bail};
use lineup_cache::CacheSpec;
use lineup_debuginfo::DebugInfo;
use lineup_find::{Again, Clock, CostSource, Findings, PageCosts, Recorded, RunAlone};
use lineup_recording::{Mode, ProgramExit};
use lineup_study::interrupt::Interrupts;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::recorder::{self, Engine, RecordRequest, Subject, in_words};
use lineup_study::run::Run;
use lineup_study::{cycles, page_costs};
use std::path::{Path, PathBuf};

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

/// The recording does not have all.
#[derive(Debug, thiserror::Error)]
#[error("the recording could not be written to its end: {0}")]
pub(crate) struct Unfinished(String);

pub(crate) fn costs_of_this_machine() -> PageCosts {
    let costs = page_costs::PageCosts::of_this_machine();
    PageCosts {
        first_touch_cycles: costs.first_touch_cycles,
        huge_first_touch_cycles: costs.huge_first_touch_cycles,
        dtlb_l1_cycles: costs.dtlb_l1_cycles,
        dtlb_l2_cycles: costs.dtlb_l2_cycles,
        source: CostSource::Measured,
    }
}

/// Records a whole program, and works out the findings.
pub(crate) fn find(
    wanted: FindRequest,
    subject: Subject,
    stages: &Stages,
    interrupts: &Interrupts,
) -> Result<FindOutcome> {
    let recording = wanted.recording.clone();
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
    let request = request(wanted)?;
    let outcome = recorder::record(&request, &subject, interrupts)?;
    if let Some(why) = &outcome.failure {
        if request.output_stays {
            outcome.require_whole(&request)?;
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
        output::print("\n")?;
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
pub(crate) enum EndsLine {
    Yes,
    No,
    /// Lineup did not see the program's output.
    Unknown,
}

/// A run at the program's own speed, by its processor time.
pub(crate) fn run_alone(cpu_ns: u64, page_faults: u64) -> RunAlone {
    RunAlone { cycles: (cpu_ns as f64 * cycles::cycles_per_ns()) as u64, page_faults }
}

/// Runs the program at its own speed, and samples it; why not, where that cannot be.
pub(crate) fn clock(
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
    let alone = run_alone(samples.cpu_ns, samples.page_faults);
    let clock =
        Clock { event: samples.event, places: places.collect(), outside: samples.outside, lost, alone };
    Ok(Ok((clock, ends_line)))
}

pub(crate) fn request(wanted: FindRequest) -> Result<RecordRequest> {
    // The same misses whenever it runs.
    let run = Run { fixed_addresses: true, ..wanted.run };
    Ok(RecordRequest {
        caches: match wanted.caches.is_empty() {
            true => caches::of_this_machine()?,
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
pub(crate) fn work_out(
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
        images.map(|image| known.take_or(image, || debug_info::debug_info(image, stages))).collect();
    stages.stage("naming accesses and trying layouts");
    Ok(lineup_find::work_out(recorded, &debug, &program, clock, options)?)
}
