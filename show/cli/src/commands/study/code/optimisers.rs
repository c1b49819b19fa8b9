//! `lineup study --code` with `--against-optimisers` or `--patch`: other optimisers' programs, and a patch of its
//! sources alone, in one table with Lineup's result.

use super::counts::{Counted, Training};
use super::gates::Measured;
use super::ordering::Study;
use super::programs::{Peer, Programs, made};
use super::workload::Workload;
use crate::terminal::progress::collect_shown;
use anyhow::{Context, Result, anyhow, bail};
use lineup_prove::Variant as RunOf;
use lineup_prove::compare::{Collected, ComparePlan, Comparison, Stopped, judge_all};
use lineup_prove::metric::ELAPSED;
use lineup_prove::pair::of_pair;
use lineup_prove::schedule::Order as BlockOrder;
use lineup_report::effects::EffectsCheck;
use lineup_report::study::{
    Figure, NotOptimised, Optimised, OptimisedPair, Optimisers, PATCH, TimeRatio, Together, USER,
};
use lineup_stats::sequential::WidthStop;
use lineup_study::effects::observe_variants;
use lineup_study::progress::Progress;
use lineup_study::source::scratch::Tree;
use lineup_study::timing::{ProcessRunner, RunnerOptions};

const AS_LINKED: &str = "as linked";
const FUNCTIONS: &str = "functions in Lineup's order";
const BOLT: &str = "BOLT from its own instrumented run";
const COUNTS: &str = "BOLT from Lineup's counts";
const PGO: &str = "GCC PGO";
const BOTH: &str = "GCC PGO, BOLT from Lineup's counts";
const PATCH_AND_COUNTS: &str = "the patch, BOLT from Lineup's counts";

/// The rows of the table, in this order, where they are asked for and can be made.
const ROWS: [&str; 8] = [AS_LINKED, FUNCTIONS, BOLT, COUNTS, PGO, BOTH, PATCH, PATCH_AND_COUNTS];

/// Rows of the table other than the program as linked and the study's result.
#[derive(Clone, Copy)]
pub(crate) struct Others<'o> {
    /// True when the table has other optimisers' programs.
    pub(crate) optimisers: bool,
    /// The program with the patch, in the order of its linker; the result is that in the new order.
    pub(crate) patched: Option<&'o Tree>,
}

impl Others<'_> {
    /// The programs that are made for the table.
    fn peers(&self) -> Vec<(Peer, &'static str)> {
        let optimisers =
            [(Peer::Functions, FUNCTIONS), (Peer::Bolt, BOLT), (Peer::Pgo, PGO), (Peer::PgoAndBolt, BOTH)];
        let optimisers = optimisers.into_iter().filter(|_| self.optimisers);
        optimisers.chain(self.patched.map(|_| (Peer::Counts, COUNTS))).collect()
    }
}

/// The basis of an order.
pub(crate) struct Trained<'t> {
    pub(crate) run: &'t Workload,
    pub(crate) counted: &'t Training,
}

/// A program of the table, before it is timed.
struct UntimedProgram<'t> {
    row: Optimised,
    tree: &'t Tree,
}

