//! Chooses one of many variants of a program: mirrored rounds drop the slower half of the candidates until one is left.
//! The choice favours a lucky candidate, so the last one is compared once more in runs of its own.

use crate::compare::{
    Collected, ComparePlan, ComparedMetric, Comparison, Contrast, Estimated, Stopped, collect, judge_all,
};
use crate::metric::PEAK_MEMORY;
use crate::run::{RunResult, Runner, Slot, Variant};
use lineup_stats::random::Seed;

/// Blocks of the first rounds; later rounds have as many as the last of these.
const BLOCKS: [u64; 3] = [4, 5, 6];

/// Blocks of a round that keeps several candidates, where runs are long: two tell the faster half.
const FEWEST_BLOCKS: u64 = 2;

/// Of two candidates that take the same time within the margin, one with less than this share of the other's memory is
/// better.
const LESS_MEMORY: f64 = 0.95;

/// The extent of an elimination.
#[derive(Clone, PartialEq, Debug)]
pub struct EliminationPlan {
    /// The number of candidates: variants 1 and up. Variant 0 is the unchanged program.
    pub candidates: usize,
    /// Margin, level, seed and deciding metric. Intervals of rounds are wider, for the number of candidates.
    pub compare: ComparePlan,
    /// Time of the timed runs of all rounds together.
    pub max_time_ns: u64,
}

impl EliminationPlan {
    /// The confidence level of each candidate's interval: all of them together keep that of the comparison.
    pub fn level(&self) -> f64 {
        1.0 - (1.0 - self.compare.stop.level) / self.candidates.max(1) as f64
    }
}

/// One round: the unchanged program and the candidates that were left.
#[derive(Debug)]
pub struct Round {
    /// The variants, the unchanged program first; [`Contrast::variant`] counts places in this list.
    pub variants: Vec<Variant>,
    /// Its judged runs.
    pub comparison: Comparison,
}

impl Round {
    /// A candidate against the unchanged program on a metric.
    pub fn contrast(&self, candidate: Variant, metric: &str) -> Option<&Contrast> {
        let place = self.place(candidate)?;
        self.metric(metric)?.contrasts.iter().find(|contrast| contrast.variant == place)
    }

    /// The mean of a metric of a variant.
    pub fn mean(&self, variant: Variant, metric: &str) -> Option<f64> {
        let place = self.place(variant)?;
        Some(self.metric(metric)?.variants.get(place.0)?.as_ref().ok()?.summary.mean)
    }

    fn metric(&self, name: &str) -> Option<&ComparedMetric> {
        self.comparison.metrics.iter().find(|metric| metric.name == name)
    }

    fn place(&self, variant: Variant) -> Option<Variant> {
        self.variants.iter().position(|one| *one == variant).map(Variant)
    }
}

/// The end of a candidate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It printed something else or ended otherwise than the unchanged program, in words.
    Differs(String),
    /// Others were faster.
    Dropped,
    /// It was left at the end.
    Last,
    /// The elimination was cut short before it was decided.
    Undecided,
}

/// The rounds and their result.
#[derive(Debug)]
pub struct Elimination {
    /// All rounds, in order.
    pub rounds: Vec<Round>,
    /// The end of each candidate, variant 1 first.
    pub fates: Vec<Fate>,
    /// Why the unchanged program's output cannot be compared: two of its own runs differ.
    pub unrepeatable: Option<String>,
    /// The error that cut it short. Complete rounds before it are valid.
    pub cut_short: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Elimination {
    /// The candidate that was left.
    pub fn last(&self) -> Option<Variant> {
        self.fates.iter().position(|fate| *fate == Fate::Last).map(|at| Variant(at + 1))
    }

    /// The last round that a candidate took part in.
    pub fn last_round(&self, candidate: Variant) -> Option<&Round> {
        self.rounds.iter().rev().find(|round| round.variants.contains(&candidate))
    }
}

/// A runner of some of another's variants.
pub struct Chosen<'r> {
    /// The other runner.
    pub runner: &'r mut dyn Runner,
    /// Its variants, in this one's order.
    pub variants: Vec<Variant>,
}

impl Runner for Chosen<'_> {
    fn run(&mut self, slot: &Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>> {
        let variant = self.variants.get(slot.variant.0).copied().unwrap_or(slot.variant);
        self.runner.run(&Slot { variant, ..*slot })
    }
}

/// The most runs that an elimination of so many candidates takes, warm-up included.
pub fn most_runs(candidates: usize) -> u64 {
    let lefts = std::iter::successors(Some(candidates), |&left| (left > 2).then(|| kept(left)));
    let runs = lefts.zip(0..).map(|(left, round)| (left as u64 + 1) * 2 * blocks(round));
    candidates as u64 + 1 + runs.sum::<u64>()
}

/// The number of candidates that a round keeps: half of them, and at least one where there is one.
fn kept(left: usize) -> usize {
    left.div_ceil(2).min(left.saturating_sub(1)).max(left.min(1))
}

