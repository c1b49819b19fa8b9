//! The levers beside the layout that a study without regions tries on the program it built: pools, placement, the order of
//! code and prefetches.

use super::args::{Lever, LeverOptions};
use super::plan::Plan;
use super::result_files::{CODE_FOLDER, PLACEMENT_FOLDER, POOLS_FOLDER, PREFETCH_FOLDER, TOGETHER_FOLDER};
use super::timed_edits::changed_sources::ChangedSources;
use super::timed_edits::run::{EditKind, TimedEdits};
use super::timed_edits::stalling::Stalling;
use super::together::{Kept, Together};
use super::variant::Variant;
use super::{args, code, outputs, placement, result_files, series, timed_edits};
use crate::terminal::outcome::Outcome;
use crate::terminal::progress::Stages;
use anyhow::{Result, bail};
use lineup_find::Placements;
use lineup_report::placement::Action;
use lineup_report::study::{CODE_ORDER, LAYOUT, LeverReport, StudyReport, TOGETHER};
use lineup_study::bolt::Bolt;
use lineup_study::interrupt::Interrupts;
use lineup_study::source::scratch::{Scratch, Tree};
use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The share of the budget after which the layout's part is cut off.
const LAYOUT_SHARE: f64 = 0.6;

/// Budget for each second that a comparison may take: a study makes up to ten.
const BUDGET_OF_A_COMPARISON: u64 = 10;

/// Comparisons that a lever has time for: one that chooses, one that confirms, one on the second input. Builds and
/// recordings take as long as another.
const COMPARISONS_OF_A_LEVER: u64 = 4;

/// Where the layout leaves little of the budget, a comparison takes at least its longest time divided by this.
const SHORTEST_COMPARISON: u64 = 4;

/// The programs that levers change.
#[derive(Clone)]
pub(crate) struct Programs<'p> {
    /// The unchanged program.
    pub(crate) built: &'p Tree,
    /// The program with the layout's patch.
    pub(crate) patched: Option<&'p Tree>,
    /// Placements in a model of the unchanged program's run.
    pub(crate) modelled: Option<Placements>,
    /// Where the unchanged program's run stalls for data.
    pub(crate) stalling: Option<Stalling>,
}

impl<'p> Programs<'p> {
    /// The unchanged program alone.
    pub(crate) fn unchanged(built: &'p Tree) -> Programs<'p> {
        Programs { built, patched: None, modelled: None, stalling: None }
    }
}

/// The levers of a study that was given no region.
pub(crate) struct Levers {
    options: args::Options,
    begun: Instant,
    interrupts: Interrupts,
    /// True once the layout's part is done.
    is_layout_done: Cell<bool>,
}

impl Levers {
    /// `None` where the options name regions or a lever. Else it limits the options' comparisons by the budget.
    pub(crate) fn of(options: &mut args::Options, interrupts: &Interrupts) -> Result<Option<Levers>> {
        let is_default = options.regions.is_empty() && !options.code.code && !options.placement.placement;
        if !is_default && options.code.has_test() && !options.code.code && !options.placement.placement {
            bail!(
                "--test-arguments and --test-stdin are for prefetches, placements and orders of code: leave --region out, or add --code"
            );
        }
        if !is_default {
            return Ok(None);
        }
        let most = (options.levers.budget / BUDGET_OF_A_COMPARISON).max(1);
        options.max_time = options.max_time.min(most);
        Ok(Some(Levers {
            options: options.clone(),
            begun: Instant::now(),
            interrupts: interrupts.clone(),
            is_layout_done: Cell::new(false),
        }))
    }

    /// The reason why a lever is left out; `None` where it is to be tried.
    fn left_out(&self, lever: Lever) -> Option<String> {
        let LeverOptions { only, not, budget } = &self.options.levers;
        if not.contains(&lever) || !only.is_empty() && !only.contains(&lever) {
            return Some("not tried: left out by --only or --not".to_owned());
        }
        let needed = self.options.max_time;
        let is_too_late = lever != Lever::Layout && self.left() < Duration::from_secs(needed);
        is_too_late.then(|| format!("not tried: less than {needed} s were left of --budget {budget}"))
    }

    /// The options of a lever. Its comparisons take at most its share of the time that is left for `levers` of them, this
    /// one included.
    fn options_of_one_of(&self, levers: u64) -> args::Options {
        let longest = self.options.max_time;
        let share = self.left().as_secs() / levers.max(1) / COMPARISONS_OF_A_LEVER;
        let max_time = share.clamp(longest.div_ceil(SHORTEST_COMPARISON), longest);
        args::Options { max_time, ..self.options.clone() }
    }

    /// The time that is left of the budget.
    fn left(&self) -> Duration {
        Duration::from_secs(self.options.levers.budget).saturating_sub(self.begun.elapsed())
    }

    /// The reason why the layout is not studied; `None` where it is.
    pub(crate) fn layout_left_out(&self) -> Option<String> {
        self.left_out(Lever::Layout)
    }

