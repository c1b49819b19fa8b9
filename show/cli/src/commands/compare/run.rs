//! Runs `lineup compare`.

use super::args::{Compare, commands};
use super::report::Report;
use super::{csv, json, links, markdown, printed_table, view};
use crate::options::format::Format;
use crate::options::values::given_input;
use crate::terminal::outcome::Outcome;
use crate::terminal::output::{text_for, write_result};
use crate::terminal::progress::{Stages, collect_shown};
use crate::terminal::typed_command::split;
use anyhow::{Context, Result, anyhow, bail};
use lineup_model::figure;
use lineup_prove::compare::{Collected, ComparePlan, Comparison, Stopped, judge_all, replay_false_alarms};
use lineup_prove::run::{RunResult, Slot};
use lineup_prove::schedule::Order;
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_study::background::Background;
use lineup_study::counters;
use lineup_study::interrupt::Interrupts;
use lineup_study::printed::PrintedMetrics;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{Links, ProcessRunner, RunnerOptions};

/// Blocks when nothing is asked for, and at most when only a width is.
const BLOCKS: u64 = 20;
const PATIENCE: u64 = 1000;

/// The number of replayed comparisons for the false-alarm rate.
const REPLAYS: u64 = 400;

/// Runs the command.
pub(crate) fn run(compare: Compare) -> Result<Outcome> {
    if let Some(table) = &compare.from_table {
        let judged = printed_table::compare(table, compare.margin.0, level(&compare)?, compare.format.json)?;
        write_result(compare.output.as_deref(), &judged)?;
        return Ok(Outcome::Done);
    }
    let plan = plan(&compare)?;
    let stages = Stages::new();
    let interrupts = stages.watch_signals()?;
    stages.stage("linking the programs");
    let linked = links::link(&compare, &interrupts, &stages)?;
    stages.end();
    let files = linked.as_ref().map(|linked| linked.links.clone());
    let mut runner = runner(&compare, files, &interrupts)?;
    let load = compare.under.as_deref().map(|load| Background::start(load, &interrupts)).transpose()?;
    stages.stage("running the variants in turn");
    let collected = collect_shown(&mut runner, &plan, &stages);
    // A comparison that a signal cut short is judged on its runs so far.
    let _keeping = interrupts.check().is_err().then(|| interrupts.keeping());
    if let Some(load) = load {
        load.end().context("the background load")?;
    }
    stages.stage("judging the runs");
    let report = report(&compare, plan, collected)?;
    stages.end();
    let rendered = match compare.format {
        Format { json: true, .. } => json::render(&report)?,
        Format { csv: true, .. } => csv::render(&report),
        Format { markdown: true, .. } => markdown::render(&report),
        _ => {
            let (style, extent) = text_for(compare.output.as_deref(), compare.full);
            view::render(&report, style, extent)
        }
    };
    write_result(compare.output.as_deref(), &rendered)?;
    if let Some(path) = &compare.html {
        write_result(Some(path), &report.html())?;
    }
    if let Stopped::Failed(error) = report.collected.stopped {
        return Ok(Outcome::CutShort(anyhow::Error::from_boxed(error)));
    }
    if report.ends_unlike() {
        return Ok(Outcome::CutShort(anyhow!(report.failed().join("; "))));
    }
    let mut outcome = Outcome::Done;
    for bound in &compare.fail_if {
        for sentence in bound.broken(&report.comparison)? {
            eprintln!("lineup: {sentence}");
            outcome = Outcome::Finding;
        }
    }
    Ok(outcome)
}

/// Judges the runs so far.
fn report(compare: &Compare, plan: ComparePlan, collected: Collected) -> Result<Report> {
    if collected.blocks < 2
        && let Stopped::Failed(error) = collected.stopped
    {
        let runs = || collected.runs.iter().chain(&collected.cut_off);
        let error = anyhow::Error::from_boxed(error);
        return Err(match so_far(commands(compare).len(), &runs) {
            Some(so_far) => error.context(so_far),
            None => error,
        });
    }
    let comparison = judge_all(&collected, &plan)?;
    require_primary(&comparison, &plan)?;
    let false_alarms = if compare.itself { replay_false_alarms(&collected, &plan, REPLAYS)? } else { None };
    Ok(Report {
        commands: commands(compare),
        plan,
        comparison,
        collected,
        under: compare.under.clone(),
        false_alarms,
    })
}