/// Makes all programs, compares their effects, and times them in turn. A program that cannot be made, or has other
/// effects, is named in the table and does not end the study.
///
/// # Errors
/// When the program as it was linked cannot be run, and when the study is interrupted.
pub(crate) fn table(
    study: &Study<'_>,
    others: Others<'_>,
    trained: &Trained<'_>,
    [linked, ordered]: [&Measured; 2],
) -> Result<Optimisers> {
    let folder = study.interrupts.temporary_folder().context("making a temporary folder")?;
    // Counts of the program with the patch are of another program.
    let as_linked = others.patched.map(|_| study.trained(trained.run, linked.variant.tree())).transpose()?;
    let programs = Programs {
        study,
        training: trained.run,
        trained: as_linked.as_ref().unwrap_or(trained.counted),
        linked: linked.variant.tree(),
        folder: folder.path().to_owned(),
    };
    let mut not_observed = Vec::new();
    let mut trees = Vec::new();
    for (peer, name) in others.peers() {
        let has_failed = |of: &str| not_observed.iter().any(|one: &NotOptimised| one.name == of);
        let tree = match peer {
            Peer::PgoAndBolt if has_failed(PGO) => Err(anyhow!("{PGO} was not observed")),
            _ => programs.make(peer),
        };
        match tree {
            Ok(tree) => trees.push((name, made(peer, study.bolt), tree)),
            Err(error) => not_observed.push(NotOptimised { name: name.into(), why: format!("{error:#}") }),
        }
        study.interrupts.check()?;
    }
    let result = if others.patched.is_some() { PATCH_AND_COUNTS } else { COUNTS };
    let mut all: Vec<_> = trees.iter().map(|(name, made, tree)| (*name, made.clone(), tree)).collect();
    all.extend(others.patched.map(|tree| (PATCH, "the build, of the patched sources".to_owned(), tree)));
    all.push((result, made(Peer::Counts, study.bolt), ordered.variant.tree()));
    all.sort_by_key(|(name, ..)| ROWS.iter().position(|row| row == name));
    let stock = row(AS_LINKED, "the build, with relocations".into(), None, figures(&linked.counted));
    let mut entries = vec![UntimedProgram { row: stock, tree: linked.variant.tree() }];
    for (name, made, tree) in all {
        let told = observed(study, linked.variant.tree(), tree).and_then(|effects| {
            let figures = match name == result {
                true => figures(&ordered.counted),
                false => figures(&study.counted(tree)?.0),
            };
            Ok(row(name, made, Some(effects), figures))
        });
        match told {
            Ok(row) => entries.push(UntimedProgram { row, tree }),
            Err(error) => not_observed.push(NotOptimised { name: name.into(), why: format!("{error:#}") }),
        }
        study.interrupts.check()?;
    }
    timed(study, entries, not_observed)
}

fn row(name: &str, made: String, effects: Option<String>, figures: Vec<Figure>) -> Optimised {
    let (user_ns, elapsed_ns, user, elapsed) = (None, None, None, None);
    Optimised { name: name.into(), made, effects, figures, user_ns, elapsed_ns, user, elapsed }
}

fn figures(counted: &Counted) -> Vec<Figure> {
    counted.figures().iter().map(|(what, count)| Figure { what: what.clone(), count: *count }).collect()
}

/// The result of comparing two programs' effects, in a sentence.
///
/// # Errors
/// The difference.
fn observed(study: &Study<'_>, linked: &Tree, tree: &Tree) -> Result<String> {
    study.stages.stage("observing the effects of the processes of an optimised program");
    let (before, after) = (study.plan.run(linked)?, study.plan.run(tree)?);
    match observe_variants(&before, &after, study.interrupts)? {
        Ok([before, after]) => match before.agreement(&after) {
            Ok(agreement) => Ok(EffectsCheck::from(&agreement).sentence()),
            Err(difference) => bail!("it does something else than the program as linked: {difference}"),
        },
        Err(why) => Ok(format!("not compared beyond output and exit: {why}")),
    }
}

/// Times all programs in mirrored blocks. Programs with other output, or another ending, are taken out.
fn timed(
    study: &Study<'_>,
    entries: Vec<UntimedProgram<'_>>,
    not_observed: Vec<NotOptimised>,
) -> Result<Optimisers> {
    let proof = &study.plan.proof;
    let plan = ComparePlan {
        variants: entries.len(),
        order: BlockOrder::Mirrored,
        margin: proof.margin,
        stop: WidthStop { target_width: 0.0, ..proof.stop },
        primary: USER.into(),
        max_blocks: proof.max_blocks,
        max_time_ns: proof.max_time_ns,
        seed: proof.seed,
        ..ComparePlan::default()
    };
    let runs = entries.iter().map(|entry| study.plan.run(entry.tree)).collect::<Result<_>>()?;
    let options = RunnerOptions { placing: study.plan.cpus.clone(), ..RunnerOptions::default() };
    let mut runner = ProcessRunner::new(runs, options, study.interrupts)?;
    study.stages.stage("running all programs in turn");
    let collected = collect_shown(&mut runner, &plan, study.stages);
    study.interrupts.check()?;
    let collected = match collected {
        Collected { stopped: Stopped::Failed(error), .. } => return Err(anyhow::Error::from_boxed(error)),
        collected => collected,
    };
    let rows = entries.into_iter().map(|entry| entry.row).collect();
    judged(rows, &collected, &plan, not_observed)
}

