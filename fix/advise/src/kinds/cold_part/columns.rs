//! The members of an array's elements in groups: calls that use one member of a group use the others too, so each group
//! gets an array of its own.
//!
//! A group's lines are counted from the recorded uses. A call that walks the elements needs the bytes of a group for each
//! of them; a call that picks one needs a line for each group.

use crate::kind::Task;
use crate::layout::demand::Model;
use crate::layout::placement;
use crate::layout::subject::{RecordedOffsets, Subject, members_in};
use lineup_model::region::RegionId;
use std::collections::{BTreeMap, BTreeSet};

/// Arrays for each group of members are proposed from this share of the lines on which the elements need in one piece or
/// with a cold part.
const MOST_LINES: f64 = 0.8;

/// Lines that fewer arrays may cost more than the best groups.
const SLACK: f64 = 1.05;

/// Lines of a region that count as no more.
const ROUNDING: f64 = 1.001;

/// The groups of a type's members.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Columns {
    /// Members that stay in the elements.
    pub(crate) kept: BTreeSet<usize>,
    /// Groups that leave, in the order of their first members.
    pub(crate) groups: Vec<Column>,
    /// Lines of the elements per call, by region.
    pub(crate) lines: BTreeMap<RegionId, f64>,
}

/// A group that leaves.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Column {
    /// Its members.
    pub(crate) fields: BTreeSet<usize>,
    /// Calls use them.
    pub(crate) is_hot: bool,
}

impl Columns {
    /// Groups of these units of members, each of which leaves as one or stays; all other members stay. `None` where
    /// arrays of their own gain little, or a region would need more lines.
    pub(crate) fn of(task: &Task<'_>, subject: &Subject<'_>, units: &[BTreeSet<usize>]) -> Option<Columns> {
        let lines = ColumnLines::of(task, subject)?;
        let all: BTreeSet<usize> = (0..subject.aggregate.members.len()).collect();
        let leaving: BTreeSet<usize> = units.iter().flatten().copied().collect();
        let staying: BTreeSet<usize> = all.difference(&leaving).copied().collect();
        let mut groups = lines.grouped(units.iter().chain([&staying]))?;
        groups.sort();
        if groups.iter().filter(|group| lines.is_hot(group)).count() < 2 {
            return None;
        }
        let (cold, hot): (BTreeSet<usize>, BTreeSet<usize>) =
            leaving.iter().copied().partition(|field| !lines.is_hot(&[*field].into()));
        let hot = hot.union(&staying).copied().collect();
        let whole = lines.weighed(&all)?;
        let parted = lines.weighed(&hot)? + lines.weighed(&cold)?;
        let columns: f64 = groups.iter().map(|group| lines.weighed(group)).sum::<Option<f64>>()?;
        if columns > MOST_LINES * whole.min(parted) {
            return None;
        }
        let by_region = |groups: &[BTreeSet<usize>]| {
            let mut sums: BTreeMap<RegionId, f64> = BTreeMap::new();
            for visit in &lines.visits {
                let own = groups.iter().map(|group| lines.of_visit(visit, group)).sum::<Option<f64>>()?;
                *sums.entry(visit.region).or_default() += visit.per_call * own;
            }
            Some(sums)
        };
        let (now, then) = (by_region(&[all])?, by_region(&groups)?);
        if then.iter().any(|(region, lines)| *lines > now[region] * ROUNDING) {
            return None;
        }
        // Without one that has to stay, the group with most uses does: its uses need no edit.
        let uses = |group: &BTreeSet<usize>| {
            let own = lines.visits.iter().filter(|visit| visit.touched.keys().any(|one| group.contains(one)));
            own.map(|visit| visit.weight * visit.per_call).sum::<f64>()
        };
        let stays = |group: &BTreeSet<usize>| !staying.is_empty() && !group.is_disjoint(&staying);
        let kept = groups.iter().position(stays).or_else(|| {
            let by_uses = |one: &usize, other: &usize| uses(&groups[*one]).total_cmp(&uses(&groups[*other]));
            (0..groups.len()).rev().max_by(by_uses)
        })?;
        let kept = groups.remove(kept);
        let column = |fields: BTreeSet<usize>| Column { is_hot: lines.is_hot(&fields), fields };
        Some(Columns { kept, groups: groups.into_iter().map(column).collect(), lines: then })
    }
}

/// One way in which calls use elements.
struct Visit {
    region: RegionId,
    weight: f64,
    per_call: f64,
    /// Elements from one that a call uses in this way to the next; `None` where it is alone.
    stride: Option<u64>,
    /// Bytes of each member.
    touched: BTreeMap<usize, u64>,
}

/// Region, stride and touched bytes: uses with equal keys are one.
type UseKey = (RegionId, Option<u64>, BTreeMap<usize, u64>);

/// Counts the lines that groups of members need.
struct ColumnLines {
    visits: Vec<Visit>,
    model: Model,
    line_bytes: f64,
}

