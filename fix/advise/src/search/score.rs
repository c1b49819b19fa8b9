//! The quality of an order: expected lines per call, and the ties' breakers.

use crate::layout::demand::{Model, Traffic};
use crate::layout::line_counts::lines_per_call;
use crate::layout::placement::{Field, Placed};
use crate::layout::subject::Subject;
use crate::layout::thread_groups;
use crate::search::unit_set::UnitSet;
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Members that move as one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unit {
    /// The fields it holds.
    pub(crate) fields: Range<usize>,
    /// Units move within their segment only.
    pub(crate) segment: u32,
    /// Units of one chain keep their order.
    pub(crate) is_chained: bool,
    /// It does not move at all.
    pub(crate) is_fixed: bool,
    /// Others may pass it, but it is not itself among the members that move.
    pub(crate) is_still: bool,
}

/// Orders of units, and their judge.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) units: Vec<Unit>,
    /// The recorded data model first.
    pub(crate) models: Vec<Model>,
    pub(crate) traffic: Vec<Traffic>,
    /// Members by the threads that write them, see [`thread_groups::groups`].
    pub(crate) groups: Vec<Option<usize>>,
    /// The bytes of each member that threads use, see [`thread_groups::used_bytes`].
    pub(crate) used_bytes: Vec<Option<(u64, u64)>>,
    pub(crate) primary: LineSize,
    pub(crate) allow_growth: bool,
}

/// The cost of an order, most important first: false sharing on a primary line; expected lines at the primary size;
/// false sharing within 128 bytes; lines at the other sizes, smaller first; size; units moved.
pub(crate) type Score = [u64; 7];

impl Problem {
    /// The problem over these units.
    pub(crate) fn new(
        subject: &Subject<'_>,
        models: Vec<Model>,
        units: Vec<Unit>,
        (primary, allow_growth): (LineSize, bool),
    ) -> Self {
        let groups = thread_groups::groups(subject);
        let used_bytes = thread_groups::used_bytes(subject);
        Problem { units, models, traffic: subject.traffic(), groups, used_bytes, primary, allow_growth }
    }

    /// The fields in the order that an order of units gives.
    pub(crate) fn field_order(&self, order: &[usize]) -> Vec<usize> {
        order.iter().flat_map(|&unit| self.units[unit].fields.clone()).collect()
    }

    /// The units that an order leaves in place relative to each other.
    pub(crate) fn kept(&self, order: &[usize]) -> Vec<usize> {
        kept_around(order, &|unit| self.units[unit].is_still)
    }

    /// The same as a set.
    pub(crate) fn stays(&self, order: &[usize]) -> UnitSet {
        UnitSet::of(order.len(), self.kept(order))
    }

    pub(crate) fn place(&self, model: &Model, order: &[usize]) -> Option<Placed> {
        model.place(&self.field_order(order))
    }

    /// True when segments, chains and fixed units allow the order.
    pub(crate) fn allows(&self, order: &[usize]) -> bool {
        let in_place = order.iter().enumerate().all(|(position, &unit)| {
            self.units[unit].segment == self.units[position].segment
                && (!self.units[unit].is_fixed || unit == position)
        });
        let chained = || order.iter().filter(|&&unit| self.units[unit].is_chained);
        in_place && chained().zip(chained().skip(1)).all(|(before, after)| before < after)
    }

    /// The score of an allowed order; `None` when it breaks a limit: growth, a fixed offset, bit-fields joined, or more
    /// primary lines in one of the data models than `before` needs.
    pub(crate) fn score(&self, order: &[usize], before: Option<&Baseline>) -> Option<Score> {
        let mut score: Score = [0; 7];
        let fields = self.field_order(order);
        for (index, model) in self.models.iter().enumerate() {
            let placed = model.place(&fields)?;
            let is_fixed = model.moved_from_its_offset(&placed.offsets_bits).is_none()
                && keeps_bits_apart(model, &fields);
            let lines = lines(model, &placed, self.primary);
            let base = model.demands.first().map_or(0, |demand| demand.base);
            let conflicts = self.conflicts(model, &placed, base, self.primary.bytes());
            let fought_over = self.fought_over(model, &placed, base);
            let new = Needs { size_bytes: placed.size_bytes, lines: lines[0], conflicts, fought_over };
            if !is_fixed || before.is_some_and(|before| before.forbids(index, new, self.allow_growth)) {
                return None;
            }
            score[0] += conflicts;
            score[1] = score[1].saturating_add(lines[0]);
            score[2] += self.conflicts(model, &placed, base, 128);
            score[3] = score[3].saturating_add(lines[1]);
            score[4] = score[4].saturating_add(lines[2]);
            score[5] = score[5].saturating_add(placed.size_bytes);
        }
        score[6] = (order.len() - self.kept(order).len()) as u64;
        Some(score)
    }

