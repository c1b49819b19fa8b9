//! Samples of a program that runs at its own speed, as a perf.data: of its memory where the processor samples that,
//! else of cycles, else of the clock.

pub mod clock;
pub mod counters;
pub(crate) mod events;
mod open_events;
pub mod other_caches;
mod present_mappings;
mod record_writer;
mod redirect;

use crate::error::{Doing, Error, Result};
use crate::perf::clock::processors_in;
use crate::process::child::LOOK;
use crate::process::child::{Finished, Streams, Waiting};
use crate::process::interrupt::Interrupts;
use crate::process::run::Run;
use crate::recorder::recording_file;
use lineup_samples::container::About;
pub use open_events::{Basis, UnavailableEvent};
use open_events::{OpenEvents, Target, Terms};
use record_writer::{Counts, RecordWriter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Access, access};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// The first bytes of a perf.data.
const MAGIC: &[u8] = b"PERFILE2";
/// The most listings of a process's threads; listing stops earlier when one shows no new thread.
const LISTINGS: usize = 8;

/// The wanted samples.
#[derive(Clone, Debug)]
pub struct PerfRequest {
    /// The program.
    pub run: Run,
    /// A process that runs already, and is left running; `None` to start the program.
    pub process: Option<u32>,
    /// The file.
    pub output: PathBuf,
    /// Samples of each task in a second, as far as the kernel allows.
    pub samples_per_second: u64,
    /// Loads of fewer cycles are left out, where the processor can.
    pub least_cycles: u32,
    /// The destination of the program's output.
    pub streams: Streams,
}

/// An event, and how many samples it gave.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampledBy {
    /// perf's name for it.
    pub name: String,
    /// The basis of its samples.
    pub basis: Basis,
    /// The number of samples.
    pub samples: u64,
    /// False when the kernel itself was left out.
    pub sees_kernel: bool,
}

/// The sampling's result.
pub struct PerfOutcome {
    /// The events.
    pub events: Vec<SampledBy>,
    /// Events that would have given more, and the reasons why they were not available.
    pub tried: Vec<UnavailableEvent>,
    /// Records for which the kernel had no room.
    pub lost_records: u64,
    /// Samples for which the processor had no room.
    pub lost_samples: u64,
    /// The number of times the kernel stopped sampling for a while.
    pub throttled: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// From its begin to its end, or to when it was left.
    pub wall_ns: u64,
    /// The program's end; `None` for a process that ran already.
    pub finished: Option<Finished>,
    /// False for a process that was left running.
    pub has_ended: bool,
}

/// Samples a program, or a process that runs, and writes the samples into a file.
///
/// # Errors
/// When the program cannot be started, the kernel takes no samples at all, or the file cannot be written.
pub fn record(request: &PerfRequest, interrupts: &Interrupts) -> Result<PerfOutcome> {
    let program = request.run.command.first().map(Path::new);
    recording_file::check_kind(&request.output, program, MAGIC)?;
    match request.process {
        None => of_program(request, interrupts),
        Some(process) => of_process(request, process, interrupts),
    }
}

fn of_program(request: &PerfRequest, interrupts: &Interrupts) -> Result<PerfOutcome> {
    if let Some(program) = request.run.command.first() {
        // Before an older file is given up for a new one.
        access(program, Access::EXEC_OK).doing(format!("starting {}", program.display()))?;
    }
    let waiting = Waiting::start(&request.run, request.streams, interrupts)?;
    let (opened, mut outcome) = open(request, &Target::Child(waiting.pid()))?;
    let known = present_mappings::kernel(opened.maker());
    let begun = Instant::now();
    let finished = write_while(request, opened, &known, &mut outcome, || waiting.run())?;
    if let Err(Error::Start(_)) = &finished {
        // It holds nothing; that it cannot be removed is no worse.
        let _ = fs::remove_file(&request.output);
    }
    outcome.wall_ns = nanoseconds(begun);
    outcome.finished = Some(finished?);
    Ok(outcome)
}

