//! Arguments of `lineup study`.

use super::code::args::CodeOptions;
use super::kernel::args::KernelSourceOptions;
use crate::options::advice::{AdviceOptions, ReportOptions};
use crate::options::engine::EngineName;
use crate::options::quantities::Percentage;
use crate::options::surroundings::Surroundings;
use anyhow::Result;
use clap::{ArgGroup, Args, ValueEnum};
use lineup_cache::CacheSpec;
use lineup_model::region::Region;
use lineup_report::study::{CODE_ORDER, LAYOUT, PLACEMENT, POOLS, PREFETCH};
use lineup_study::recorder::Engine;
use lineup_study::timing::Placing;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `lineup study`.
#[derive(Args, Clone)]
#[command(group = ArgGroup::new("lever").args(["code", "placement"]))]
pub(crate) struct Options {
    /// Function to study; with a weight (F=3), its lines are multiplied by it [default: those in which the best
    /// findings of `lineup find` stall]
    #[arg(long = "region", value_name = "F[=WEIGHT]")]
    pub(crate) regions: Vec<Region>,
    #[command(flatten)]
    pub(crate) kernel: KernelSourceOptions,
    #[command(flatten)]
    pub(crate) code: CodeOptions,
    #[command(flatten)]
    pub(crate) placement: PlacementOptions,
    #[command(flatten)]
    pub(crate) levers: LeverOptions,
    /// Folder with the program's sources; never written to
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) source: PathBuf,
    /// Shell command that builds the program in a copy of the source folder [default: that of CMake, Cargo, Meson or Ninja
    /// where files around the program show one, else make]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Program to study, a path inside the source folder, if the started program starts it in turn; found
    /// automatically unless two have functions of these names
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Folder for report.html, report.json and fix.patch; if it holds the results of an earlier study, the first free
    /// one of DIR-2, DIR-3 and so on
    #[arg(long, value_name = "DIR", default_value = "lineup-study")]
    pub(crate) out: PathBuf,
    /// Delete the results of an earlier study in the folder of --out, and write there
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Record at most this many calls of each region, spread over the run [default: 2000, fewer of calls that make
    /// millions of accesses]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) calls: Option<u64>,
    /// Record the first calls of each region instead of calls spread over the run
    #[arg(long)]
    pub(crate) first: bool,
    /// Leave out the first calls of each region
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) warmup: u64,
    /// Engine: the emulator, or on x86-64 the native engine, inside the program [default: native where possible, else
    /// the emulator, with the reason in a note]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<EngineName>,
    /// Run the program once per recording under the emulator, with everything instrumented
    #[arg(long)]
    pub(crate) one_pass: bool,
    #[command(flatten)]
    pub(crate) advice: AdviceOptions,
    #[command(flatten)]
    pub(crate) report: ReportOptions,
    /// Shell command that runs the program, such as its own tests, in a built copy; the whole program is watched for
    /// uses of types that forbid a move
    #[arg(long = "audit", value_name = "COMMAND")]
    pub(crate) audits: Vec<String>,
    /// Cache to model, such as l1d=32K,8,64; the host's when not given
    #[arg(long = "cache", value_name = "SPEC", value_parser = cache_spec)]
    pub(crate) caches: Vec<CacheSpec>,
    /// Bytes of other data between two calls, for the modelled misses
    #[arg(long = "pressure", value_name = "BYTES")]
    pub(crate) pressures: Vec<u64>,
    /// Also run the unchanged and each changed program with AddressSanitizer and UndefinedBehaviorSanitizer, as the study
    /// runs it and by the commands of --audit: a change with a new fault is refused. For builds by GCC
    #[arg(long, conflicts_with_all = ["kernel_source", "code", "placement"])]
    pub(crate) sanitize: bool,
    /// Also write lineup.lock, which `lineup layout --check` holds later builds against
    #[arg(long)]
    pub(crate) guard: bool,
    #[command(flatten)]
    pub(crate) surroundings: Surroundings,
    /// CPUs for the timed runs: auto (one per block in turn, if one is enough; for a patch that parts data of threads
    /// as apart), none, apart (each thread on one of its own), together (all threads on one, another for each block),
    /// or a list such as 0,2
    #[arg(long, value_name = "CPUS", default_value = "auto")]
    pub(crate) cpus: Placing,
    /// Stop timing after this many seconds of runs, starting and ending servers included
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    pub(crate) max_time: u64,
    /// Link both programs this many times more, with their objects in other orders and padding between them: each block
    /// of timed runs uses one link of each, and the interval covers the differences between links
    #[arg(long, value_name = "N", conflicts_with = "kernel_source", value_parser = clap::value_parser!(u64).range(2..=200))]
    pub(crate) links: Option<u64>,
    /// A change of time smaller than this is no gain, and no reason to reject a patch
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub(crate) margin: Percentage,
    /// Print the report as JSON (schema lineup.study/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// The program, a path inside the source folder, and its arguments; or a command that starts it. In an argument
    /// {threads} stands for the number of CPUs: a program that makes that many threads is timed with 1, 2 and so on
    /// when data of threads are parted
    #[arg(last = true, required_unless_present = "kernel_source", value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

impl Options {
    /// The recorder.
    pub(crate) fn engine(&self) -> Engine {
        self.engine.map_or(Engine::Fitting, Engine::from)
    }
}

/// Arguments that choose levers.
#[derive(Args, Clone)]
pub(crate) struct LeverOptions {
    /// Without --region: try this lever alone; may be repeated [default: all]
    #[arg(long, value_name = "LEVER", conflicts_with_all = ["regions", "lever", "kernel_source"])]
    pub(crate) only: Vec<Lever>,
    /// Without --region: leave this lever out; may be repeated
    #[arg(long, value_name = "LEVER", conflicts_with_all = ["regions", "lever", "kernel_source", "only"])]
    pub(crate) not: Vec<Lever>,
    /// Without --region: seconds for all levers together. A comparison takes a tenth of them at most, the layout is cut off
    /// when 60 % of them are used, and the other levers share the rest
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..=10_000_000), conflicts_with_all = ["regions", "lever", "kernel_source"])]
    pub(crate) budget: u64,
}

/// A kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Lever {
    /// Orders and other changes of members, in the sources
    Layout,
    /// Other allocators, pools and huge pages
    Placement,
    /// The program's code in another order
    Code,
    /// Objects in blocks of the program's own, without headers, in the sources
    Pools,
    /// Prefetches in loops that chase pointers, in the sources
    Prefetch,
}

impl Lever {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Lever::Layout => LAYOUT,
            Lever::Placement => PLACEMENT,
            Lever::Code => CODE_ORDER,
            Lever::Pools => POOLS,
            Lever::Prefetch => PREFETCH,
        }
    }
}

/// Arguments of `lineup study --placement`.
#[derive(Args, Clone)]
pub(crate) struct PlacementOptions {
    /// Try the program as it is under other allocators, settings of the C library and huge pages, without its sources;
    /// the best one is confirmed in runs that did not choose it
    #[arg(long, conflicts_with_all = ["kernel_source", "regions", "audits", "guard", "program", "links", "allow_growth", "order"])]
    pub(crate) placement: bool,
    /// With --placement: also try this shared library as the allocator; may be repeated
    #[arg(long = "allocator", value_name = "FILE", requires = "placement")]
    pub(crate) allocators: Vec<PathBuf>,
}

pub(crate) fn cache_spec(text: &str) -> Result<CacheSpec, String> {
    text.parse().map_err(|error| format!("{error}"))
}