    /// Primary lines per call that each region needs under the recorded data model, in units of 2^-20.
    pub(crate) fn region_lines(&self, order: &[usize]) -> Option<BTreeMap<RegionId, u64>> {
        let model = self.models.first()?;
        let placed = self.place(model, order)?;
        let part = LineSize::place_in_all(self.primary.bytes()).unwrap_or(1);
        let mut lines: BTreeMap<RegionId, u64> = BTreeMap::new();
        for demand in &model.demands {
            let own = lines_per_call(demand, &placed)[part];
            let sum = lines.entry(demand.region).or_default();
            *sum = sum.saturating_add(own);
        }
        Some(lines)
    }

    /// The bytes of a unit's members.
    pub(crate) fn unit_bytes(&self, unit: usize) -> u64 {
        let fields = self.units[unit].fields.clone();
        self.models.first().map_or(0, |model| fields.map(|field| field_bytes(&model.fields[field])).sum())
    }

    /// The number of holes between the members, and behind them, under the recorded data model.
    pub(crate) fn holes(&self, order: &[usize]) -> Option<usize> {
        let model = self.models.first()?;
        let placed = self.place(model, order)?;
        let (mut end, mut holes) = (model.head_bits, 0);
        for field in self.field_order(order) {
            let start = *placed.offsets_bits.get(field)?;
            holes += usize::from(start.saturating_sub(end) >= 8);
            let bits = model.fields[field]
                .bit_width
                .map_or(model.fields[field].size_bytes.saturating_mul(8), u64::from);
            end = start.saturating_add(bits);
        }
        Some(holes + usize::from(placed.size_bytes.saturating_mul(8).saturating_sub(end) >= 8))
    }

    /// The needs of the present order.
    pub(crate) fn baseline(&self) -> Option<Baseline> {
        let order: Vec<usize> = (0..self.units.len()).collect();
        let models: Option<Vec<Needs>> = self
            .models
            .iter()
            .map(|model| {
                let placed = self.place(model, &order)?;
                let base = model.demands.first().map_or(0, |demand| demand.base);
                let conflicts = self.conflicts(model, &placed, base, self.primary.bytes());
                Some(Needs {
                    size_bytes: placed.size_bytes,
                    lines: lines(model, &placed, self.primary)[0],
                    conflicts,
                    fought_over: self.fought_over(model, &placed, base),
                })
            })
            .collect();
        models.map(|models| Baseline { models })
    }

    /// Pairs of members that other threads write, or write and read, and that have a primary line in common.
    fn fought_over(&self, model: &Model, placed: &Placed, base: u64) -> u64 {
        let line = self.primary.bytes();
        let lines = |field: usize| {
            let start = base + placed.offsets_bits[field] / 8;
            let last = field_bytes(&model.fields[field]).max(1) - 1;
            // Bytes of a lock that nobody accesses may lie on any line.
            let (from, to) = self.used_bytes.get(field).copied().flatten().unwrap_or((0, last + 1));
            ((start + from.min(last)) / line, (start + to.max(1).min(last + 1) - 1) / line)
        };
        let used: Vec<(usize, (u64, u64))> = (0..model.fields.len())
            .filter_map(|field| Some((self.groups.get(field).copied().flatten()?, lines(field))))
            .collect();
        let meets = |(group, (first, last)): &(usize, (u64, u64)),
                     (other, (from, to)): &(usize, (u64, u64))| {
            group != other && from <= last && first <= to
        };
        let pairs = used
            .iter()
            .enumerate()
            .map(|(at, one)| used[at + 1..].iter().filter(|other| meets(one, other)).count());
        pairs.sum::<usize>() as u64
    }

    /// Read-mostly members on a line with write-shared ones.
    fn conflicts(&self, model: &Model, placed: &Placed, base: u64, line_bytes: u64) -> u64 {
        if !self.traffic.iter().any(|traffic| traffic.is_write_shared) {
            return 0;
        }
        let span = |field: usize| {
            let start = base + placed.offsets_bits[field] / 8;
            let size = field_bytes(&model.fields[field]);
            (start / line_bytes, (start + size.max(1) - 1) / line_bytes)
        };
        let of = |wanted: fn(&Traffic) -> bool| {
            let fields = 0..model.fields.len();
            fields.filter(move |&field| self.traffic.get(field).is_some_and(wanted)).map(span)
        };
        let writers: Vec<(u64, u64)> = of(|traffic| traffic.is_write_shared).collect();
        let meets = |(first, last): (u64, u64)| writers.iter().any(|&(from, to)| from <= last && first <= to);
        of(|traffic| traffic.is_read_mostly).filter(|&span| meets(span)).count() as u64
    }
}

