//! The request for a recording.

use super::recorded_code::RecordedCode;
use crate::process::child::{Finished, Streams};
use crate::process::run::Run;
use crate::recorder::recording_file::OutputError;
use lineup_cache::CacheSpec;
use lineup_model::region::Regions;
use lineup_recording::native::timed::Arm;
use lineup_recording::{Ending, Mode, Selection, Summary};
use std::path::PathBuf;
use std::time::Duration;

/// The engine that records a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Engine {
    /// The native engine where it can, else the emulator, with a note about the reason.
    Fitting,
    /// The emulator, with the recorder in it.
    Emulator,
    /// The native engine, in the program itself.
    Native,
}

/// Interventions before some of the timed calls, sampled at random.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interventions {
    /// One of these is chosen at random, with equal chances; no intervention is one of them.
    pub arms: Vec<Arm>,
    /// The average number of calls, on each thread, from one sampled call to the next.
    pub every: u64,
    /// After a sampled call the thread samples none for this multiple of the intervention's time; 0 when it does not
    /// wait.
    pub rest: u64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Bytes that are read to push other data out of the caches.
    pub swept_bytes: u64,
    /// Code that is flushed in place of the functions' own; empty where theirs is.
    pub flushed: Vec<RecordedCode>,
}

/// A recording to be made.
#[derive(Clone, Debug)]
pub struct RecordRequest {
    /// The run to record; its command names the file of the program that is started.
    pub run: Run,
    /// The engine that records it.
    pub engine: Engine,
    /// The process that already runs it; `None` when it is to be started.
    pub process: Option<u32>,
    /// Of a whole program that already runs: the share of its processor time that bursts may take.
    pub bursts: Option<f64>,
    /// The native engine records the programs that the program starts, too. The emulator always does.
    pub children: bool,
    /// Functions to record; empty in whole-program mode.
    pub regions: Regions,
    /// The mode of recording.
    pub mode: Mode,
    /// Calls recorded at most per region.
    pub max_calls: Option<u64>,
    /// The selection of these calls.
    pub selection: Selection,
    /// Calls recorded at most per region in a second, spread over all; the native engine's alone.
    pub calls_per_second: Option<u64>,
    /// The interventions before timed calls.
    pub interventions: Option<Interventions>,
    /// The program is ended when each region was called this often. The recording is then made in one pass, since a
    /// first run of a program that is ended does not report its executed code.
    pub stop_after: Option<u64>,
    /// Calls left out at the start of each region.
    pub warmup_calls: u64,
    /// Caches to model, in whole-program mode.
    pub caches: Vec<CacheSpec>,
    /// In whole-program mode, with the native engine: every block and access is kept, and nothing is counted.
    pub logs_all: bool,
    /// Bytes that windows of the run may take in the recorder's memory, in whole-program mode; 0 when none are kept,
    /// nor counts of each instruction.
    pub window_bytes: u64,
    /// True when windows of time are kept of a long call in a program with several threads. The windows are the same in
    /// all threads, so that the recording shows what they do together. Otherwise the call's first accesses are kept,
    /// the same in each recording of the program.
    pub keeps_windows: bool,
    /// The recording's path.
    pub output: PathBuf,
    /// The file stays when the work is ended early, and messages name it.
    pub output_stays: bool,
    /// The destination of the program's output in the recording run.
    pub streams: Streams,
}

impl RecordRequest {
    /// A program that is started, with all of its calls wanted and nothing of its output shown.
    pub fn new(run: Run, engine: Engine, mode: Mode) -> RecordRequest {
        RecordRequest {
            run,
            engine,
            process: None,
            bursts: None,
            children: false,
            regions: Regions::default(),
            mode,
            max_calls: None,
            selection: Selection::Spread,
            calls_per_second: None,
            interventions: None,
            stop_after: None,
            warmup_calls: 0,
            caches: Vec::new(),
            logs_all: false,
            window_bytes: 0,
            keeps_windows: false,
            output: PathBuf::new(),
            output_stays: true,
            streams: Streams::Captured,
        }
    }
}

/// The result of a recording.
pub struct RecordOutcome {
    /// The program's end.
    pub ending: Ending,
    /// The recorder's counts.
    pub summary: Summary,
    /// The recorder: the emulator's version text, or the native engine.
    pub recorder: String,
    /// The same: never [`Engine::Fitting`].
    pub engine: Engine,
    /// The number of the program's runs.
    pub runs: u32,
    /// The reason why not everything could be written: the file's content until then is whole.
    pub failure: Option<String>,
    /// The program's output, when it was captured, and the reason when it did not end by itself.
    pub finished: Finished,
    /// Notes for the user: functions that are also inlined, blocks not seen.
    pub notes: Vec<String>,
    /// The bursts of a running process, and what they cost it.
    pub bursts: Option<(BurstCounts, BurstCost)>,
}

/// Bursts that were read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BurstCounts {
    /// All.
    pub bursts: u64,
    /// Those whose accesses were kept.
    pub kept: u64,
    /// Those that had not ended when the process was left.
    pub unended: u64,
    /// Instructions in all of them.
    pub instructions: u64,
    /// Their accesses.
    pub accesses: u64,
    /// Threads that had any.
    pub threads: u64,
}

/// The cost of bursts.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BurstCost {
    /// Bursts that began.
    pub begun: u64,
    /// Those that ended.
    pub ended: u64,
    /// Those that a signal handler or code that cannot be translated ended.
    pub lost: u64,
    /// Those that took the longest time allowed.
    pub cut: u64,
    /// Processor time in bursts, with the time that the program's own work in them would have taken.
    pub in_bursts: Duration,
    /// The longest burst.
    pub longest_burst: Duration,
    /// Time that threads stood still for bursts to begin.
    pub stopped: Duration,
    /// The longest of these stops.
    pub longest_stop: Duration,
    /// Processor time of the process while it was watched.
    pub process_time: Duration,
    /// The time for which it was watched.
    pub watched: Duration,
    /// Bursts that were not begun, by reason.
    pub not_begun: Vec<(String, u64)>,
}

impl BurstCost {
    /// The whole cost.
    pub fn spent(&self) -> Duration {
        self.in_bursts + self.stopped
    }

    /// The share of the process's processor time.
    pub fn share(&self) -> f64 {
        self.spent().as_secs_f64() / self.process_time.as_secs_f64().max(1e-9)
    }
}

impl RecordOutcome {
    /// Refuses a recording in which calls are missing because they could not be written.
    ///
    /// # Errors
    /// When calls are missing; it holds the reason.
    pub fn require_whole(&self, request: &RecordRequest) -> Result<(), OutputError> {
        let Some(why) = self.failure.clone() else { return Ok(()) };
        Err(match request.output_stays {
            true => OutputError::Unfinished { output: request.output.display().to_string(), why },
            false => OutputError::NotKept { why },
        })
    }
}