    /// The interrupts of the layout's part, which ends with its share of the budget.
    pub(crate) fn interrupts_of_layout(&self) -> Interrupts {
        self.interrupts.for_at_most(self.left().mul_f64(LAYOUT_SHARE))
    }

    /// The interrupts once the layout is compared: the rest of the budget is for its other figures and the other levers.
    pub(crate) fn interrupts_of_the_rest(&self) -> Interrupts {
        self.interrupts.for_at_most(self.left())
    }

    /// True when the layout's part was ended by its time alone.
    pub(crate) fn is_layout_cut(&self, of_layout: &Interrupts) -> bool {
        !self.is_layout_done.get() && of_layout.check().is_err() && self.interrupts.check().is_ok()
    }

    /// The other levers, where the layout's part was cut off: on a new build.
    pub(crate) fn without_layout(&self, plan: &Plan, why: &str, stages: &Stages) -> Result<Outcome> {
        let scratch = Scratch::new(&plan.source, &plan.build, &plan.out, &self.interrupts)?;
        let built = Variant::build(plan, &scratch, None, stages)?;
        let nothing = format!("not studied to its end, with more than half of --budget used: {why}");
        let layout = LeverReport::without_time(LAYOUT, nothing.clone());
        let levers = self.try_all(layout, plan, Programs::unchanged(&built.tree), stages)?;
        scratch.check_untouched()?;
        let _keeping = self.interrupts.keeping();
        outputs::write_without_layout(plan, &nothing, levers, None)?;
        Ok(Outcome::Done)
    }

    /// All levers, those beside the layout tried on a copy of the program as it was built, and then those that gain
    /// together.
    pub(crate) fn try_all(
        &self,
        layout: LeverReport,
        plan: &Plan,
        Programs { built, patched, modelled, stalling }: Programs<'_>,
        stages: &Stages,
    ) -> Result<Vec<LeverReport>> {
        self.is_layout_done.set(true);
        let mut levers = vec![layout];
        let mut kept = Kept::default();
        // A lever has the time that the ones before it leave: those that gain in most programs come first, and the order
        // of code where most stalls are for it.
        let others = match stalling.as_ref().is_some_and(Stalling::is_for_code) {
            true => [Lever::Code, Lever::Pools, Lever::Placement, Lever::Prefetch],
            false => [Lever::Pools, Lever::Placement, Lever::Code, Lever::Prefetch],
        };
        for (place, lever) in others.into_iter().enumerate() {
            let is_tried = |lever: &&Lever| self.left_out(**lever).is_none();
            // Those together are compared as well.
            let options = self.options_of_one_of(others[place..].iter().filter(is_tried).count() as u64 + 1);
            let bounded = self.interrupts.for_at_most(self.left());
            let stages = &stages.of_part(&bounded);
            let tried = match self.left_out(lever) {
                Some(why) => Ok(LeverReport::without_time(lever.name(), why)),
                None => match lever {
                    Lever::Pools => self.edits(
                        EditKind::Pools,
                        (&options, plan),
                        stalling.clone(),
                        &mut kept,
                        (&bounded, stages),
                    ),
                    Lever::Prefetch => self.edits(
                        EditKind::Prefetches,
                        (&options, plan),
                        stalling.clone(),
                        &mut kept,
                        (&bounded, stages),
                    ),
                    Lever::Placement => self.placement(
                        (&options, plan),
                        (built, modelled.clone()),
                        &mut kept,
                        (&bounded, stages),
                    ),
                    _ => self.code_order((&options, plan), &mut kept, (&bounded, stages)),
                },
            };
            levers.push(self.reported(lever.name(), tried, stages)?);
        }
        series::add_edits(plan, &kept.edits)?;
        let gains: Vec<&LeverReport> = levers.iter().filter(|lever| lever.is_gain).collect();
        if gains.len() > 1 {
            let tried = self.together(&gains, plan, (built, patched), &kept, stages);
            let together = self.reported(TOGETHER, tried, stages)?;
            levers.push(together);
        }
        Ok(levers)
    }

    /// A lever's report; its error, unless the study was ended, is the reason why it has no figures.
    fn reported(
        &self,
        name: &'static str,
        tried: Result<LeverReport>,
        stages: &Stages,
    ) -> Result<LeverReport> {
        stages.end();
        self.interrupts.check()?;
        Ok(tried.unwrap_or_else(|error| {
            LeverReport::without_time(name, format!("not tried to its end: {error:#}"))
        }))
    }

