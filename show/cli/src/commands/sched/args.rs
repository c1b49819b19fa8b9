//! Arguments of `lineup sched`.

use anyhow::Result;
use lineup_sched::scenario::{Group, Mechanism, parse_domains, parse_duration_ns, parse_group};
use lineup_sched::sweep::Axis;
use lineup_sched::weights::Resolution;
use std::path::PathBuf;

/// Simulates SMP group-fair scheduling, the 2011 scheduler with each mechanism switchable, and compares
/// variants over the same seeds: busy and idle time, work missed while CPUs idled, fairness, latency, balancing.
#[derive(clap::Args)]
pub(crate) struct Sched {
    /// Number of CPUs.
    #[arg(long)]
    pub(crate) cpus: Option<usize>,
    /// CPUs in a domain of each level, smallest first: threads of a core, shared cache, package.
    #[arg(long, value_parser = |text: &str| parse_domains(text))]
    pub(crate) domains: Option<Domains>,
    /// Whether the CPUs of a smallest domain are threads of one core; by default if they are two.
    #[arg(long)]
    pub(crate) smt: Option<bool>,
    /// A group: NAME:shares=2,tasks=50,busy=~100ms,sleep=~100ms[,clock=wall|cpu|timetable][,nice=N][,parent=NAME].
    /// `~100ms` is uniform from 0 to 200 ms. Without busy and sleep its tasks never sleep.
    #[arg(long = "group", value_parser = |text: &str| parse_group(text))]
    pub(crate) groups: Vec<Group>,
    /// A scenario file (TOML).
    #[arg(long, conflicts_with_all = ["cpus", "groups", "from_cgroup"])]
    pub(crate) scenario: Option<PathBuf>,
    /// Read groups, weights and what their threads do from a live control group and those below it.
    #[arg(long, conflicts_with = "groups")]
    pub(crate) from_cgroup: Option<PathBuf>,
    /// How long to look at the live control group.
    #[arg(long, default_value = "5s", value_parser = |text: &str| parse_duration_ns(text))]
    pub(crate) window: u64,
    /// Predict a change: another variant in which group NAME has these shares.
    #[arg(long = "set", value_name = "NAME:shares=N", value_parser = parse_change)]
    pub(crate) changes: Vec<(String, u64)>,
    /// Extra bits of the weights, one variant for each.
    #[arg(long, value_delimiter = ',', value_parser = parse_resolution)]
    pub(crate) resolution: Vec<Resolution>,
    /// Mechanisms to switch off in every variant.
    #[arg(long, value_delimiter = ',')]
    pub(crate) without: Vec<Mechanism>,
    /// Mechanisms to switch on in every variant.
    #[arg(long, value_delimiter = ',')]
    pub(crate) with: Vec<Mechanism>,
    /// For each of these mechanisms a further variant without it.
    #[arg(long, value_delimiter = ',')]
    pub(crate) isolate: Vec<Mechanism>,
    /// Number of seeds; every variant is run with each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub(crate) first_seed: u64,
    /// Simulated time to measure.
    #[arg(long, value_parser = |text: &str| parse_duration_ns(text))]
    pub(crate) time: Option<u64>,
    /// Simulated time before measuring starts.
    #[arg(long, value_parser = |text: &str| parse_duration_ns(text))]
    pub(crate) warmup: Option<u64>,
    /// Vary something: shares=2,64,1024, tasks=20,50 or 'domains=2,8,16;4,16'. At most twice.
    #[arg(long = "sweep", value_name = "AXIS=VALUES")]
    pub(crate) sweeps: Vec<Axis>,
    /// Show why CPUs stayed idle while tasks waited, and which steps of arithmetic lost load.
    #[arg(long)]
    pub(crate) why: bool,
    /// Show busy and idle time second by second.
    #[arg(long)]
    pub(crate) by_second: bool,
    /// Write who ran where, in the first variant with the first seed, as a Perfetto trace.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the result as one HTML page that needs nothing but itself.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn parse_resolution(text: &str) -> Result<Resolution, String> {
    let bits = text.parse().ok().and_then(Resolution::new);
    bits.ok_or_else(|| format!("extra bits are 0 to {}", Resolution::MAX_BITS))
}

pub(crate) fn parse_change(text: &str) -> Result<(String, u64), String> {
    let parts = text.rsplit_once(":shares=");
    parts
        .and_then(|(name, shares)| Some((name.to_string(), shares.parse().ok()?)))
        .ok_or_else(|| "write NAME:shares=N".to_string())
}

/// Named, so that the argument parser takes one list and not a list of lists.
pub(crate) type Domains = Vec<usize>;
