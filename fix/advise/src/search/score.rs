//! The quality of an order: expected lines per call, and the ties' breakers.

use crate::layout::background_lines::{BackgroundLines, lines_per_call};
use crate::layout::neighbour::Neighbour;
use crate::layout::placement;
use crate::layout::placement::{Field, Placed};
use lineup_model::line::LineSize;
use lineup_model::region::RegionId;
use std::collections::BTreeMap;
use std::ops::Range;

/// Field, offset in it, bytes.
pub(crate) type Span = (usize, u64, u64);

/// One way a call uses an object, in one data model.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Demand {
    /// Index of the region.
    pub(crate) region: RegionId,
    /// The start of the object, modulo 128.
    pub(crate) base: u64,
    /// Expected occurrences per call, in units of 2^-20.
    pub(crate) per_call: u64,
    /// The same times the region's weight.
    pub(crate) weight: u64,
    /// The parts of members touched.
    pub(crate) spans: Vec<Span>,
    /// The neighbours: objects of the type before this one that the call uses in the same way. For each distance, the
    /// entry has the number of `per_call` with such a neighbour and their part of `anyway`.
    pub(crate) neighbours: Vec<(Neighbour, u64, BackgroundLines)>,
    /// The size of the objects when `anyway` was counted.
    pub(crate) recorded_bytes: u64,
    /// Background lines at the ends of the objects.
    pub(crate) anyway: BackgroundLines,
}

impl Demand {
    /// The number of `per_call` without a neighbour.
    pub(crate) fn alone_per_call(&self) -> u64 {
        let beside = self.neighbours.iter().map(|(_, per_call, _)| per_call).sum();
        self.per_call.saturating_sub(beside)
    }

    /// The part of `anyway` that belongs to objects without a neighbour.
    pub(crate) fn alone_anyway(&self) -> BackgroundLines {
        self.neighbours.iter().fold(self.anyway, |left, (_, _, anyway)| left.without(anyway))
    }

    /// The same demand of objects that start elsewhere. Bytes that lay next to them are not known to lie there as well.
    pub(crate) fn moved_to(&self, base: u64) -> Demand {
        if base == self.base {
            return self.clone();
        }
        let neighbours = self
            .neighbours
            .iter()
            .map(|(neighbour, per_call, _)| (*neighbour, *per_call, BackgroundLines::default()));
        Demand { base, neighbours: neighbours.collect(), anyway: BackgroundLines::default(), ..self.clone() }
    }

    /// Lines per call, counted by the weight of the region.
    pub(crate) fn weighed(&self, lines_per_call: u64) -> u64 {
        let weighed = u128::from(lines_per_call) * u128::from(self.weight) / u128::from(self.per_call.max(1));
        u64::try_from(weighed).unwrap_or(u64::MAX)
    }
}

/// 1.0 in the fixed-point of [`Demand::per_call`].
pub(crate) const ONE: u64 = 1 << 20;

/// A type under one data model.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// The members to place.
    pub(crate) fields: Vec<Field>,
    /// Alignment of the whole.
    pub(crate) align_bytes: u64,
    /// The demands of calls.
    pub(crate) demands: Vec<Demand>,
    /// Fields whose bytes may not change offset.
    pub(crate) fixed_bits: Vec<(usize, u64)>,
    /// Bytes taken before the first field by base classes, which are no members.
    pub(crate) head_bits: u64,
}

/// The accesses of threads that make a member unfit as a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Traffic {
    /// Written by one thread and touched by another.
    pub(crate) is_write_shared: bool,
    /// Read, by threads that do not write it, and written by none.
    pub(crate) is_read_mostly: bool,
}

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
    /// Members by the threads that write them, see [`crate::layout::thread_groups::groups`].
    pub(crate) groups: Vec<Option<usize>>,
    /// The bytes of each member that threads use, see [`crate::layout::thread_groups::used_bytes`].
    pub(crate) used_bytes: Vec<Option<(u64, u64)>>,
    pub(crate) primary: LineSize,
    pub(crate) allow_growth: bool,
}

/// The cost of an order, most important first: false sharing on a primary line; expected lines at the primary size;
/// false sharing within 128 bytes; lines at the other sizes, smaller first; size; units moved.
pub(crate) type Score = [u64; 7];

impl Problem {
    /// The fields in the order that an order of units gives.
    pub(crate) fn field_order(&self, order: &[usize]) -> Vec<usize> {
        order.iter().flat_map(|&unit| self.units[unit].fields.clone()).collect()
    }

    /// The units that an order leaves in place relative to each other.
    pub(crate) fn kept(&self, order: &[usize]) -> Vec<usize> {
        kept_around(order, &|unit| self.units[unit].is_still)
    }

