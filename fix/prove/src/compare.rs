//! Several variants side by side, on every quantity that was observed.

use crate::links::LinkPlan;
use crate::metric::{Absence, ELAPSED, Metric, Unit, over_runs};
use crate::readings::readings;
use crate::run::{Ending, RunResult, Runner, Slot, Variant};
use crate::schedule::{Order, Schedule};
use lineup_stats::StatsError;
use lineup_stats::bootstrap::Resampling;
use lineup_stats::holm;
use lineup_stats::modes::{self, Group};
use lineup_stats::paired::{DifferenceEstimate, PairedBlocks, RatioEstimate};
use lineup_stats::random::{self, Seed};
use lineup_stats::sequential::WidthStop;
use lineup_stats::series::{self, SeriesCheck};
use lineup_stats::summary::Summary;
use lineup_stats::verdict::{Verdict, judge};
use std::collections::BTreeMap;

/// The order and the extent of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparePlan {
    /// The number of variants: two or more.
    pub variants: usize,
    /// The order of the runs in a block.
    pub order: Order,
    /// Changes below this share count as equivalent (0.01 is 1 %).
    pub margin: f64,
    /// First look, target width and confidence level. A target width of zero never stops early.
    pub stop: WidthStop,
    /// The metric that decides about stopping and whose verdict stands first.
    pub primary: String,
    /// Blocks after which to stop: two or more.
    pub max_blocks: u64,
    /// Blocks before which time alone does not stop it: two or more.
    pub least_blocks: u64,
    /// Time spent on all timed runs after which to stop, once the least blocks are complete.
    pub max_time_ns: u64,
    /// Untimed runs of each variant at the start.
    pub warm_up: u32,
    /// Order and resampling follow from this.
    pub seed: Seed,
    /// The number of links of each variant. The runs of a block use the one that [`crate::links::link_of`] gives.
    pub links: u64,
}

impl Default for ComparePlan {
    fn default() -> Self {
        Self {
            variants: 2,
            order: Order::Mirrored,
            margin: 0.01,
            stop: WidthStop { first_look: 10, target_width: 0.0, level: 0.95 },
            primary: ELAPSED.into(),
            max_blocks: 10,
            least_blocks: 3,
            max_time_ns: u64::MAX,
            warm_up: 1,
            seed: Seed::default(),
            links: 1,
        }
    }
}

impl ComparePlan {
    /// True when the number of blocks depends on the measurements.
    fn may_stop_early(&self) -> bool {
        self.stop.target_width > 0.0
    }

    /// The paired t interval, paying for an early stop only when there may be one.
    fn paired(&self, pairs: &PairedBlocks) -> Result<RatioEstimate, StatsError> {
        if self.may_stop_early() { self.stop.estimate(pairs) } else { pairs.ratio(self.stop.level) }
    }
}

/// The reason why no more blocks were run.
#[derive(Debug)]
pub enum Stopped {
    /// The interval of the primary metric was narrow enough.
    Width,
    /// The number of blocks was reached.
    Blocks,
    /// The time was up.
    Time,
    /// A run could not be made; the blocks before it are complete and valid.
    Failed(Box<dyn std::error::Error + Send + Sync>),
}

/// The runs of complete blocks, in order.
#[derive(Debug)]
pub struct Collected {
    /// Each run with its slot.
    pub runs: Vec<(Slot, RunResult)>,
    /// The runs of the block that the error cut off.
    pub cut_off: Vec<(Slot, RunResult)>,
    /// The number of complete blocks.
    pub blocks: u64,
    /// The reason why it ended.
    pub stopped: Stopped,
}

