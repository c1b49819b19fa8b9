//! Finding the best order.
//!
//! Placing members is NP-hard. Constructed candidates (hot sets collected at every possible place) are polished by
//! moving one unit at a time; branch and bound then proves or improves the result when the type is small enough.
//! Everything is deterministic: equal inputs give equal orders.

use crate::layout::demand::Demand;
use crate::layout::placement;
use crate::search::outcome::Outcome;
use crate::search::score::{Baseline, Problem, Score, kept};
use lineup_model::line::LineSize;
use std::collections::BTreeSet;

/// The limits of a search, in orders scored or prefixes placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Effort {
    pub(crate) polish: u64,
    pub(crate) branches: u64,
}

impl Effort {
    pub(crate) const DEFAULT: Effort = Effort { polish: 30_000, branches: 20_000 };
    /// For a figure beside a proposal.
    pub(crate) const SECOND: Effort = Effort { polish: 10_000, branches: 2_000 };
}

/// The part of a score that counts lines and false sharing, the rest being tie-breaks.
pub(crate) const LINE_PARTS: usize = 5;

/// The best allowed order. `None` when not even the present order can be placed.
pub(crate) fn best(problem: &Problem, effort: Effort) -> Option<Outcome> {
    let before = problem.baseline()?;
    let identity: Vec<usize> = (0..problem.units.len()).collect();
    let mut search = Search { problem, before: &before, left: effort.polish, best: None };
    search.try_order(&identity);
    for order in candidates(problem) {
        search.try_order(&order);
    }
    let (starts, _) = (search.best.clone(), search.polish());
    if let Some((_, order)) = starts {
        search.polish_from(order);
    }
    search.polish_from(identity);
    let (score, order) = search.best?;
    let mut branches = Branches::new(problem, &before, effort.branches, (score, order));
    let is_proven = branches.run();
    let (score, order) = branches.best;
    Some(Outcome { order, score, is_proven, further: None })
}

struct Search<'p> {
    problem: &'p Problem,
    before: &'p Baseline,
    left: u64,
    best: Option<(Score, Vec<usize>)>,
}

impl Search<'_> {
    fn score(&self, order: &[usize]) -> Option<Score> {
        self.problem.allows(order).then(|| self.problem.score(order, Some(self.before)))?
    }

    /// Keeps the order when it is the best so far; equals are decided by the order itself.
    fn try_order(&mut self, order: &[usize]) -> bool {
        let Some(score) = self.score(order) else { return false };
        let better = self.best.as_ref().is_none_or(|best| (score, order) < (best.0, best.1.as_slice()));
        if better {
            self.best = Some((score, order.to_vec()));
        }
        better
    }

    fn polish(&mut self) {
        if let Some((_, order)) = self.best.clone() {
            self.polish_from(order);
        }
    }

    /// Moves one unit at a time, and pairs, while that helps.
    fn polish_from(&mut self, mut order: Vec<usize>) {
        let Some(mut score) = self.score(&order) else { return };
        loop {
            let mut improved = false;
            for from in 0..order.len() {
                for to in 0..order.len() {
                    if from == to || self.left == 0 {
                        continue;
                    }
                    self.left -= 1;
                    let mut next = order.clone();
                    let unit = next.remove(from);
                    next.insert(to, unit);
                    if let Some(candidate) = self.score(&next).filter(|candidate| *candidate < score) {
                        (order, score, improved) = (next, candidate, true);
                    }
                }
            }
            if !improved || self.left == 0 {
                break;
            }
        }
        self.try_order(&order);
    }
}

/// Orders that draw a hot set together: each demand's set, and unions of the heaviest, at every place.
pub(crate) fn candidates(problem: &Problem) -> Vec<Vec<usize>> {
    let sets = hot_sets(problem);
    let units = problem.units.len();
    let mut orders = Vec::new();
    for set in &sets {
        for arranged in arrangements(problem, set) {
            for at in insertion_points(problem, units) {
                orders.push(drawn_together(problem, &arranged, at));
            }
        }
    }
    orders.extend(write_shared_last(problem));
    orders
}

/// Every place in a small type; in a large one the starts of segments and a few more.
fn insertion_points(problem: &Problem, units: usize) -> Vec<usize> {
    let starts = |at: &usize| *at == 0 || problem.units[*at].segment != problem.units[at - 1].segment;
    (0..units).filter(|at| units <= 64 || *at < 16 || starts(at)).collect()
}

const MAX_SETS: usize = 24;