    pub(crate) fn place(&self, model: &Model, order: &[usize]) -> Option<Placed> {
        placement::place_after(&model.fields, &self.field_order(order), model.align_bytes, model.head_bits)
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

    /// The score of an allowed order; `None` when it breaks a limit: growth, a fixed offset, or more
    /// primary lines in one of the data models than `before` needs.
    pub(crate) fn score(&self, order: &[usize], before: Option<&Baseline>) -> Option<Score> {
        let mut score: Score = [0; 7];
        for (index, model) in self.models.iter().enumerate() {
            let placed = self.place(model, order)?;
            let fixed =
                model.fixed_bits.iter().all(|(field, bits)| placed.offsets_bits.get(*field) == Some(bits));
            let lines = lines(model, &placed, self.primary);
            let base = model.demands.first().map_or(0, |demand| demand.base);
            let conflicts = self.conflicts(model, &placed, base, self.primary.bytes());
            let fought_over = self.fought_over(model, &placed, base);
            let new = Needs { size_bytes: placed.size_bytes, lines: lines[0], conflicts, fought_over };
            if !fixed || before.is_some_and(|before| before.forbids(index, new, self.allow_growth)) {
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

/// Lines of 32, 64 and 128 bytes that one demand touches.
pub(crate) fn demand_lines(demand: &Demand, offsets_bits: &[u64]) -> [u64; 3] {
    Granules::of(demand.base, &demand.spans, offsets_bits).counts()
}

/// The touched 32-byte granules.
#[derive(Clone, Default, Debug)]
pub(crate) struct Granules {
    /// First and last of each run.
    touched: Vec<(u64, u64)>,
}

impl Granules {
    /// The touched granules of an object that starts at `base`.
    pub(crate) fn of(base: u64, spans: &[Span], offsets_bits: &[u64]) -> Self {
        let mut granules = Granules::default();
        granules.add_spans(base, spans, offsets_bits);
        granules
    }

    pub(crate) fn add(&mut self, start: u64, size_bytes: u64) {
        let run = LineSize::B32.lines(start, size_bytes).into_inner();
        if self.touched.last() != Some(&run) {
            self.touched.push(run);
        }
    }

    /// Adds the touched granules of an object that starts at `base`.
    pub(crate) fn add_spans(&mut self, base: u64, spans: &[Span], offsets_bits: &[u64]) {
        for &(field, offset, size) in spans {
            let Some(bits) = offsets_bits.get(field) else { continue };
            self.add(base.saturating_add(bits / 8).saturating_add(offset), size);
        }
    }

    /// Whether a line is touched, by its number among those of its size.
    pub(crate) fn touches(&self, line: LineSize, number: u64) -> bool {
        let per_line = line.bytes() / LineSize::B32.bytes();
        self.touched.iter().any(|(first, last)| (first / per_line..=last / per_line).contains(&number))
    }

    /// Distinct lines of 32, 64 and 128 bytes.
    pub(crate) fn counts(&mut self) -> [u64; 3] {
        self.touched.sort_unstable();
        let mut counts = [0; 3];
        for (shift, count) in counts.iter_mut().enumerate() {
            // The first line that is not counted yet.
            let mut next = 0;
            for (first, last) in self.touched.iter().map(|(first, last)| (first >> shift, last >> shift)) {
                *count += (last + 1).saturating_sub(first.max(next));
                next = next.max(last + 1);
            }
        }
        counts
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

    #[test]
    fn a_demand_counts_distinct_lines_from_its_base() {
        let demand = Demand {
            region: RegionId(0),
            base: 56,
            neighbours: Vec::new(),
            recorded_bytes: 16,
            anyway: BackgroundLines::default(),
            per_call: ONE,
            weight: ONE,
            spans: vec![(0, 0, 8), (1, 0, 8)],
        };
        assert_eq!(demand_lines(&demand, &[0, 64]), [2, 2, 1]);
        assert_eq!(demand_lines(&Demand { base: 0, ..demand }, &[0, 64]), [1, 1, 1]);
    }

    #[test]
    fn spans_that_overlap_count_once_and_a_span_of_all_bytes_is_counted_at_once() {
        let mut granules = Granules::default();
        for (start, size) in [(256, 96), (0, 200), (40, 8), (190, 40)] {
            granules.add(start, size);
        }
        // Granules 0 to 10.
        assert_eq!(granules.counts(), [11, 6, 3]);
        granules.add(0, u64::MAX);
        assert_eq!(granules.counts(), [1 << 59, 1 << 58, 1 << 57]);
    }
}