/// The needs of an order under one data model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Needs {
    pub(crate) size_bytes: u64,
    /// Weighted primary lines.
    pub(crate) lines: u64,
    /// Read-mostly members on a primary line with write-shared ones.
    pub(crate) conflicts: u64,
    /// Pairs of members of different threads on a primary line.
    pub(crate) fought_over: u64,
}

/// The needs of the present order, per data model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Baseline {
    pub(crate) models: Vec<Needs>,
}

impl Baseline {
    /// Growth, and more lines under one data model for fewer under another, are no bargain. Parting data under
    /// contention may cost lines. Members of different threads that are apart stay so.
    fn forbids(&self, model: usize, new: Needs, allow_growth: bool) -> bool {
        let Some(before) = self.models.get(model) else { return false };
        let costs_lines = new.lines > before.lines && new.conflicts >= before.conflicts;
        let joins_threads = new.fought_over > before.fought_over;
        (new.size_bytes > before.size_bytes && !allow_growth) || costs_lines || joins_threads
    }
}

/// Bit-fields that other members part stay apart: next to each other they would become one memory location, which
/// threads write as a whole.
fn keeps_bits_apart(model: &Model, fields: &[usize]) -> bool {
    let is_bits = |field: usize| model.fields.get(field).is_some_and(|field| field.bit_width.is_some());
    let joins = |pair: &[usize]| pair[0] + 1 != pair[1] && is_bits(pair[0]) && is_bits(pair[1]);
    !fields.windows(2).any(joins)
}

fn field_bytes(field: &Field) -> u64 {
    field.bit_width.map_or(field.size_bytes, |bits| u64::from(bits).div_ceil(8))
}

/// Weighted lines of all demands: at the primary size, then at the other two, smaller first.
fn lines(model: &Model, placed: &Placed, primary: LineSize) -> [u64; 3] {
    let mut sums = [0u64; 3];
    for demand in &model.demands {
        for (sum, lines) in sums.iter_mut().zip(lines_per_call(demand, placed)) {
            *sum = sum.saturating_add(demand.weighed(lines));
        }
    }
    match primary.bytes() {
        32 => sums,
        128 => [sums[2], sums[0], sums[1]],
        _ => [sums[1], sums[0], sums[2]],
    }
}

/// The units that an order leaves in place relative to each other: the longest increasing subsequence.
pub(crate) fn kept(order: &[usize]) -> Vec<usize> {
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = vec![None; order.len()];
    for (position, &unit) in order.iter().enumerate() {
        let length = tails.partition_point(|&tail| order[tail] < unit);
        before[position] = length.checked_sub(1).map(|shorter| tails[shorter]);
        if length == tails.len() {
            tails.push(position);
        } else {
            tails[length] = position;
        }
    }
    let mut kept = Vec::new();
    let mut at = tails.last().copied();
    while let Some(position) = at {
        kept.push(order[position]);
        at = before[position];
    }
    kept.reverse();
    kept
}

/// The same among the choices that keep all of these units, where there are such.
pub(crate) fn kept_around(order: &[usize], is_still: &dyn Fn(usize) -> bool) -> Vec<usize> {
    let still: Vec<usize> = order.iter().copied().filter(|unit| is_still(*unit)).collect();
    if still.is_empty() || !still.is_sorted() {
        return kept(order);
    }
    // Between two of them only units from between them stay.
    let (mut passed, mut next) = (None, still.into_iter().peekable());
    let stays = |unit: &usize| {
        if next.peek() == Some(unit) {
            passed = next.next();
            return true;
        }
        passed.is_none_or(|before| before < *unit) && next.peek().is_none_or(|after| unit < after)
    };
    kept(&order.iter().copied().filter(stays).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_units_are_a_longest_increasing_subsequence() {
        assert_eq!(kept(&[4, 0, 1, 2, 3]), [0, 1, 2, 3]);
        assert_eq!(kept(&[2, 1, 0]).len(), 1);
        assert!(kept(&[]).is_empty());
    }

    #[test]
    fn of_two_units_that_change_places_the_other_one_moves() {
        for lock in [0, 1] {
            assert_eq!(kept_around(&[1, 0], &|unit| unit == lock), [lock]);
        }
        assert_eq!(kept_around(&[2, 0, 1, 3], &|unit| unit == 2), [2, 3]);
        assert_eq!(kept_around(&[1, 0, 2], &|unit| unit < 2), kept(&[1, 0, 2]), "both cannot stay");
    }
}
