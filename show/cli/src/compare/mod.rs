//! `lineup compare`: several commands side by side, in mirrored blocks.

mod csv;
mod fail_if;
mod json;
mod links;
mod markdown;
mod printed_table;
mod text;

use crate::files::text_for;
use crate::measure::{Format, given_input, write_result};
use crate::outcome::Outcome;
use crate::progress::Stages;
use crate::share::{Share, Span};
use crate::typed;
use anyhow::{Context, Result, bail};
use fail_if::Bound;
use lineup_prove::compare::{
    Collected, ComparePlan, Comparison, FalseAlarms, Stopped, collect, judge_all, replay_false_alarms,
};
use lineup_prove::run::{Runner, Slot};
use lineup_prove::schedule::Order;
use lineup_report::html::{ComparisonPage, comparison_page};
use lineup_stats::random::Seed;
use lineup_stats::sequential::WidthStop;
use lineup_study::background::Background;
use lineup_study::counters;
use lineup_study::error::Error;
use lineup_study::interrupt::Interrupts;
use lineup_study::printed::PrintedMetrics;
use lineup_study::process::Streams;
use lineup_study::progress::Progress;
use lineup_study::run::Run;
use lineup_study::timing::{Links, Placing, ProcessRunner, RunnerOptions};
use std::path::PathBuf;

/// Compares commands: runs them in mirrored blocks (ABBA), each block placed alike, and says of
/// every quantity whether it changed, is equivalent within the margin, or is not decided.
///
/// Each command is one quoted string, split as a shell would and run without a shell.
#[derive(clap::Args)]
pub(crate) struct Compare {
    /// The commands; the others are compared with the first.
    #[arg(required_unless_present = "from_table", value_name = "COMMAND")]
    commands: Vec<String>,
    /// Judge printed figures instead: lines metric,variant,MEAN,ERROR,RUNS (an error as 0.08% or in the
    /// unit), or metric,variant,VALUE once per run.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["commands", "csv", "markdown", "html"])]
    from_table: Option<PathBuf>,
    /// Compare one command with itself and report how often that raises a false alarm here.
    #[arg(long = "self", conflicts_with = "fail_if")]
    itself: bool,
    /// Link each program this many times, with its objects in other orders and padding between them: each block uses
    /// one link of each, and the interval covers the differences between links.
    #[arg(long, value_name = "N", requires = "builds", conflicts_with_all = ["shell", "from_table"], value_parser = clap::value_parser!(u64).range(2..=200))]
    links: Option<u64>,
    /// With --links: shell command that links the programs anew, here, by GCC or Clang, as make -B does; once for all
    /// commands, or once for each.
    #[arg(long = "build", value_name = "COMMAND", requires = "links")]
    builds: Vec<String>,
    /// Run the commands through /bin/sh.
    #[arg(long)]
    shell: bool,
    /// Blocks to run at most; every block runs each command twice (once with --shuffled). 20 when
    /// left out, or 1000 with --until-width.
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u64).range(2..))]
    blocks: Option<u64>,
    /// Stop when the interval of the primary metric is this narrow, such as 0.5%; not before ten
    /// blocks.
    #[arg(long)]
    until_width: Option<Share>,
    /// Stop after this much time of runs, such as 90s or 2m.
    #[arg(long)]
    max_time: Option<Span>,
    /// Changes smaller than this count as equivalent.
    #[arg(long, default_value = "1%")]
    margin: Share,
    /// Confidence level.
    #[arg(long, default_value = "95%")]
    level: Share,
    /// Run each command once per block in random order, instead of mirrored.
    #[arg(long)]
    shuffled: bool,
    /// Untimed runs of each command at the start.
    #[arg(short = 'w', long, default_value_t = 1)]
    warm_up: u32,
    /// Events to count as well: cycles,instructions:u,{branches,branch-misses},r01c2.
    #[arg(short = 'e', long = "event")]
    events: Vec<String>,
    /// A number the programs print: a pattern with the number in parentheses. Lines `lineup-metric
    /// NAME VALUE UNIT` are picked up without it.
    #[arg(long = "metric")]
    metrics: Vec<String>,
    /// The metric that decides when to stop and whose verdict comes first.
    #[arg(long, default_value = "elapsed")]
    primary: String,
    /// CPUs to run on: auto (one per block in turn, if one is enough), none, apart (each thread on one of its own),
    /// together (all threads on one, another for each block), or a list such as 0,2.
    #[arg(long, default_value = "auto")]
    pin: Placing,
    /// Keep the environment's size the same in all blocks.
    #[arg(long)]
    same_environment: bool,
    /// File that the programs read as standard input.
    #[arg(long)]
    stdin: Option<PathBuf>,
    /// Background load to hold during the whole comparison: 'load --vm 2 --vm-bytes 32M'.
    #[arg(long, value_name = "LOAD")]
    under: Option<String>,
    /// Exit with 1 when the interval lies wholly past a bound: 'time > +1%'. May be repeated.
    #[arg(long)]
    fail_if: Vec<Bound>,
    /// Seed of the order of runs, the environment's sizes and the resampling.
    #[arg(long, default_value_t = Seed::default().0)]
    seed: u64,
    #[command(flatten)]
    format: Format,
    /// Print every metric in full, instead of one screen.
    #[arg(long)]
    full: bool,
    /// Write the result to a file instead of standard output: text in full.
    #[arg(short = 'o', long)]
    output: Option<PathBuf>,
    /// Also write an offline HTML page with the distributions, quantiles and the order of runs.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Blocks when nothing is asked for, and at most when only a width is.