/// Runs blocks until the plan is fulfilled. Never fails: the result holds the error and the blocks completed before it.
pub fn collect(runner: &mut dyn Runner, plan: &ComparePlan) -> Collected {
    let mut schedule = Schedule::new(plan.variants, plan.order, plan.seed);
    let mut collected =
        Collected { runs: Vec::new(), cut_off: Vec::new(), blocks: 0, stopped: Stopped::Blocks };
    for slot in schedule.warm_up(plan.warm_up) {
        if let Err(error) = runner.run(&slot) {
            collected.stopped = Stopped::Failed(error);
            return collected;
        }
    }
    let mut spent_ns = 0u64;
    while collected.blocks < plan.max_blocks.max(2) {
        let mut block = Vec::new();
        for slot in schedule.block() {
            match runner.run(&slot) {
                Ok(result) => block.push((slot, result)),
                Err(error) => {
                    collected.cut_off = block;
                    collected.stopped = Stopped::Failed(error);
                    return collected;
                }
            }
        }
        spent_ns = block.iter().fold(spent_ns, |spent, (_, run)| spent.saturating_add(run.spent_ns()));
        collected.runs.extend(block);
        collected.blocks += 1;
        if narrow_enough(&collected, plan) {
            collected.stopped = Stopped::Width;
            return collected;
        }
        if collected.blocks >= plan.least_blocks.max(2) && spent_ns >= plan.max_time_ns {
            collected.stopped = Stopped::Time;
            return collected;
        }
    }
    collected
}

/// True when the primary metric's interval is narrow enough for every variant.
fn narrow_enough(collected: &Collected, plan: &ComparePlan) -> bool {
    let blocks = usize::try_from(collected.blocks).unwrap_or(usize::MAX);
    if !plan.stop.looks_at(blocks) {
        return false;
    }
    let table = Table::of(collected, plan);
    let Some(metric) = table.metrics.iter().find(|metric| metric.name == plan.primary) else {
        return false;
    };
    (1..plan.variants).all(|variant| {
        let pairs = table.pairs(metric, Variant::BEFORE, Variant(variant));
        pairs.is_ok_and(|pairs| plan.stop.is_reached(&pairs).unwrap_or(false))
    })
}

/// The values of two variants.
type BothValues = (Vec<f64>, Vec<f64>);

/// All metrics over all runs, with the slots that say which run is which.
struct Table {
    slots: Vec<Slot>,
    metrics: Vec<Metric>,
    links: LinkPlan,
}

impl Table {
    fn of(collected: &Collected, plan: &ComparePlan) -> Self {
        let all: Vec<_> = collected.runs.iter().map(|(_, result)| readings(result)).collect();
        let slots = collected.runs.iter().map(|(slot, _)| *slot).collect();
        let links = LinkPlan { links: plan.links, seed: plan.seed };
        Self { slots, metrics: over_runs(&all), links }
    }

    /// The values of one variant in run order.
    fn values(&self, metric: &Metric, variant: Variant) -> Result<Vec<f64>, Absence> {
        let runs = self.slots.iter().zip(&metric.per_run);
        runs.filter(|(slot, _)| slot.variant == variant).map(|(_, observed)| observed.value()).collect()
    }

    /// Two variants block by block; where there are several links of each, link by link: the common part of two blocks
    /// of one link says nothing about other links.
    fn pairs(&self, metric: &Metric, before: Variant, after: Variant) -> Result<PairedBlocks, Unpairable> {
        let all = self.groups(metric, [before, after], |block| self.links.group(block))?;
        PairedBlocks::from_runs(&all).map_err(Unpairable::Stats)
    }

    /// The blocks in the order of their runs, whichever links they used.
    fn blocks(&self, metric: &Metric, before: Variant, after: Variant) -> Result<PairedBlocks, Unpairable> {
        let all = self.groups(metric, [before, after], |block| block)?;
        PairedBlocks::from_runs(&all).map_err(Unpairable::Stats)
    }

    /// The values of two variants in groups of blocks.
    fn groups(
        &self,
        metric: &Metric,
        [before, after]: [Variant; 2],
        group: impl Fn(u64) -> u64,
    ) -> Result<Vec<BothValues>, Unpairable> {
        let mut groups: BTreeMap<u64, BothValues> = BTreeMap::new();
        for (slot, observed) in self.slots.iter().zip(&metric.per_run) {
            let Some(block) = slot.block else { continue };
            let (left, right) = groups.entry(group(block)).or_default();
            if slot.variant == before {
                left.push(observed.value().map_err(|_| Unpairable::Absent)?);
            } else if slot.variant == after {
                right.push(observed.value().map_err(|_| Unpairable::Absent)?);
            }
        }
        Ok(groups.into_values().collect())
    }
}

