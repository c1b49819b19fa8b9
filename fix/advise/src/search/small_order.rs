//! Orders that few moves lead to: people read a small patch.
//!
//! A seldom touched unit moves to the end of its section or not at all, and at most one such unit moves. Elsewhere its
//! only purpose would be to shift the units behind it. Nothing large moves, and no hole appears. No region pays for
//! another's saving. A [`Review`] has further objections. Of two patches that save nearly the same, the one that is
//! easier to read is taken.

use crate::constraints::review::Review;
use crate::layout::granules::ONE;
use crate::search::best_order::{LINE_PARTS, candidates, drawn_together, hot_sets, units_of};
use crate::search::outcome::Outcome;
use crate::search::score::{Baseline, Problem, Score};
use crate::search::unit_set::UnitSet;
use lineup_model::region::RegionId;
use std::collections::{BTreeMap, BTreeSet};

/// The best order within `most` moves of one unit. `None` when not even the present order can be placed.
pub(crate) fn by_moves(problem: &Problem, most: usize, review: &Review) -> Option<Outcome> {
    let before = problem.baseline()?;
    let present: Vec<usize> = (0..problem.units.len()).collect();
    let mut small = Small {
        problem,
        before: &before,
        most,
        review,
        beside_written: review.beside_written(problem, &present),
        used: used(problem),
        present: problem.region_lines(&present)?,
        holes: problem.holes(&present)?,
        found: Vec::new(),
    };
    small.take(&present);
    for candidate in candidates(problem).into_iter().chain(lines_emptied(problem, most)) {
        small.take(&candidate);
    }
    small.step_by_step();
    small.all_pairs();
    let (score, order) = small.smallest()?;
    Some(Outcome { order, score, is_proven: false, further: None })
}

/// A region may need more lines up to the largest saving of another divided by this.
const FAIR: i64 = 20;

/// Four fifths.
const NEARLY: (u64, u64) = (4, 5);

/// A unit of more lines than this does not move.
const LARGE_LINES: u64 = 4;

/// The largest number of orders tried two moves away from the present one.
const MOST_PAIRS: usize = 40_000;

/// A unit that no region touches as often as once in ten calls is cold.
const SELDOM: u64 = ONE / 10;

/// Units that the calls of some region touch often enough to be moved for it.
fn used(problem: &Problem) -> UnitSet {
    let mut touches: BTreeMap<(RegionId, usize), u64> = BTreeMap::new();
    for demand in problem.models.first().into_iter().flat_map(|model| &model.demands) {
        for unit in units_of(problem, demand) {
            let sum = touches.entry((demand.region, unit)).or_default();
            *sum = sum.saturating_add(demand.per_call);
        }
    }
    let often = touches.into_iter().filter(|(_, per_call)| *per_call >= SELDOM);
    UnitSet::of(problem.units.len(), often.map(|((_, unit), _)| unit))
}

/// One of the orders with few moved units.
struct OrderCandidate {
    moved: usize,
    bytes: u64,
    score: Score,
    order: Vec<usize>,
}

struct Small<'p> {
    problem: &'p Problem,
    before: &'p Baseline,
    most: usize,
    /// The objections to orders.
    review: &'p Review,
    /// Members that calls only read, and that lie beside those that change in the present order.
    beside_written: BTreeSet<usize>,
    /// Units that calls touch often.
    used: UnitSet,
    /// The lines that each region needs in the present order.
    present: BTreeMap<RegionId, u64>,
    holes: usize,
    found: Vec<OrderCandidate>,
}