const BLOCKS: u64 = 20;
const PATIENCE: u64 = 1000;

/// The number of replayed comparisons for the false-alarm rate.
const REPLAYS: u64 = 400;

/// A comparison and its result.
pub(crate) struct Report {
    commands: Vec<String>,
    plan: ComparePlan,
    comparison: Comparison,
    collected: Collected,
    under: Option<String>,
    false_alarms: Option<FalseAlarms>,
}

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
            text::render(&report, style, extent)
        }
    };
    write_result(compare.output.as_deref(), &rendered)?;
    if let Some(path) = &compare.html {
        write_result(Some(path), &report.html())?;
    }
    if let Stopped::Failed(error) = report.collected.stopped {
        return Ok(Outcome::CutShort(anyhow::Error::from_boxed(error)));
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

/// Runs the variants, which advances the stage under way. It ends early when an interval is narrow enough or the time
/// is up.
pub(crate) fn collect_shown(runner: &mut dyn Runner, plan: &ComparePlan, stages: &Stages) -> Collected {
    let mut done = 0;
    let mut shown = |slot: &Slot| {
        let blocks = u64::from(plan.warm_up).saturating_add(plan.max_blocks.max(2));
        stages.advance(done, blocks.saturating_mul(plan.variants as u64));
        done += 1;
        runner.run(slot)
    };
    collect(&mut shown, plan)
}

/// Judges the runs so far.
fn report(compare: &Compare, plan: ComparePlan, collected: Collected) -> Result<Report> {
    if collected.blocks < 2
        && let Stopped::Failed(error) = collected.stopped
    {
        return Err(anyhow::Error::from_boxed(error));
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

/// A primary metric that was never seen is a mistake worth stopping for.
fn require_primary(comparison: &Comparison, plan: &ComparePlan) -> Result<()> {
    if comparison.metrics.iter().any(|metric| metric.name == plan.primary && !metric.contrasts.is_empty()) {
        return Ok(());
    }
    let names: Vec<&str> = comparison.metrics.iter().map(|metric| metric.name.as_str()).collect();
    bail!("the primary metric {} was not observed; there are {}", plan.primary, names.join(", "))
}

/// The commands as variants: the same twice for a comparison with itself.
fn commands(compare: &Compare) -> Vec<String> {
    let twice = if compare.itself { 2 } else { 1 };
    compare.commands.iter().cycle().take(twice * compare.commands.len()).cloned().collect()
}

fn level(compare: &Compare) -> Result<f64> {
    if !(0.5..1.0).contains(&compare.level.0) {
        bail!("--level must be from 50% to below 100%");
    }
    Ok(compare.level.0)
}

fn plan(compare: &Compare) -> Result<ComparePlan> {
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
    })
}

fn runner(compare: &Compare, links: Option<Links>, interrupts: &Interrupts) -> Result<ProcessRunner> {
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

/// A command line as words.
pub(crate) fn split(command: &str, shell: bool) -> Result<Vec<std::ffi::OsString>> {
    if shell {
        return Ok(["/bin/sh", "-c", command].map(Into::into).to_vec());
    }
    let words = shell_words::split(command).with_context(|| format!("the command {command:?}"))?;
    if words.is_empty() {
        bail!("an empty command cannot be run");
    }
    Ok(words.into_iter().map(Into::into).collect())
}

impl Report {
    /// The signal that cut the comparison short.
    fn interrupted(&self) -> Option<i32> {
        let Stopped::Failed(error) = &self.collected.stopped else { return None };
        error.downcast_ref::<Error>().and_then(Error::interrupted).map(|interrupted| interrupted.signal)
    }

    /// The reason why no more blocks were run, in words.
    fn why_stopped(&self) -> String {
        match &self.collected.stopped {
            Stopped::Width => "the interval was narrow enough".into(),
            Stopped::Blocks => "all blocks were run".into(),
            Stopped::Time => "the time was up".into(),
            Stopped::Failed(error) => format!("cut short: {error}"),
        }
    }

    /// The offline page.
    fn html(&self) -> String {
        let repeat = typed::line(std::env::args_os());
        let stopped = self.why_stopped();
        let about = ComparisonPage {
            commands: &self.commands,
            under: self.under.as_deref(),
            stopped: &stopped,
            margin: self.plan.margin,
            links: self.comparison.links,
            level: self.plan.stop.level,
            repeat: &repeat,
        };
        comparison_page(&about, &self.comparison, &self.collected)
    }

    /// A letter for each variant, as on the command line.
    fn letter(variant: usize) -> String {
        let letter = u8::try_from(variant).ok().filter(|number| *number < 26).map(|number| b'A' + number);
        letter.map_or_else(|| format!("V{}", variant + 1), |letter| char::from(letter).to_string())
    }
}