/// The reason why two variants cannot be compared on a metric.
enum Unpairable {
    Absent,
    Stats(StatsError),
}

/// Several variants compared.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The number of complete blocks it rests on.
    pub blocks: u64,
    /// The number of links of each variant that these blocks used.
    pub links: u64,
    /// Every quantity, the primary one first.
    pub metrics: Vec<ComparedMetric>,
    /// Per variant, how many runs did not exit with status 0.
    pub failed_runs: Vec<usize>,
}

/// One quantity over all variants.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparedMetric {
    /// The quantity's name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Each variant by itself.
    pub variants: Vec<Result<VariantValues, Absence>>,
    /// Each variant but the first against the first.
    pub contrasts: Vec<Contrast>,
}

/// One quantity of one variant.
#[derive(Clone, PartialEq, Debug)]
pub struct VariantValues {
    /// The summary.
    pub summary: Summary,
    /// The groups the values fall into.
    pub modes: Vec<Group>,
    /// The check of their order; `None` with fewer than eight runs.
    pub series: Option<SeriesCheck>,
    /// The values in run order.
    pub values: Vec<f64>,
}

/// One variant against the first, on one quantity.
#[derive(Clone, PartialEq, Debug)]
pub struct Contrast {
    /// The variant.
    pub variant: Variant,
    /// The estimated difference.
    pub estimate: Estimated,
    /// P-value after Holm's correction over the family: the primary metric's variants, or all
    /// variants on all other metrics.
    pub adjusted_p: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// True when the whole interval lies inside the margin.
    pub within_margin: bool,
    /// The smallest change that would have been found four times in five, as a share; `None` for
    /// differences of counts whose mean is zero.
    pub smallest_detectable: Option<f64>,
    /// The share of the spread of blocks that lies between links; `None` with one link, and where it cannot be
    /// estimated.
    pub link_share: Option<f64>,
}

/// The difference between two variants on a quantity.
#[derive(Clone, PartialEq, Debug)]
pub enum Estimated {
    /// A ratio.
    Ratio {
        /// The estimate that the verdict rests on: the block bootstrap of the ratio of totals with ten
        /// blocks or more, the paired t interval with fewer.
        judged: RatioEstimate,
        /// The paired t interval of the typical (geometric mean) ratio.
        paired: RatioEstimate,
    },
    /// A difference, because some value is zero or below.
    Difference(DifferenceEstimate),
}

impl Estimated {
    fn p_value(&self) -> f64 {
        match self {
            Estimated::Ratio { judged, .. } => judged.p_value,
            Estimated::Difference(difference) => difference.p_value,
        }
    }
}

/// Blocks from which the bootstrap is used.
const RESAMPLED_FROM: usize = 10;

/// Judges the collected blocks.
///
/// # Errors
/// With fewer than two complete blocks, or a plan with parameters out of range.
pub fn judge_all(collected: &Collected, plan: &ComparePlan) -> Result<Comparison, StatsError> {
    let complete = usize::try_from(collected.blocks).unwrap_or(usize::MAX);
    if complete < 2 {
        return Err(StatsError::TooFew { what: "a comparison (in blocks)", needed: 2, got: complete });
    }
    let table = Table::of(collected, plan);
    let mut metrics = Vec::new();
    for metric in &table.metrics {
        metrics.push(compare_metric(&table, metric, plan)?);
    }
    metrics.sort_by_key(|metric| metric.name != plan.primary);
    correct(&mut metrics, plan);
    let failed = |variant| {
        let runs = collected.runs.iter().filter(|(slot, _)| slot.variant == Variant(variant));
        runs.filter(|(_, run)| run.ending != Ending::Exited(0)).count()
    };
    let failed_runs = (0..plan.variants).map(failed).collect();
    let links = plan.links.min(collected.blocks).max(1);
    Ok(Comparison { blocks: collected.blocks, links, metrics, failed_runs })
}