pub(crate) fn hot_sets(problem: &Problem) -> Vec<Vec<usize>> {
    let mut by_weight: Vec<(u64, BTreeSet<usize>)> = Vec::new();
    for demand in problem.models.iter().flat_map(|model| &model.demands) {
        let set = units_of(problem, demand);
        match by_weight.iter_mut().find(|(_, known)| *known == set) {
            Some((weight, _)) => *weight = weight.saturating_add(demand.weight),
            None => by_weight.push((demand.weight, set)),
        }
    }
    by_weight.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let mut sets: Vec<BTreeSet<usize>> =
        by_weight.iter().map(|(_, set)| set.clone()).take(MAX_SETS).collect();
    let mut union = BTreeSet::new();
    for (_, set) in by_weight.iter().take(MAX_SETS) {
        union.extend(set.iter().copied());
        sets.push(union.clone());
    }
    let mut seen = BTreeSet::new();
    sets.into_iter().filter(|set| seen.insert(set.clone())).map(|set| set.into_iter().collect()).collect()
}

pub(crate) fn units_of(problem: &Problem, demand: &Demand) -> BTreeSet<usize> {
    let unit_of = |field: usize| problem.units.iter().position(|unit| unit.fields.contains(&field));
    demand.spans.iter().filter_map(|&(field, _, _)| unit_of(field)).collect()
}

/// A set as declared, largest alignment first, and smallest alignment first.
fn arrangements(problem: &Problem, set: &[usize]) -> Vec<Vec<usize>> {
    let align = |unit: &usize| {
        let fields = problem.units[*unit].fields.clone();
        problem.models.first().map_or(1, |model| {
            fields
                .filter_map(|field| model.fields.get(field))
                .map(|field| field.align_bytes)
                .max()
                .unwrap_or(1)
        })
    };
    let mut descending = set.to_vec();
    descending.sort_by_key(|unit| std::cmp::Reverse(align(unit)));
    let mut ascending = set.to_vec();
    ascending.sort_by_key(align);
    let mut all = vec![set.to_vec(), descending, ascending];
    all.dedup();
    all
}

/// The present order with `set` put where unit `at` starts, segment by segment.
pub(crate) fn drawn_together(problem: &Problem, set: &[usize], at: usize) -> Vec<usize> {
    let segment = problem.units[at].segment;
    let moves = |unit: &usize| {
        set.contains(unit) && problem.units[*unit].segment == segment && !problem.units[*unit].is_fixed
    };
    let drawn: Vec<usize> = set.iter().copied().filter(moves).collect();
    let mut order = Vec::with_capacity(problem.units.len());
    for unit in 0..problem.units.len() {
        if unit == at {
            order.extend(&drawn);
        }
        if !moves(&unit) {
            order.push(unit);
        }
    }
    order
}

/// Write-shared units at the end, and at the start, of their segments.
fn write_shared_last(problem: &Problem) -> [Vec<usize>; 2] {
    let is_shared = |unit: &usize| {
        let unit = &problem.units[*unit];
        !unit.is_fixed
            && unit
                .fields
                .clone()
                .any(|f| problem.traffic.get(f).is_some_and(|traffic| traffic.is_write_shared))
    };
    [false, true].map(|first| {
        let mut order: Vec<usize> = (0..problem.units.len()).collect();
        order.sort_by_key(|unit| (problem.units[*unit].segment, is_shared(unit) != first, *unit));
        let fixed: Vec<usize> =
            (0..problem.units.len()).filter(|unit| problem.units[*unit].is_fixed).collect();
        order.retain(|unit| !fixed.contains(unit));
        for unit in fixed {
            order.insert(unit.min(order.len()), unit);
        }
        order
    })
}

/// Branch and bound over prefixes of the order.
struct Branches<'p> {
    problem: &'p Problem,
    before: &'p Baseline,
    left: u64,
    best: (Score, Vec<usize>),
}

impl<'p> Branches<'p> {
    fn new(problem: &'p Problem, before: &'p Baseline, left: u64, best: (Score, Vec<usize>)) -> Self {
        Branches { problem, before, left, best }
    }

    /// True when the best order's lines are proven minimal.
    fn run(&mut self) -> bool {
        let root = self.bound(&[]);
        if root.is_some_and(|root| root[..LINE_PARTS] == self.best.0[..LINE_PARTS])
            && self.problem.units.len() > 8
        {
            return true;
        }
        let mut prefix = Vec::new();
        self.extend(&mut prefix)
    }