/// The times of a comparison that ended too early to be judged; `None` when no run was completed.
fn so_far<'c, R: Iterator<Item = &'c (Slot, RunResult)>>(
    variants: usize,
    runs: &impl Fn() -> R,
) -> Option<String> {
    let of_variant = |variant: usize| {
        let own = runs().filter(|(slot, _)| slot.variant.0 == variant);
        let times: Vec<f64> = own.map(|(_, run)| run.wall_ns as f64).collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let counted = figure::counted(times.len() as u64, "run");
        (!times.is_empty()).then(|| {
            format!("{} ran {} on average in {counted}", Report::letter(variant), figure::time_ns(mean))
        })
    };
    let times: Vec<String> = (0..variants).filter_map(of_variant).collect();
    let all = times.join(", and ");
    (!times.is_empty()).then(|| format!("nothing is judged before two blocks are complete; until then {all}"))
}

/// A primary metric that was never seen is a mistake worth stopping for.
fn require_primary(comparison: &Comparison, plan: &ComparePlan) -> Result<()> {
    if comparison.metrics.iter().any(|metric| metric.name == plan.primary && !metric.contrasts.is_empty()) {
        return Ok(());
    }
    let names: Vec<&str> = comparison.metrics.iter().map(|metric| metric.name.as_str()).collect();
    bail!("the primary metric {} was not observed; there are {}", plan.primary, names.join(", "))
}

fn level(compare: &Compare) -> Result<f64> {
    if !(0.5..1.0).contains(&compare.level.0) {
        bail!("--level must be from 50% to below 100%");
    }
    Ok(compare.level.0)
}

pub(crate) fn plan(compare: &Compare) -> Result<ComparePlan> {
    let variants = commands(compare).len();
    if compare.itself && variants != 2 {
        bail!("--self takes one command");
    }
    if variants < 2 {
        bail!("give two commands or more, each one quoted string; or one with --self");
    }
    let level = level(compare)?;
    let target_width = compare.until_width.map(|width| width.0).unwrap_or_default();
    let links = compare.links.unwrap_or(1);
    // Each link at least twice: otherwise the links' share of the spread cannot be determined.
    let usual_blocks = if target_width > 0.0 { PATIENCE } else { BLOCKS.max(2 * links) };
    Ok(ComparePlan {
        variants,
        order: if compare.shuffled { Order::Shuffled } else { Order::Mirrored },
        margin: compare.margin.0,
        stop: WidthStop { first_look: 10, target_width, level },
        primary: if compare.primary == "time" { "elapsed".into() } else { compare.primary.clone() },
        max_blocks: compare.blocks.unwrap_or(usual_blocks),
        max_time_ns: compare.max_time.map_or(u64::MAX, |span| span.0),
        warm_up: compare.warm_up,
        seed: Seed(compare.seed),
        links,
        ..ComparePlan::default()
    })
}

pub(crate) fn runner(
    compare: &Compare,
    links: Option<Links>,
    interrupts: &Interrupts,
) -> Result<ProcessRunner> {
    let events = match compare.events.as_slice() {
        [] => Vec::new(),
        events => counters::parse(&events.join(","))?,
    };
    let options = RunnerOptions {
        placing: compare.pin.clone(),
        events,
        streams: Streams::Captured,
        printed: PrintedMetrics::new(&compare.metrics)?,
        links,
        vary_environment: (!compare.same_environment).then_some(Seed(compare.seed)),
    };
    let input = given_input(compare.stdin.as_deref(), interrupts)?;
    let invocation = |command: &String| -> Result<Run> {
        Ok(Run { command: split(command, compare.shell)?, input: input.clone(), ..Run::default() })
    };
    let variants = commands(compare).iter().map(invocation).collect::<Result<_>>()?;
    Ok(ProcessRunner::new(variants, options, interrupts)?)
}
