//! Arguments of `lineup record`.

use super::sweep::vary::Vary;
use crate::kernels::guest::KernelOptions;
use crate::kernels::summary_text;
use crate::options::engine::EngineName;
use crate::options::surroundings::Surroundings;
use crate::options::values::{line_size, variable};
use clap::Args;
use lineup_cache::CacheSpec;
use lineup_model::line::LineSize;
use lineup_model::region::Region;
use lineup_recording::Selection;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Arguments of `lineup record`.
#[derive(Args)]
#[command(after_help = summary_text::help_on_sets())]
pub(crate) struct Options {
    /// Function to record, or with --kernel a set of them, callees included; with a weight (F=3), advice multiplies
    /// its lines by it
    #[arg(long = "region", value_name = "F[=WEIGHT]", required_unless_present_any = ["whole_program", "perf"])]
    pub(crate) regions: Vec<Region>,
    /// Record at most this many calls of each region, spread over the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) calls: Option<u64>,
    /// With --calls: record the first ones instead
    #[arg(long, requires = "calls")]
    pub(crate) first: bool,
    /// With --calls: record 32 calls in a row at a time, so that those of threads that run at the same time overlap, as
    /// lineup threads needs it
    #[arg(long, requires = "calls", conflicts_with = "first")]
    pub(crate) in_runs: bool,
    /// Record at most this many calls of each region in a second, spread over all of them, natively: a server under
    /// load keeps nearly its own speed
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["calls", "whole_program", "one_pass", "kernel"])]
    pub(crate) calls_per_second: Option<u64>,
    /// Record at most this many calls of each region in each thread, natively: up to 32 in a row, at times that are the
    /// same for all threads and spread over the run
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["calls", "calls_per_second", "warmup", "whole_program", "one_pass", "kernel"])]
    pub(crate) calls_per_thread: Option<u64>,
    /// Leave out the first calls of each region
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warmup: u64,
    /// Engine: the emulator, or on x86-64 the native engine, inside the program [default: native where possible, else
    /// the emulator, with the reason in a note]
    #[arg(long, value_name = "ENGINE", conflicts_with = "kernel")]
    pub(crate) engine: Option<EngineName>,
    /// Program that has the functions, if the started program starts it in turn; found automatically unless two have
    /// functions of these names
    #[arg(long, value_name = "FILE", conflicts_with_all = ["whole_program", "kernel"])]
    pub(crate) program: Option<PathBuf>,
    /// With the native engine, also record the programs that the program starts, each process by itself, and with
    /// --whole-program those that are forked off; for calls the emulator always does so
    #[arg(long, conflicts_with_all = ["kernel", "one_pass", "pid", "log"])]
    pub(crate) children: bool,
    /// Running process to attach to; Lineup detaches when enough calls were made (--calls with --first,
    /// --stop-after), after --max-seconds, or with Ctrl-C
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff), conflicts_with_all = ["kernel", "whole_program", "one_pass", "program", "command", "environment", "drive", "stdin"])]
    pub(crate) pid: Option<u32>,
    /// File for the recording [default: lineup.rec; with --perf perf.data]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Run the program once, with everything instrumented: slower, for programs that cannot run twice alike
    #[arg(long, conflicts_with_all = ["whole_program", "kernel"])]
    pub(crate) one_pass: bool,
    /// Count instructions, accesses and modelled misses of every function instead of recording calls
    #[arg(long, conflicts_with_all = ["regions", "calls", "warmup", "kernel"])]
    pub(crate) whole_program: bool,
    /// With --whole-program: keep every instruction and every access of the run in this file, instead of counts;
    /// lineup find FILE counts them, in any caches
    #[arg(long, value_name = "FILE", requires = "whole_program", conflicts_with_all = ["caches", "out"])]
    pub(crate) log: Option<PathBuf>,
    /// Cache to model with --whole-program or --kernel, such as l1d=32K,8,64; the host's, or usual ones for a kernel,
    /// when not given
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    pub(crate) caches: Vec<CacheSpec>,
    /// Record the kernel once for each combination of these properties, into the folder --out (JSON: schema
    /// lineup.sweep/1): l1i=, l1d=, l2= or line= and values; --cache gives what is not varied, and unless --calls asks for
    /// more no call keeps its accesses
    #[arg(long = "vary", value_name = "l2=off,256K,1M", requires = "kernel", requires = "regions", conflicts_with_all = ["no_caches", "latency", "stream", "intervene"])]
    pub(crate) varied: Vec<Vary>,
    /// Model no caches: calls, instructions, lines and accesses are recorded near the guest's own speed; misses and
    /// stalls are not known
    #[arg(long, requires = "kernel", conflicts_with_all = ["caches", "latency", "stream", "intervene"])]
    pub(crate) no_caches: bool,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable, conflicts_with = "kernel")]
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Cache-line size of the summary: 32, 64 or 128
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = line_size)]
    pub(crate) line_size: LineSize,
    /// Functions shown with --whole-program, most instructions first
    #[arg(long, value_name = "COUNT", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print the summary as JSON (schema lineup.record/1); the program's output then goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) limits: Surroundings,
    #[command(flatten)]
    pub(crate) perf: PerfOptions,
    #[command(flatten)]
    pub(crate) kernel: KernelOptions,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["kernel", "pid"], value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

impl Options {
    /// The file that is written.
    pub(super) fn output(&self) -> &Path {
        let usual = if self.perf.is_wanted() { FILE } else { "lineup.rec" };
        self.log.as_ref().or(self.out.as_ref()).map_or(Path::new(usual), PathBuf::as_path)
    }

    /// True for options that only the native engine supports.
    pub(crate) fn is_native(&self) -> bool {
        self.children || self.calls_per_second.is_some() || self.calls_per_thread.is_some()
    }

    pub(crate) fn selection(&self) -> Selection {
        match (self.first, self.in_runs) {
            _ if self.calls_per_thread.is_some() => Selection::Threads,
            (true, _) => Selection::First,
            (false, true) => Selection::Runs,
            (false, false) => Selection::Spread,
        }
    }
}

/// The default file.
pub(crate) const FILE: &str = "perf.data";

/// Arguments of `lineup record --perf`.
#[derive(Args)]
pub(crate) struct PerfOptions {
    /// Sample the program at its own speed instead, and all that it starts, into a perf.data: accesses to memory where
    /// the processor samples them (PEBS of Intel, IBS of AMD), else cycles, else the clock; lineup explain reads it
    #[arg(long, conflicts_with_all = ["regions", "calls", "first", "in_runs", "calls_per_second", "calls_per_thread", "warmup", "engine", "program", "children", "one_pass", "whole_program", "log", "caches", "no_caches", "line_size", "top", "kernel", "stop_after"])]
    pub(crate) perf: bool,
    /// With --perf: samples of each task in a second, as far as the kernel allows
    #[arg(long, value_name = "N", default_value_t = 4000, requires = "perf", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) samples_per_second: u64,
    /// With --perf: leave out loads that took fewer cycles, where the processor can
    #[arg(long, value_name = "CYCLES", default_value_t = 30, requires = "perf")]
    pub(crate) least_cycles: u32,
}

impl PerfOptions {
    pub(crate) fn is_wanted(&self) -> bool {
        self.perf
    }
}