impl Small<'_> {
    fn score(&self, order: &[usize]) -> Option<Score> {
        self.problem.allows(order).then(|| self.problem.score(order, Some(self.before)))?
    }

    /// The units that move, if the touches of calls explain the moves to a reader.
    fn moved(&self, order: &[usize]) -> Option<Vec<usize>> {
        let stays = self.problem.stays(order);
        let moved = || order.iter().enumerate().filter(|(_, unit)| !stays.contains(**unit));
        let is_cold = |unit: &usize| !self.used.contains(*unit);
        let cold = moved().filter(|(_, unit)| is_cold(unit)).count();
        let is_told = |(at, unit): (usize, &usize)| !is_cold(unit) || ends_segment(self.problem, order, at);
        let large = LARGE_LINES * self.problem.primary.bytes();
        let is_small = |(_, unit): (usize, &usize)| self.problem.unit_bytes(*unit) <= large;
        let is_read =
            moved().count() <= self.most && cold <= 1 && moved().all(is_told) && moved().all(is_small);
        let is_accepted = is_read && self.review.accepts_moves(self.problem, (order, &stays), &self.used);
        is_accepted.then(|| moved().map(|(_, &unit)| unit).collect())
    }

    /// Keeps an order that people would read, and that is better than the present one.
    fn take(&mut self, order: &[usize]) {
        let Some(moved) = self.moved(order) else { return };
        let Some(score) = self.score(order) else { return };
        let is_better = moved.is_empty() || self.found.first().is_none_or(|present| score < present.score);
        let stays_apart = || self.review.beside_written(self.problem, order).is_subset(&self.beside_written);
        if is_better
            && self.is_fair(order)
            && stays_apart()
            && self.problem.holes(order).is_some_and(|holes| holes <= self.holes)
        {
            let bytes = moved.iter().map(|&unit| self.problem.unit_bytes(unit)).sum();
            self.found.push(OrderCandidate { moved: moved.len(), bytes, score, order: order.to_vec() });
        }
    }

    /// Whether no region needs noticeably more lines so that another needs fewer.
    fn is_fair(&self, order: &[usize]) -> bool {
        let Some(after) = self.problem.region_lines(order) else { return false };
        let rises = |region| {
            let lines = |all: &BTreeMap<RegionId, u64>| all.get(&region).copied().unwrap_or(0).cast_signed();
            lines(&after) - lines(&self.present)
        };
        let changes: Vec<i64> = after.keys().map(|&region| rises(region)).collect();
        let saved = changes.iter().min().copied().unwrap_or(0).min(0).saturating_neg();
        changes.iter().all(|&rise| rise.saturating_mul(FAIR) <= saved)
    }

    /// Each time the move that saves most.
    fn step_by_step(&mut self) {
        let mut order: Vec<usize> = (0..self.problem.units.len()).collect();
        let Some(mut score) = self.score(&order) else { return };
        for _ in 0..self.most {
            let scored = self.moves(&order).into_iter().filter_map(|next| Some((self.score(&next)?, next)));
            let Some((next_score, next)) = scored.min() else { return };
            if next_score[..LINE_PARTS] >= score[..LINE_PARTS] {
                return;
            }
            (score, order) = (next_score, next);
            self.take(&order);
        }
    }

    /// Any two moves, of which the first alone may save nothing, where there are not too many.
    fn all_pairs(&mut self) {
        let present: Vec<usize> = (0..self.problem.units.len()).collect();
        let first = self.moves(&present);
        if self.most < 2 || first.len().saturating_pow(2) > MOST_PAIRS {
            return;
        }
        let pairs: BTreeSet<Vec<usize>> = first.iter().flat_map(|order| self.moves(order)).collect();
        for order in first.iter().chain(&pairs) {
            self.take(order);
        }
    }

    /// The orders that moving one unit within its segment leads to: one that calls use, or a neighbour of such a unit.
    fn moves(&self, order: &[usize]) -> Vec<Vec<usize>> {
        let units = &self.problem.units;
        let may_move = |&(from, to): &(usize, usize)| {
            from != to
                && (self.used.contains(order[from]) || is_beside(order, from, &self.used))
                && !units[order[from]].is_fixed
                && units[order[from]].segment == units[order[to]].segment
        };
        let places = (0..order.len()).flat_map(|from| (0..order.len()).map(move |to| (from, to)));
        let moved = places.filter(may_move).map(|(from, to)| {
            let mut next = order.to_vec();
            let unit = next.remove(from);
            next.insert(to, unit);
            next
        });
        moved.filter(|next| self.moved(next).is_some()).collect()
    }

    /// The order that is easiest to read, by moves and by lines full of bytes. It is one of those that save at least
    /// [`NEARLY`] of the best one's saving, and share no more lines with data that other threads write.
    fn smallest(self) -> Option<(Score, Vec<usize>)> {
        let line_bytes = self.problem.primary.bytes();
        let present = self.found.first()?.score;
        let best = self.found.iter().map(|found| found.score).min()?;
        let saved = |score: &Score| present[1].saturating_sub(score[1]);
        let (enough, parts) = NEARLY;
        let is_enough = |found: &OrderCandidate| match saved(&best) {
            0 => found.score[..LINE_PARTS] == best[..LINE_PARTS],
            most => {
                let is_nearly = saved(&found.score).saturating_mul(parts) >= most.saturating_mul(enough);
                found.score[0] == best[0] && is_nearly
            }
        };
        let trouble = |found: &OrderCandidate| found.moved as u64 + found.bytes / line_bytes;
        let found = self.found.into_iter().filter(is_enough);
        let smallest = found.min_by(|a, b| {
            let key = |found: &OrderCandidate| (trouble(found), found.bytes, found.score);
            key(a).cmp(&key(b)).then_with(|| a.order.cmp(&b.order))
        })?;
        Some((smallest.score, smallest.order))
    }
}

/// Whether a unit is the last of its section.
fn ends_segment(problem: &Problem, order: &[usize], at: usize) -> bool {
    let segment = |at: usize| order.get(at).map(|&unit| problem.units[unit].segment);
    segment(at + 1) != segment(at)
}

/// Whether a unit is a neighbour of one of these.
fn is_beside(order: &[usize], at: usize, units: &UnitSet) -> bool {
    let neighbours = [at.checked_sub(1), at.checked_add(1)].into_iter().flatten();
    neighbours.filter_map(|at| order.get(at)).any(|unit| units.contains(*unit))
}

/// Orders in which a demand's units of one line stand next to its units of other lines.
fn lines_emptied(problem: &Problem, most: usize) -> Vec<Vec<usize>> {
    let present: Vec<usize> = (0..problem.units.len()).collect();
    let placed = problem.models.first().and_then(|model| problem.place(model, &present));
    let Some(placed) = placed else { return Vec::new() };
    let bytes = problem.primary.bytes();
    let line = |unit: usize| placed.offsets_bits[problem.units[unit].fields.start] / 8 / bytes;
    let mut orders = Vec::new();
    for set in hot_sets(problem) {
        let set: Vec<usize> =
            set.into_iter().filter(|&unit| !problem.units[unit].fields.is_empty()).collect();
        let lines: BTreeSet<u64> = set.iter().map(|&unit| line(unit)).collect();
        for from in lines {
            let (gone, stays): (Vec<usize>, Vec<usize>) = set.iter().partition(|&&unit| line(unit) == from);
            if gone.len() <= most {
                let places: BTreeSet<usize> = stays.iter().flat_map(|&unit| [unit, unit + 1]).collect();
                let places = places.into_iter().filter(|&at| at < problem.units.len());
                orders.extend(places.map(|at| drawn_together(problem, &gone, at)));
            }
        }
    }
    orders
}