    /// Tries every continuation of `prefix`; false when the budget ended first.
    fn extend(&mut self, prefix: &mut Vec<usize>) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        if prefix.len() == self.problem.units.len() {
            if self.problem.allows(prefix)
                && let Some(score) = self.problem.score(prefix, Some(self.before))
                && (score, &*prefix) < (self.best.0, &self.best.1)
            {
                self.best = (score, prefix.clone());
            }
            return true;
        }
        match self.bound(prefix) {
            Some(bound) if bound < self.best.0 => {}
            _ => return true,
        }
        for unit in self.next_units(prefix) {
            prefix.push(unit);
            let done = self.extend(prefix);
            prefix.pop();
            if !done {
                return false;
            }
        }
        true
    }

    /// Units that may stand next. Among units that no call touches and that look alike, only the first.
    fn next_units(&self, prefix: &[usize]) -> Vec<usize> {
        let position = prefix.len();
        let units = &self.problem.units;
        let free = |unit: &usize| {
            !prefix.contains(unit)
                && units[*unit].segment == units[position].segment
                && (units[*unit].is_fixed == (*unit == position)
                    || !units[position].is_fixed && !units[*unit].is_fixed)
        };
        let mut next: Vec<usize> = Vec::new();
        for unit in (0..units.len()).filter(free) {
            let follows_chain = !units[unit].is_chained
                || (0..unit).all(|earlier| !units[earlier].is_chained || prefix.contains(&earlier));
            if follows_chain && !next.iter().any(|&other| self.alike(other, unit)) {
                next.push(unit);
            }
        }
        next
    }

    fn alike(&self, a: usize, b: usize) -> bool {
        let (a, b) = (&self.problem.units[a], &self.problem.units[b]);
        if a.is_fixed || b.is_fixed || a.is_chained != b.is_chained || a.fields.len() != b.fields.len() {
            return false;
        }
        a.fields.clone().zip(b.fields.clone()).all(|(x, y)| {
            let traffic = |field: usize| self.problem.traffic.get(field);
            traffic(x) == traffic(y)
                && self.problem.models.iter().all(|model| {
                    let pinned = |field| model.fixed_bits.iter().any(|(fixed, _)| *fixed == field);
                    model.fields[x] == model.fields[y]
                        && !pinned(x)
                        && !pinned(y)
                        && model
                            .demands
                            .iter()
                            .all(|demand| !demand.spans.iter().any(|s| s.0 == x || s.0 == y))
                })
        })
    }

    /// A score that no continuation of `prefix` can beat. `None` when none is allowed.
    fn bound(&self, prefix: &[usize]) -> Option<Score> {
        let mut bound: Score = [0; 7];
        let order = self.problem.field_order(prefix);
        let primary = match self.problem.primary.bytes() {
            32 => [1, 3, 4],
            128 => [3, 4, 1],
            _ => [3, 1, 4],
        };
        for model in &self.problem.models {
            let placed = placement::place_after(&model.fields, &order, 1, model.head_bits)?;
            let end = placed.size_bytes;
            let total: u64 =
                model.fields.iter().filter(|f| f.bit_width.is_none()).map(|f| f.size_bytes).sum();
            bound[5] += end.max(total);
            for demand in &model.demands {
                let least = least_lines(demand, &order, &placed.offsets_bits, end);
                for ((size, lines), part) in least.into_iter().enumerate().zip(primary) {
                    let line_bytes = LineSize::ALL[size].bytes();
                    let may_be_one = (demand.base % line_bytes).saturating_add(end.max(total)) <= line_bytes;
                    let cost = demand.anyway.least_cost(size, demand.per_call, lines, may_be_one);
                    bound[part] = bound[part].saturating_add(demand.weighed(cost));
                }
            }
        }
        bound[6] = (prefix.len() - kept(prefix).len()) as u64;
        Some(bound)
    }
}

/// The fewest lines of 32, 64 and 128 bytes that a demand can need when the fields in `placed` are in
/// place and the rest come at `end` or after.
fn least_lines(demand: &Demand, placed: &[usize], offsets_bits: &[u64], end: u64) -> [u64; 3] {
    let is_placed = |field: &usize| placed.contains(field);
    let spans = demand.spans.iter().filter(|span| is_placed(&span.0)).copied().collect();
    let fixed = Demand { spans, neighbours: Vec::new(), ..*demand };
    let touched = crate::layout::line_counts::demand_lines(&fixed, offsets_bits);
    let rest: u64 = demand.spans.iter().filter(|span| !is_placed(&span.0)).map(|span| span.2).sum();
    let mut least = touched;
    for (count, line) in least.iter_mut().zip([32u64, 64, 128]) {
        let at = demand.base.saturating_add(end);
        let room = at.next_multiple_of(line) - at;
        let shares = room > 0 && reaches_line(&fixed, offsets_bits, at / line, line);
        *count += rest.saturating_sub(if shares { room } else { 0 }).div_ceil(line);
    }
    least
}

fn reaches_line(demand: &Demand, offsets_bits: &[u64], line: u64, line_bytes: u64) -> bool {
    demand.spans.iter().any(|&(field, offset, size)| {
        let start = demand.base + offsets_bits.get(field).map_or(0, |bits| bits / 8) + offset;
        (start / line_bytes..=(start + size.max(1) - 1) / line_bytes).contains(&line)
    })
}