fn compare_metric(table: &Table, metric: &Metric, plan: &ComparePlan) -> Result<ComparedMetric, StatsError> {
    let mut variants = Vec::new();
    for variant in (0..plan.variants).map(Variant) {
        variants.push(match table.values(metric, variant) {
            Err(absence) => Err(absence),
            Ok(values) => Ok(VariantValues {
                summary: Summary::of(&values)?,
                modes: modes::find(&values)?,
                series: series::check(&values).ok(),
                values,
            }),
        });
    }
    let mut contrasts = Vec::new();
    for variant in (1..plan.variants).map(Variant) {
        match table.pairs(metric, Variant::BEFORE, variant) {
            Err(Unpairable::Absent) => {}
            Err(Unpairable::Stats(error)) => return Err(error),
            Ok(pairs) => {
                let blocks = table.blocks(metric, Variant::BEFORE, variant).ok();
                // A block may have a zero where its link has none.
                let with_ratios = blocks.and_then(|blocks| Some((blocks.log_ratios().ok()?, blocks)));
                let link_share = with_ratios.as_ref().and_then(|(ratios, _)| table.links.share(ratios));
                let blocks = with_ratios.as_ref().map_or(&pairs, |(_, blocks)| blocks);
                contrasts.push(Contrast { link_share, ..contrast(variant, &pairs, blocks, plan)? });
            }
        }
    }
    Ok(ComparedMetric { name: metric.name.clone(), unit: metric.unit.clone(), variants, contrasts })
}

/// Estimates one contrast from pairs, which are of links where there are several; `blocks` are in the order of their runs.
/// Its verdict stands until the correction for several questions.
fn contrast(
    variant: Variant,
    pairs: &PairedBlocks,
    blocks: &PairedBlocks,
    plan: &ComparePlan,
) -> Result<Contrast, StatsError> {
    let paired = match plan.paired(pairs) {
        Ok(paired) => paired,
        Err(StatsError::NotPositive { .. }) => return difference(variant, pairs, plan),
        Err(error) => return Err(error),
    };
    let judged = if pairs.len() >= RESAMPLED_FROM { resampled(pairs, plan)? } else { paired };
    let judgement = judge(&judged, plan.margin).in_order(judged.ratio, blocks)?;
    Ok(Contrast {
        variant,
        adjusted_p: judged.p_value,
        estimate: Estimated::Ratio { judged, paired },
        verdict: judgement.verdict,
        within_margin: judgement.within_margin,
        smallest_detectable: Some(judgement.smallest_detectable),
        link_share: None,
    })
}

/// The block bootstrap, with longer runs of blocks when neighbours resemble each other.
fn resampled(pairs: &PairedBlocks, plan: &ComparePlan) -> Result<RatioEstimate, StatsError> {
    let early = plan.may_stop_early();
    let resampling = Resampling {
        run_length: series::run_length(&pairs.log_ratios()?),
        level: if early { plan.stop.working_level() } else { plan.stop.level },
        seed: plan.seed,
        ..Resampling::default()
    };
    let estimate = pairs.ratio_of_totals(&resampling)?;
    Ok(if early { plan.stop.settle(estimate) } else { estimate })
}

fn difference(variant: Variant, pairs: &PairedBlocks, plan: &ComparePlan) -> Result<Contrast, StatsError> {
    let estimate = pairs.difference(plan.stop.level)?;
    let (before, _) = pairs.means();
    let usual = before.iter().sum::<f64>() / before.len() as f64;
    let room = plan.margin * usual.abs();
    let interval = estimate.interval;
    let is_nothing = interval.low == 0.0 && interval.high == 0.0;
    let within_margin = is_nothing || interval.lies_inside(-room, room);
    let verdict = if !interval.contains(0.0) {
        Verdict::Changed
    } else if within_margin {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    };
    Ok(Contrast {
        variant,
        adjusted_p: estimate.p_value,
        estimate: Estimated::Difference(estimate),
        verdict,
        within_margin,
        smallest_detectable: None,
        link_share: None,
    })
}