/// The most blocks of a round, counted from 0.
fn blocks(round: usize) -> u64 {
    BLOCKS[round.min(BLOCKS.len() - 1)]
}

/// Drops candidates until one is left, or none that does the same as the unchanged program.
pub fn eliminate(runner: &mut dyn Runner, plan: &EliminationPlan) -> Elimination {
    let mut left: Vec<Variant> = (1..=plan.candidates).map(Variant).collect();
    let mut result = Elimination {
        rounds: Vec::new(),
        fates: vec![Fate::Undecided; plan.candidates],
        unrepeatable: None,
        cut_short: None,
    };
    let rounds = plan.candidates.max(2).next_power_of_two().ilog2().max(1);
    while !left.is_empty() {
        let round = result.rounds.len();
        let variants: Vec<Variant> = std::iter::once(Variant::BEFORE).chain(left.iter().copied()).collect();
        let plan = round_plan(plan, round, u64::from(rounds), variants.len());
        let mut chosen = Chosen { runner: &mut *runner, variants: variants.clone() };
        let collected = collect(&mut chosen, &plan);
        let judged = judge_all(&collected, &plan);
        left.retain(|candidate| {
            match difference(&collected, &variants, *candidate, &mut result.unrepeatable) {
                None => true,
                Some(words) => {
                    result.fates[candidate.0 - 1] = Fate::Differs(words);
                    false
                }
            }
        });
        match judged {
            Ok(comparison) => result.rounds.push(Round { variants, comparison }),
            Err(error) if !matches!(collected.stopped, Stopped::Failed(_)) => {
                result.cut_short = Some(Box::new(error));
                return result;
            }
            Err(_) => {}
        }
        if let Stopped::Failed(error) = collected.stopped {
            result.cut_short = Some(error);
            return result;
        }
        keep_faster_half(&mut left, &mut result, &plan);
        if let [last] = left[..] {
            result.fates[last.0 - 1] = Fate::Last;
            return result;
        }
    }
    result
}

/// The next round's plan: intervals are as wide as the number of candidates demands.
fn round_plan(plan: &EliminationPlan, round: usize, rounds: u64, variants: usize) -> ComparePlan {
    let mut own = plan.compare.clone();
    own.variants = variants;
    own.max_blocks = blocks(round);
    own.least_blocks = if variants > 3 { FEWEST_BLOCKS } else { plan.compare.least_blocks };
    own.max_time_ns = plan.max_time_ns / rounds.max(1);
    // The first round has warmed up what later ones find.
    own.warm_up = if round == 0 { plan.compare.warm_up } else { 0 };
    own.stop.target_width = 0.0;
    own.stop.level = plan.level();
    // Every round has an order and environments of its own.
    own.seed = Seed(plan.compare.seed.part(round as u64).0);
    own
}

/// Keeps the faster half of the candidates, and at least one. Of two that take the same time, the one with less memory
/// stays.
fn keep_faster_half(left: &mut Vec<Variant>, result: &mut Elimination, plan: &ComparePlan) {
    let Some(round) = result.rounds.last() else { return };
    let ratio = |candidate: &Variant| match round.contrast(*candidate, &plan.primary).map(|one| &one.estimate)
    {
        Some(Estimated::Ratio { judged, .. }) => judged.ratio,
        _ => f64::INFINITY,
    };
    left.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
    if let [first, second] = left[..]
        && ratio(&second) - ratio(&first) < plan.margin
        && let Some(memory) = round.mean(first, PEAK_MEMORY)
        && round.mean(second, PEAK_MEMORY).is_some_and(|less| less < memory * LESS_MEMORY)
    {
        left.swap(0, 1);
    }
    for dropped in left.drain(kept(left.len())..) {
        result.fates[dropped.0 - 1] = Fate::Dropped;
    }
    left.sort();
}