/// The table of programs whose runs all had the same output and ending.
fn judged(
    rows: Vec<Optimised>,
    collected: &Collected,
    plan: &ComparePlan,
    mut not_observed: Vec<NotOptimised>,
) -> Result<Optimisers> {
    let comparison = judge_all(collected, plan)?;
    let mut kept = Vec::new();
    for (variant, row) in rows.into_iter().enumerate() {
        match difference(collected, RunOf(variant)) {
            None => kept.push((variant, row.timed(&comparison, variant))),
            Some(difference) if variant == 0 => bail!("the program as linked does not repeat: {difference}"),
            Some(difference) => not_observed.push(NotOptimised {
                name: row.name,
                why: format!("it does something else than the program as linked: {difference}"),
            }),
        }
    }
    let pair = |of: &str, against: &str| pair_of(&kept, [against, of], collected, plan);
    let pairs = [
        pair(COUNTS, BOLT)?,
        pair(BOTH, PGO)?,
        pair(PATCH_AND_COUNTS, PATCH)?,
        pair(PATCH_AND_COUNTS, COUNTS)?,
        pair(PATCH_AND_COUNTS, PGO)?,
    ];
    let user = |name: &str| kept.iter().find(|(_, row)| row.name == name)?.1.user.map(|user| user.ratio);
    let together = |one: &str, both: &str| {
        let (first, second, seen) = (user(one)?, user(COUNTS)?, user(both)?);
        Some(Together { names: [one.into(), COUNTS.into()], if_added: first * second, seen })
    };
    let (together, patch_together) = (together(PGO, BOTH), together(PATCH, PATCH_AND_COUNTS));
    Ok(Optimisers {
        rows: kept.into_iter().map(|(_, row)| row).collect(),
        pairs: pairs.into_iter().flatten().collect(),
        not_observed,
        together,
        patch_together,
        blocks: collected.blocks,
        level: plan.stop.level,
        margin: plan.margin,
    })
}

/// The difference between a variant's runs and the first run of all.
fn difference(collected: &Collected, variant: RunOf) -> Option<String> {
    let (_, first) = collected.runs.iter().find(|(slot, _)| slot.variant == RunOf::BEFORE)?;
    let mut runs = collected.runs.iter().filter(|(slot, _)| slot.variant == variant);
    runs.find_map(|(_, run)| first.difference(run))
}

/// Two programs of the table against each other, by the runs of all; `None` where one is not in it.
fn pair_of(
    rows: &[(usize, Optimised)],
    [against, of]: [&str; 2],
    collected: &Collected,
    plan: &ComparePlan,
) -> Result<Option<OptimisedPair>> {
    let place =
        |name: &str| rows.iter().find(|(_, row)| row.name == name).map(|(variant, _)| RunOf(*variant));
    let (Some(first), Some(second)) = (place(against), place(of)) else { return Ok(None) };
    let runs = of_pair(collected, [first, second]);
    let compared: Comparison = judge_all(&runs, &ComparePlan { variants: 2, ..plan.clone() })?;
    let time = |quantity: &str| TimeRatio::of(&compared, quantity, RunOf::AFTER.0);
    Ok(Some(OptimisedPair {
        of: of.into(),
        against: against.into(),
        user: time(USER),
        elapsed: time(ELAPSED),
    }))
}
