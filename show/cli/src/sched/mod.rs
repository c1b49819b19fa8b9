//! `lineup sched`: simulates a group-fair scheduler with given tasks, groups and CPUs.

mod live;
mod text;

use crate::outcome::Outcome;
use crate::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_report::html::{sched_page, sched_sweep_page};
use lineup_sched::experiment::{self, Variant};
use lineup_sched::report::{Report, report};
use lineup_sched::scenario::{
    Group, Mechanism, Scenario, Topology, parse_domains, parse_duration_ns, parse_file, parse_group,
};
use lineup_sched::sim::simulate;
use lineup_sched::sweep::{Axis, Grid};
use lineup_sched::trace::Trace;
use lineup_sched::weights::Resolution;
use lineup_study::progress::Progress;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Simulates SMP group-fair scheduling, the 2011 scheduler with each mechanism switchable, and compares
/// variants over the same seeds: busy and idle time, work missed while CPUs idled, fairness, latency, balancing.
#[derive(clap::Args)]
pub(crate) struct Sched {
    /// Number of CPUs.
    #[arg(long)]
    cpus: Option<usize>,
    /// CPUs in a domain of each level, smallest first: threads of a core, shared cache, package.
    #[arg(long, value_parser = |text: &str| parse_domains(text))]
    domains: Option<Domains>,
    /// Whether the CPUs of a smallest domain are threads of one core; by default if they are two.
    #[arg(long)]
    smt: Option<bool>,
    /// A group: NAME:shares=2,tasks=50,busy=~100ms,sleep=~100ms[,clock=wall|cpu|timetable][,nice=N][,parent=NAME].
    /// `~100ms` is uniform from 0 to 200 ms. Without busy and sleep its tasks never sleep.
    #[arg(long = "group", value_parser = |text: &str| parse_group(text))]
    groups: Vec<Group>,
    /// A scenario file (TOML).
    #[arg(long, conflicts_with_all = ["cpus", "groups", "from_cgroup"])]
    scenario: Option<PathBuf>,
    /// Read groups, weights and what their threads do from a live control group and those below it.
    #[arg(long, conflicts_with = "groups")]
    from_cgroup: Option<PathBuf>,
    /// How long to look at the live control group.
    #[arg(long, default_value = "5s", value_parser = |text: &str| parse_duration_ns(text))]
    window: u64,
    /// Predict a change: another variant in which group NAME has these shares.
    #[arg(long = "set", value_name = "NAME:shares=N", value_parser = parse_change)]
    changes: Vec<(String, u64)>,
    /// Extra bits of the weights, one variant for each.
    #[arg(long, value_delimiter = ',', value_parser = parse_resolution)]
    resolution: Vec<Resolution>,
    /// Mechanisms to switch off in every variant.
    #[arg(long, value_delimiter = ',')]
    without: Vec<Mechanism>,
    /// Mechanisms to switch on in every variant.
    #[arg(long, value_delimiter = ',')]
    with: Vec<Mechanism>,
    /// For each of these mechanisms a further variant without it.
    #[arg(long, value_delimiter = ',')]
    isolate: Vec<Mechanism>,
    /// Number of seeds; every variant is run with each.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    first_seed: u64,
    /// Simulated time to measure.
    #[arg(long, value_parser = |text: &str| parse_duration_ns(text))]
    time: Option<u64>,
    /// Simulated time before measuring starts.
    #[arg(long, value_parser = |text: &str| parse_duration_ns(text))]
    warmup: Option<u64>,
    /// Vary something: shares=2,64,1024, tasks=20,50 or 'domains=2,8,16;4,16'. At most twice.
    #[arg(long = "sweep", value_name = "AXIS=VALUES")]
    sweeps: Vec<Axis>,
    /// Show why CPUs stayed idle while tasks waited, and which steps of arithmetic lost load.
    #[arg(long)]
    why: bool,
    /// Show busy and idle time second by second.
    #[arg(long)]
    by_second: bool,
    /// Write who ran where, in the first variant with the first seed, as a Perfetto trace.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write the result as one HTML page that needs nothing but itself.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Named, so that the argument parser takes one list and not a list of lists.
type Domains = Vec<usize>;

fn parse_resolution(text: &str) -> Result<Resolution, String> {
    let bits = text.parse().ok().and_then(Resolution::new);
    bits.ok_or_else(|| format!("extra bits are 0 to {}", Resolution::MAX_BITS))
}

fn parse_change(text: &str) -> Result<(String, u64), String> {
    let parts = text.rsplit_once(":shares=");
    parts
        .and_then(|(name, shares)| Some((name.to_string(), shares.parse().ok()?)))
        .ok_or_else(|| "write NAME:shares=N".to_string())
}

/// Runs the command.
pub(crate) fn run(sched: Sched) -> Result<Outcome> {
    let base = base(&sched)?;
    let variants = variants(&sched, &base)?;
    if let Some(path) = &sched.trace {
        write_trace(path, &variants[0].scenario, sched.first_seed)?;
    }
    let stages = Stages::new();
    stages.stage("simulating");
    let rendered = if sched.sweeps.is_empty() {
        compare(&sched, &variants, &stages)?
    } else {
        sweep(&sched, &variants, &stages)?
    };
    stages.end();
    std::io::stdout().write_all(rendered.as_bytes()).context("writing the result")?;
    Ok(Outcome::Done)
}

fn compare(sched: &Sched, variants: &[Variant], stages: &Stages) -> Result<String> {
    let report =
        experiment(sched, variants, &|done| stages.advance(done, variants.len() as u64 * sched.seeds))?;
    write_page(sched, |command| sched_page(&report, command))?;
    if sched.json {
        return Ok(serde_json::to_string_pretty(&report)? + "\n");
    }
    let mut text = text::render(&report, sched.why);
    if sched.by_second {
        text += &text::by_second(&report);
    }
    Ok(text)
}

fn sweep(sched: &Sched, variants: &[Variant], stages: &Stages) -> Result<String> {
    let (x, y) = match sched.sweeps.as_slice() {
        [x] => (x.clone(), None),
        [x, y] => (x.clone(), Some(y.clone())),
        _ => bail!("--sweep may be given at most twice"),
    };
    let grid = Grid::new(variants, x, y)?;
    let runs_of_a_point = variants.len() as u64 * sched.seeds;
    let all = grid.points.len() as u64 * runs_of_a_point;
    let reports = grid.points.iter().zip(0..).map(|((_, _, variants), point)| {
        experiment(sched, variants, &|done| stages.advance(point * runs_of_a_point + done, all))
    });
    let report = grid.report(reports.collect::<Result<_>>()?);
    write_page(sched, |command| sched_sweep_page(&report, command))?;
    if sched.json {
        return Ok(serde_json::to_string_pretty(&report)? + "\n");
    }
    Ok(text::render_sweep(&report))
}

fn experiment(sched: &Sched, variants: &[Variant], advance: &(dyn Fn(u64) + Sync)) -> Result<Report> {
    let seeds: Vec<u64> = (0..sched.seeds).map(|at| sched.first_seed.wrapping_add(at)).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes = experiment::run(variants, &seeds, threads, &|done| advance(done as u64))?;
    Ok(report(variants, &seeds, &outcomes)?)
}

/// The scenario that all variants start from.
fn base(sched: &Sched) -> Result<Scenario> {
    let mut scenario = if let Some(path) = &sched.scenario {
        let text = lineup_mapping::read_text(path).with_context(|| format!("reading {}", path.display()))?;
        parse_file(&text).with_context(|| path.display().to_string())?
    } else if let Some(path) = &sched.from_cgroup {
        live::observe(path, sched.window)?.scenario(topology(sched)?)?
    } else if sched.groups.is_empty() {
        bail!("nothing to schedule: give --group, --scenario or --from-cgroup");
    } else {
        let mut scenario = Scenario::new(topology(sched)?);
        scenario.groups.clone_from(&sched.groups);
        scenario
    };
    scenario.topology.smt = sched.smt.unwrap_or(scenario.topology.smt);
    scenario.time_ns = sched.time.unwrap_or(scenario.time_ns);
    scenario.warmup_ns = sched.warmup.unwrap_or(scenario.warmup_ns);
    scenario.mechanisms = sched.without.iter().fold(scenario.mechanisms, |set, off| set.without(*off));
    scenario.mechanisms = sched.with.iter().fold(scenario.mechanisms, |set, on| set.with(*on));
    scenario.check()?;
    Ok(scenario)
}

/// The requested topology, completed by this machine's.
fn topology(sched: &Sched) -> Result<Topology> {
    match (sched.cpus, &sched.domains) {
        (Some(cpus), Some(domains)) => Ok(Topology::new(cpus, domains)),
        (Some(cpus), None) => Ok(Topology::new(cpus, &[])),
        (None, Some(domains)) => Ok(Topology::new(domains.last().copied().unwrap_or(0), domains)),
        (None, None) => live::topology(),
    }
}

fn variants(sched: &Sched, base: &Scenario) -> Result<Vec<Variant>> {
    let resolutions: &[Resolution] = match sched.resolution.as_slice() {
        [] => &[base.resolution],
        given => given,
    };
    let mut variants = Vec::new();
    for resolution in resolutions {
        let scenario = Scenario { resolution: *resolution, ..base.clone() };
        let name = format!("R = {resolution}");
        for mechanism in &sched.isolate {
            let mechanisms = scenario.mechanisms.without(*mechanism);
            let name = format!("{name}, no {}", mechanism.name());
            variants.push(Variant { name, scenario: Scenario { mechanisms, ..scenario.clone() } });
        }
        let at = variants.len() - sched.isolate.len();
        variants.insert(at, Variant { name: name.clone(), scenario: scenario.clone() });
        if !sched.changes.is_empty() {
            variants.push(Variant { name: format!("{name}, changed"), scenario: changed(sched, scenario)? });
        }
    }
    Ok(variants)
}

fn changed(sched: &Sched, mut scenario: Scenario) -> Result<Scenario> {
    for (name, shares) in &sched.changes {
        let names: Vec<_> = scenario.groups.iter().map(|group| group.name.clone()).collect();
        let Some(group) = scenario.groups.iter_mut().find(|group| group.name == *name) else {
            bail!("--set: no group is named `{name}`; there are {}", names.join(", "));
        };
        group.shares = *shares;
    }
    scenario.check()?;
    Ok(scenario)
}

fn write_page(sched: &Sched, page: impl Fn(&str) -> String) -> Result<()> {
    let Some(path) = &sched.html else { return Ok(()) };
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let command = shell_words::join(words);
    std::fs::write(path, page(&command)).with_context(|| format!("writing {}", path.display()))
}

fn write_trace(path: &PathBuf, scenario: &Scenario, seed: u64) -> Result<()> {
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let context = || format!("writing {}", path.display());
    let mut trace = Trace::new(BufWriter::new(file), scenario).with_context(context)?;
    simulate(scenario, seed, &mut trace)?;
    trace.finish().with_context(context)?;
    Ok(())
}