impl ColumnLines {
    fn of(task: &Task<'_>, subject: &Subject<'_>) -> Option<ColumnLines> {
        let model = subject.models().ok()?.models.into_iter().next()?;
        let offsets = subject.types.layout_offsets(subject.id)?;
        let size_bytes = subject.types.size_bytes(subject.id).filter(|size| *size > 0)?;
        // Objects that start elsewhere in their lines are used alike.
        let mut alike: BTreeMap<UseKey, f64> = BTreeMap::new();
        for used in &subject.uses {
            for pattern in &used.patterns {
                let mut touched: BTreeMap<usize, u64> = BTreeMap::new();
                for bytes in &pattern.bytes {
                    let range = bytes.offset..bytes.offset.saturating_add(bytes.size_bytes);
                    for (field, part) in members_in(subject.types, subject.aggregate, &offsets, &range) {
                        *touched.entry(field).or_default() += part.end - part.start;
                    }
                }
                let distance = pattern.neighbour_distance_bytes.filter(|distance| distance % size_bytes == 0);
                let per_call = pattern.occurrences as f64 / used.calls.max(1) as f64;
                let stride = distance.map(|distance| distance / size_bytes);
                *alike.entry((used.region, stride, touched)).or_default() += per_call;
            }
        }
        let visit = |((region, stride, touched), per_call)| {
            let weight = task.usage.regions.get(region)?.weight;
            Some(Visit { region, weight, per_call, stride, touched })
        };
        let visits: Vec<Visit> = alike.into_iter().map(visit).collect::<Option<_>>()?;
        let line_bytes = task.options.primary.bytes() as f64;
        (!visits.is_empty()).then_some(ColumnLines { visits, model, line_bytes })
    }

    fn is_hot(&self, group: &BTreeSet<usize>) -> bool {
        self.visits.iter().any(|visit| visit.touched.keys().any(|field| group.contains(field)))
    }

    /// Bytes from one element of a group's array to the next.
    fn element_bytes(&self, group: &BTreeSet<usize>) -> Option<u64> {
        let fields: Vec<usize> = group.iter().copied().collect();
        let align = fields.iter().map(|field| self.model.fields[*field].align_bytes).max().unwrap_or(1);
        Some(placement::place(&self.model.fields, &fields, align)?.size_bytes)
    }

    /// Lines of a group's array for one element.
    fn of_visit(&self, visit: &Visit, group: &BTreeSet<usize>) -> Option<f64> {
        let touched: u64 =
            visit.touched.iter().filter(|(field, _)| group.contains(field)).map(|(_, bytes)| bytes).sum();
        if touched == 0 {
            return Some(0.0);
        }
        let alone = (touched as f64 / self.line_bytes).max(1.0);
        let Some(stride) = visit.stride else { return Some(alone) };
        Some(alone.min((stride * self.element_bytes(group)?) as f64 / self.line_bytes))
    }

    /// Lines of a group's array for all calls, counted by the weights of their regions.
    fn weighed(&self, group: &BTreeSet<usize>) -> Option<f64> {
        let of = |visit: &Visit| Some(visit.weight * visit.per_call * self.of_visit(visit, group)?);
        self.visits.iter().map(of).sum()
    }

    /// The units in as few groups as need hardly more lines than the best.
    fn grouped<'u>(&self, units: impl Iterator<Item = &'u BTreeSet<usize>>) -> Option<Vec<BTreeSet<usize>>> {
        let mut groups: BTreeMap<Vec<bool>, BTreeSet<usize>> = BTreeMap::new();
        for unit in units.filter(|unit| !unit.is_empty()) {
            let uses = |visit: &Visit| visit.touched.keys().any(|field| unit.contains(field));
            groups.entry(self.visits.iter().map(uses).collect()).or_default().extend(unit);
        }
        let costed = |group: BTreeSet<usize>| self.weighed(&group).map(|lines| (group, lines));
        let mut groups: Vec<(BTreeSet<usize>, f64)> =
            groups.into_values().map(costed).collect::<Option<_>>()?;
        let mut least = groups.iter().map(|(_, lines)| lines).sum::<f64>();
        while let Some((one, other, merged)) = self.cheapest(&groups)? {
            let all = |groups: &[(BTreeSet<usize>, f64)]| groups.iter().map(|(_, lines)| lines).sum::<f64>();
            let then = all(&groups) - groups[one].1 - groups[other].1 + merged.1;
            if then > SLACK * least {
                break;
            }
            least = least.min(then);
            groups.remove(other);
            groups[one] = merged;
        }
        Some(groups.into_iter().map(|(group, _)| group).collect())
    }

    /// The two groups that cost least more as one, the first before the other, and the one that they would be.
    fn cheapest(&self, groups: &[(BTreeSet<usize>, f64)]) -> Option<Option<Merged>> {
        let mut best: Option<(f64, Merged)> = None;
        for (one, (first, of_first)) in groups.iter().enumerate() {
            for (other, (second, of_second)) in groups.iter().enumerate().skip(one + 1) {
                let merged: BTreeSet<usize> = first.union(second).copied().collect();
                let lines = self.weighed(&merged)?;
                let more = lines - of_first - of_second;
                if best.as_ref().is_none_or(|(least, _)| more < *least) {
                    best = Some((more, (one, other, (merged, lines))));
                }
            }
        }
        Some(best.map(|(_, merged)| merged))
    }
}

/// The places of two groups, and the group of both with its lines.
type Merged = (usize, usize, (BTreeSet<usize>, f64));