fn of_process(request: &PerfRequest, process: u32, interrupts: &Interrupts) -> Result<PerfOutcome> {
    let doing = || format!("process {process}");
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| Error::argument(doing(), "there is no such process"))?;
    let running = pidfd_open(pid, PidfdFlags::empty()).doing(doing())?;
    let threads = threads(process).doing(doing())?;
    let (opened, mut outcome) = open(request, &Target::Threads(threads.clone()))?;
    let mut known = present_mappings::kernel(opened.maker());
    let with_data = opened.events.iter().any(|event| event.basis == Basis::Memory || event.has_registers);
    known.extend(present_mappings::process(pid, &threads, opened.maker(), with_data));
    let begun = Instant::now();
    let is_late = || request.run.max_time.is_some_and(|most| begun.elapsed() >= most);
    let has_ended = write_while(request, opened, &known, &mut outcome, || {
        let look = Timespec::try_from(LOOK).ok();
        while !is_late() && !interrupts.take() {
            match poll(&mut [PollFd::new(&running, PollFlags::IN)], look.as_ref()) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(true),
                Err(error) => return Err(error).doing(doing()),
            }
        }
        Ok(false)
    })??;
    outcome.has_ended = has_ended;
    outcome.wall_ns = nanoseconds(begun);
    Ok(outcome)
}

fn nanoseconds(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// The threads of a process: listed until there are no new ones, since one that was not seen may begin another.
fn threads(process: u32) -> io::Result<Vec<Pid>> {
    let mut all = BTreeSet::new();
    for _ in 0..LISTINGS {
        let known = all.len();
        for entry in fs::read_dir(format!("/proc/{process}/task"))? {
            all.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
        }
        if all.len() == known {
            break;
        }
    }
    Ok(all.into_iter().filter_map(Pid::from_raw).collect())
}

fn open(request: &PerfRequest, target: &Target) -> Result<(OpenEvents, PerfOutcome)> {
    let setting = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let most = setting("/proc/sys/kernel/perf_event_max_sample_rate").parse().unwrap_or(u64::MAX);
    let cpus = processors_in(&setting("/sys/devices/system/cpu/online"));
    let terms = Terms::new(request.samples_per_second.min(most).max(1), cpus);
    let memory = events::memory(Path::new(events::DEVICES), request.least_cycles);
    let mut tried = Vec::new();
    let opened = open_events::open(memory, target, &terms, &mut tried);
    let opened = opened.doing("opening an event to sample by (see kernel.perf_event_paranoid)")?;
    let events = opened.events.iter().map(|event| SampledBy {
        name: event.description.name.clone(),
        basis: event.basis,
        samples: 0,
        sees_kernel: event.sees_kernel,
    });
    let outcome = PerfOutcome {
        events: events.collect(),
        tried,
        lost_records: 0,
        lost_samples: 0,
        throttled: 0,
        file_bytes: 0,
        wall_ns: 0,
        finished: None,
        has_ended: true,
    };
    Ok((opened, outcome))
}

/// Writes the file while `work` runs; returns its result when the file is whole.
fn write_while<T>(
    request: &PerfRequest,
    opened: OpenEvents,
    known: &[lineup_samples::synthetic_records::SyntheticRecord],
    outcome: &mut PerfOutcome,
    doing: impl FnOnce() -> Result<T>,
) -> Result<Result<T>> {
    let name = || format!("writing {}", request.output.display());
    let file = File::create(&request.output).doing(name())?;
    let writing = RecordWriter::begin(file, opened, known).doing(name())?;
    let (is_over, about) = (AtomicBool::new(false), about());
    let (done, written) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| writing.run(&is_over, &about));
        let done = doing();
        is_over.store(true, Ordering::Release);
        (done, writer.join().unwrap_or_else(|_| Err(io::Error::other("what writes it failed"))))
    });
    let (counts, file) = written.doing(name())?;
    outcome.file_bytes = file.metadata().doing(name())?.len();
    outcome.take(counts);
    Ok(done)
}

impl PerfOutcome {
    fn take(&mut self, counts: Counts) {
        self.events.iter_mut().zip(counts.samples).for_each(|(event, samples)| event.samples = samples);
        self.lost_records = counts.lost_records;
        self.lost_samples = counts.lost_samples;
        self.throttled = counts.throttled;
    }
}

/// The machine, and the command.
fn about() -> About {
    let text = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let text = |name: &str| text(name).map(|text| text.trim_end().to_owned());
    let count = |path: &str| {
        let list = fs::read_to_string(path).ok()?;
        u32::try_from(processors_in(list.trim()).len()).ok()
    };
    let cpus = count("/sys/devices/system/cpu/possible").zip(count("/sys/devices/system/cpu/online"));
    let own = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    About {
        host_name: text("hostname"),
        release: text("osrelease"),
        architecture: Some(std::env::consts::ARCH.to_owned()),
        cpus,
        command_line: own.collect(),
        processor: None,
        build_ids: Vec::new(),
    }
}
