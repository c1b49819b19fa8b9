//! Runs `lineup sched`.

use super::args::Sched;
use super::{live, view};
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use anyhow::{Context, Result, bail};
use lineup_report::html::{sched_page, sched_sweep_page};
use lineup_sched::experiment::{self, Variant};
use lineup_sched::report::{Report, report};
use lineup_sched::scenario::{Scenario, Topology, parse_file};
use lineup_sched::sim::simulate;
use lineup_sched::sweep::Grid;
use lineup_sched::trace::Trace;
use lineup_sched::weights::Resolution;
use lineup_study::progress::Progress;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

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
    let mut text = view::render(&report, sched.why);
    if sched.by_second {
        text += &view::by_second(&report);
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
    Ok(view::render_sweep(&report))
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