    /// The levers that gain, in one program.
    fn together(
        &self,
        gains: &[&LeverReport],
        plan: &Plan,
        (built, patched): (&Tree, Option<&Tree>),
        kept: &Kept,
        stages: &Stages,
    ) -> Result<LeverReport> {
        let layout = patched.filter(|_| gains.iter().any(|lever| lever.lever == LAYOUT));
        let is_patched = layout.is_some() || !kept.edits.is_empty();
        let is_ordered_anew = is_patched && kept.ordered().is_some();
        // The order of the patched program's code is found and compared first.
        let comparisons = if is_ordered_anew { 3 } else { 2 };
        let options = &self.options_of_one_of(1);
        let needed = options.max_time.saturating_mul(comparisons);
        if self.left() < Duration::from_secs(needed) {
            let budget = self.options.levers.budget;
            let why = format!("not tried: less than {needed} s were left of --budget {budget}");
            return Ok(LeverReport::without_time(TOGETHER, why));
        }
        let bounded = self.interrupts.for_at_most(self.left());
        let stages = &stages.of_part(&bounded);
        let sources = match ChangedSources::of(plan, layout, &kept.edits, stages)? {
            Ok(sources) => sources,
            Err(why) => return Ok(LeverReport::without_time(TOGETHER, why)),
        };
        let both = match is_ordered_anew {
            true => {
                let patch = sources.patch.clone();
                code::study(code_options(options, plan, TOGETHER_FOLDER, patch), (&bounded, stages))?.ordered
            }
            false => None,
        };
        if is_ordered_anew && both.is_none() {
            let why = "the patched program in a new order cannot be compared";
            return Ok(LeverReport::without_time(TOGETHER, why));
        }
        let changed = sources.tree();
        let together = Together { options, plan, built, layout, changed, kept, interrupts: &bounded, stages };
        together.confirm(gains, both.as_ref().map(|(variant, _)| variant))
    }

    fn edits(
        &self,
        kind: EditKind,
        (options, plan): (&args::Options, &Plan),
        stalling: Option<Stalling>,
        kept: &mut Kept,
        (interrupts, stages): (&Interrupts, &Stages),
    ) -> Result<LeverReport> {
        let folder = match kind {
            EditKind::Pools => POOLS_FOLDER,
            EditKind::Prefetches => PREFETCH_FOLDER,
        };
        let out = plan.out.join(folder);
        fs::create_dir_all(&out)?;
        let edits = TimedEdits { kind, options, plan, out: &out, interrupts, stages };
        let (report, edit) = edits.study(stalling)?;
        timed_edits::write_details(&out, &report)?;
        kept.edits.extend(edit);
        Ok(report)
    }

    fn placement(
        &self,
        (options, plan): (&args::Options, &Plan),
        (built, modelled): (&Tree, Option<Placements>),
        kept: &mut Kept,
        (interrupts, stages): (&Interrupts, &Stages),
    ) -> Result<LeverReport> {
        let out = plan.out.join(PLACEMENT_FOLDER);
        fs::create_dir_all(&out)?;
        let studied = placement::of_built(options, (plan.run(built)?, modelled), &out, (interrupts, stages))?;
        kept.placement = studied.better;
        Ok(LeverReport::of_placement(&studied.report, page(PLACEMENT_FOLDER)))
    }

    fn code_order(
        &self,
        (options, plan): (&args::Options, &Plan),
        kept: &mut Kept,
        (interrupts, stages): (&Interrupts, &Stages),
    ) -> Result<LeverReport> {
        if let Err(missing) = Bolt::find(None) {
            return Ok(LeverReport::without_time(CODE_ORDER, format!("not tried: {missing}")));
        }
        let studied = code::study(code_options(options, plan, CODE_FOLDER, None), (interrupts, stages))?;
        let report = studied.report;
        let command = report.code.as_ref().map(|code| Action {
            purpose: "order the program's code after linking it with -Wl,--emit-relocs".into(),
            text: code.optimiser_command.clone(),
        });
        let lever = match &report.proof {
            Some(proof) => {
                let mut lever = LeverReport::of_proof(CODE_ORDER, proof, command);
                if options.code.has_test() {
                    lever.result += "; ordered by the first input, timed on the second";
                }
                lever
            }
            None => LeverReport::without_time(CODE_ORDER, report.not_proven.clone().unwrap_or_default()),
        };
        kept.ordered = studied.ordered.filter(|_| lever.is_gain);
        Ok(LeverReport { page: Some(page(CODE_FOLDER)), ..lever })
    }
}

/// The options of a study of code in a folder below that of the results.
fn code_options(options: &args::Options, plan: &Plan, folder: &str, patch: Option<PathBuf>) -> args::Options {
    let mut options = options.clone();
    options.code.code = true;
    options.code.patch = patch;
    options.out = plan.out.join(folder);
    options.overwrite = true;
    options
}

/// The page of a lever, relative to the study's folder.
fn page(folder: &str) -> String {
    Path::new(folder).join(result_files::PAGE).display().to_string()
}

/// The layout's lever, from the report of its study.
pub(crate) fn layout(report: &StudyReport) -> LeverReport {
    let apply = report.patch.as_ref().and_then(|_| report.commands.get(1));
    let apply = apply.map(|command| Action { purpose: command.purpose.clone(), text: command.text.clone() });
    match (&report.proof, &report.not_proven) {
        (Some(proof), _) => LeverReport::of_proof(LAYOUT, proof, apply),
        (None, Some(why)) => LeverReport::without_time(LAYOUT, why.clone()),
        (None, None) => LeverReport::without_time(LAYOUT, "no patch: nothing is changed"),
    }
}