/// The rate at which a comparison of a program with itself would have called it changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FalseAlarms {
    /// The number of replayed comparisons.
    pub replays: u64,
    /// The number of them that said "changed".
    pub alarms: u64,
}

impl FalseAlarms {
    /// The share of alarms.
    pub fn rate(&self) -> f64 {
        self.alarms as f64 / self.replays.max(1) as f64
    }
}

/// Replays the comparison on the runs of a program compared with itself. In every replay the blocks come in another
/// order, and a coin decides the first and the second run of a block. The plan's stop and judgement then run as usual.
/// `None` when the primary metric was not observed or is not above zero.
///
/// # Errors
/// As [`judge_all`].
pub fn replay_false_alarms(
    collected: &Collected,
    plan: &ComparePlan,
    replays: u64,
) -> Result<Option<FalseAlarms>, StatsError> {
    let table = Table::of(collected, plan);
    let Some(metric) = table.metrics.iter().find(|metric| metric.name == plan.primary) else {
        return Ok(None);
    };
    let pairs = match table.pairs(metric, Variant::BEFORE, Variant::AFTER) {
        Ok(pairs) if pairs.log_ratios().is_ok() => pairs,
        Ok(_) | Err(Unpairable::Absent) => return Ok(None),
        Err(Unpairable::Stats(error)) => return Err(error),
    };
    let mut alarms = 0;
    for replay in 0..replays {
        let replayed = replayed(&pairs, plan, plan.seed.part(replay))?;
        let judged = contrast(Variant::AFTER, &replayed, &replayed, plan)?;
        alarms += u64::from(judged.verdict == Verdict::Changed);
    }
    Ok(Some(FalseAlarms { replays, alarms }))
}

/// The blocks that one replay would have measured before it stopped.
fn replayed(pairs: &PairedBlocks, plan: &ComparePlan, seed: Seed) -> Result<PairedBlocks, StatsError> {
    let (first, second) = pairs.means();
    let mut blocks: Vec<(f64, f64)> = first.iter().copied().zip(second.iter().copied()).collect();
    random::shuffle(&mut blocks, seed);
    for (index, block) in blocks.iter_mut().enumerate() {
        if seed.part(index as u64).0.is_multiple_of(2) {
            *block = (block.1, block.0);
        }
    }
    let take = |count: usize| {
        let (before, after) = blocks.iter().take(count).copied().unzip();
        PairedBlocks::from_means(before, after)
    };
    for count in 1..blocks.len() {
        let so_far = take(count)?;
        if plan.may_stop_early() && plan.stop.is_reached(&so_far)? {
            return Ok(so_far);
        }
    }
    take(blocks.len())
}

/// Holm's correction, once over the primary metric's variants and once over everything else; a change that does not
/// survive it gets the verdict that its interval still supports.
fn correct(metrics: &mut [ComparedMetric], plan: &ComparePlan) {
    for is_primary in [true, false] {
        let mut family: Vec<&mut Contrast> = metrics
            .iter_mut()
            .filter(|metric| (metric.name == plan.primary) == is_primary)
            .flat_map(|metric| metric.contrasts.iter_mut())
            .collect();
        let p_values: Vec<f64> = family.iter().map(|contrast| contrast.estimate.p_value()).collect();
        for (contrast, adjusted) in family.iter_mut().zip(holm::adjust(&p_values)) {
            contrast.adjusted_p = adjusted;
            if contrast.verdict == Verdict::Changed && adjusted > 1.0 - plan.stop.level {
                contrast.verdict =
                    if contrast.within_margin { Verdict::Equivalent } else { Verdict::Inconclusive };
            }
        }
    }
}
