//! Arguments of `lineup find`.

use crate::kernels::guest::KernelOptions;
use crate::options::engine::EngineName;
use crate::options::quantities::part;
use crate::options::surroundings::{Surroundings, seconds};
use crate::options::values::variable;
use crate::samples::findings::Symbols;
use crate::whole_program::findings::WINDOW_MIB;
use anyhow::Result;
use clap::Args;
use lineup_cache::CacheSpec;
use lineup_find::{CostSource, PageCosts};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `lineup find`.
#[derive(Args)]
pub(crate) struct Options {
    /// Show findings whose upper bound is at least this percentage of all modelled stalls
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = part)]
    pub(crate) least: f64,
    /// Rows shown of each table; findings are at most ten
    #[arg(long, value_name = "COUNT", default_value_t = 10)]
    pub(crate) top: usize,
    /// Cache to model, such as l1d=32K,8,64; the host's when not given
    #[arg(long = "cache", value_name = "LEVEL=SIZE,WAYS,LINE")]
    pub(crate) caches: Vec<CacheSpec>,
    /// Cycles for the first touch of a page, for a miss of the first and of both levels of data TLBs, and for the first
    /// touch of a huge page; measured on this machine when not given
    #[arg(long, value_name = "TOUCH,FIRST,BOTH[,HUGE]", value_parser = given_costs, conflicts_with = "kernel")]
    pub(crate) page_cycles: Option<PageCosts>,
    /// Memory, in MiB, for the windows of the run in which every access is kept: more gives more exact names, and
    /// takes longer
    #[arg(long, value_name = "MIB", default_value_t = WINDOW_MIB, value_parser = clap::value_parser!(u64).range(1..=1024))]
    pub(crate) windows: u64,
    /// Engine: the emulator, or on x86-64 the native engine, inside the program [default: native where possible, else
    /// the emulator, with the reason in a note]
    #[arg(long, value_name = "ENGINE", conflicts_with = "kernel")]
    pub(crate) engine: Option<EngineName>,
    /// Running process to look at, in short bursts at random times: Lineup attaches to it, and detaches after --seconds
    /// or with Ctrl-C
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..=0x7fff_ffff), conflicts_with_all = ["kernel", "command", "environment", "drive", "stdin", "max_seconds", "stop_after"])]
    pub(crate) pid: Option<u32>,
    /// Seconds for which the process of --pid is looked at
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds, requires = "pid", conflicts_with = "command")]
    pub(crate) seconds: Duration,
    /// Share of the processor time of the process of --pid that looking at it may take
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = part, requires = "pid", conflicts_with = "command")]
    pub(crate) overhead: f64,
    /// Do not run the program a second time, at its own speed, to see by the clock where its time goes
    #[arg(long)]
    pub(crate) no_clock: bool,
    /// Also write folded stacks, one line each with its modelled stalls, for viewers of flame graphs: data by type,
    /// member and function, code by function
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,
    /// Also write stalls as a profile that pprof and its viewers open
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,
    /// Also write one HTML page: findings with line maps, stalls by type, member and function
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Show what changed since these findings, which `lineup find --json` wrote
    #[arg(long, value_name = "OLD", conflicts_with = "json")]
    pub(crate) diff: Option<PathBuf>,
    /// Keep the recording in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Add a variable to the program's environment
    #[arg(long = "env", value_name = "KEY=VALUE", value_parser = variable)]
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Print JSON (schema lineup.find/1, of a perf.data lineup.samples/1, of a log lineup.replay/1); the program's output then goes to standard
    /// error
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) symbols: Symbols,
    #[command(flatten)]
    pub(crate) limits: Surroundings,
    #[command(flatten)]
    pub(crate) kernel: KernelOptions,
    /// A perf.data instead of a program: lists the findings of its samples, and recordings that would show more of each;
    /// or a log of `lineup record --whole-program --log`: counts it in the caches of --cache
    #[arg(value_name = "PERF_DATA", conflicts_with_all = ["command", "kernel", "pid", "windows", "engine", "page_cycles", "no_clock", "folded", "pprof", "html", "diff", "environment"])]
    pub(crate) file: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required_unless_present_any = ["kernel", "file", "pid"], value_name = "PROGRAM")]
    pub(crate) command: Vec<OsString>,
}

pub(crate) fn given_costs(text: &str) -> Result<PageCosts, String> {
    let costs: Option<Vec<u32>> = text.split(',').map(|one| one.parse().ok()).collect();
    match costs.as_deref() {
        Some([first_touch_cycles, dtlb_l1_cycles, dtlb_l2_cycles, of_huge_page @ ..])
            if of_huge_page.len() < 2 =>
        {
            Ok(PageCosts {
                first_touch_cycles: *first_touch_cycles,
                huge_first_touch_cycles: *of_huge_page
                    .first()
                    .unwrap_or(&PageCosts::default().huge_first_touch_cycles),
                dtlb_l1_cycles: *dtlb_l1_cycles,
                dtlb_l2_cycles: *dtlb_l2_cycles,
                source: CostSource::Given,
            })
        }
        _ => Err("three or four whole numbers of cycles, such as 1500,7,30 or 1500,7,30,300000".to_owned()),
    }
}