/// A candidate's difference from the unchanged program in output and ending. Output that differs between two runs of
/// the unchanged program is not compared.
fn difference(
    collected: &Collected,
    variants: &[Variant],
    candidate: Variant,
    unrepeatable: &mut Option<String>,
) -> Option<String> {
    let runs_of = |variant: Variant| {
        let runs = collected.runs.iter();
        runs.filter(move |(slot, _)| variants.get(slot.variant.0) == Some(&variant)).map(|(_, run)| run)
    };
    let first = runs_of(Variant::BEFORE).next()?;
    if unrepeatable.is_none() {
        *unrepeatable = runs_of(Variant::BEFORE).find_map(|run| first.difference(run));
    }
    runs_of(candidate).find_map(|run| match unrepeatable.is_some() {
        false => first.difference(run),
        true => first.ending_difference(run),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Ending, Usage};

    /// A runner whose variants take these times, with a little noise that depends on the run.
    fn timed(
        times_ns: Vec<u64>,
    ) -> impl FnMut(&Slot) -> Result<RunResult, Box<dyn std::error::Error + Send + Sync>> {
        move |slot: &Slot| {
            let noise = slot.number.wrapping_mul(7919) % 1000;
            Ok(RunResult::finished(0, b"the same", b"", times_ns[slot.variant.0] + noise))
        }
    }

    fn plan(candidates: usize) -> EliminationPlan {
        EliminationPlan { candidates, compare: ComparePlan::default(), max_time_ns: u64::MAX }
    }

    #[test]
    fn the_fastest_candidate_is_left_and_each_has_a_figure() {
        let times = vec![1_000_000, 1_100_000, 950_000, 800_000, 990_000, 1_300_000, 810_000];
        let result = eliminate(&mut timed(times), &plan(6));
        assert_eq!(result.last(), Some(Variant(3)));
        assert!(result.cut_short.is_none() && result.unrepeatable.is_none());
        for candidate in (1..=6).map(Variant) {
            let round = result.last_round(candidate).expect("a round");
            assert!(round.contrast(candidate, "elapsed").is_some(), "{candidate}");
            assert!(round.mean(candidate, "elapsed") > Some(0.0), "{candidate}");
        }
        let sizes: Vec<usize> = result.rounds.iter().map(|round| round.variants.len() - 1).collect();
        assert_eq!(sizes, [6, 3, 2]);
    }

    #[test]
    fn of_two_that_take_the_same_time_the_one_with_less_memory_is_left() {
        let memory_mib = [10, 15, 12];
        let chosen = |times_ns: [u64; 3]| {
            let mut timed = timed(times_ns.to_vec());
            let mut runner = |slot: &Slot| {
                let mut run = timed(slot)?;
                let peak_memory_bytes = Some(memory_mib[slot.variant.0] << 20);
                run.usage = Some(Usage { peak_memory_bytes, ..Usage::default() });
                Ok(run)
            };
            eliminate(&mut runner, &plan(2)).last()
        };
        assert_eq!(chosen([1_000_000, 800_000, 803_000]), Some(Variant(2)));
        assert_eq!(chosen([1_000_000, 800_000, 850_000]), Some(Variant(1)));
    }

    #[test]
    fn long_runs_have_two_blocks_while_several_candidates_are_left() {
        let mut runner = timed(vec![1_000_000, 900_000, 800_000, 700_000, 600_000]);
        let result = eliminate(&mut runner, &EliminationPlan { max_time_ns: 1, ..plan(4) });
        let blocks: Vec<u64> = result.rounds.iter().map(|round| round.comparison.blocks).collect();
        assert_eq!((result.last(), blocks), (Some(Variant(4)), vec![2, 3]));
    }

    #[test]
    fn a_candidate_that_prints_or_ends_otherwise_is_out_however_fast_it_is() {
        let mut runner = |slot: &Slot| {
            Ok(match slot.variant.0 {
                0 => RunResult::finished(0, b"one", b"", 1_000_000),
                1 => RunResult::finished(0, b"two", b"", 1_000),
                2 => RunResult { ending: Ending::Killed(11), ..RunResult::finished(0, b"one", b"", 1_000) },
                _ => RunResult::finished(0, b"one", b"", 900_000),
            })
        };
        let result = eliminate(&mut runner, &plan(3));
        assert_eq!(result.last(), Some(Variant(3)));
        assert!(matches!(&result.fates[0], Fate::Differs(words) if words.contains("standard output")));
        assert!(matches!(&result.fates[1], Fate::Differs(words) if words.contains("SIGSEGV")));
    }

    #[test]
    fn none_is_left_where_all_do_something_else() {
        let mut runner = |slot: &Slot| {
            Ok(RunResult::finished(i32::from(slot.variant != Variant::BEFORE), b"", b"", 1_000))
        };
        let result = eliminate(&mut runner, &plan(3));
        assert_eq!((result.last(), result.rounds.len()), (None, 1));
        assert!(result.fates.iter().all(|fate| matches!(fate, Fate::Differs(_))), "{:?}", result.fates);
    }

    #[test]
    fn output_that_differs_from_run_to_run_is_not_held_against_a_candidate() {
        let mut runner =
            |slot: &Slot| Ok(RunResult::finished(0, slot.number.to_string().as_bytes(), b"", 1_000_000));
        let result = eliminate(&mut runner, &plan(2));
        assert!(result.unrepeatable.is_some());
        assert!(result.last().is_some());
    }

    #[test]
    fn an_error_keeps_the_rounds_before_it() {
        let mut inner = timed(vec![1_000_000, 900_000, 800_000]);
        let mut runner = |slot: &Slot| match slot.number {
            // The second round of two candidates and one numbers its runs anew.
            _ if slot.variant.0 > 2 => Err("no such variant".into()),
            _ => inner(slot),
        };
        let result = eliminate(&mut runner, &plan(3));
        assert!(result.cut_short.is_some() && result.last().is_none());
        assert!(result.fates.iter().all(|fate| *fate == Fate::Undecided));
    }
}
