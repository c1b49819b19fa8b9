//! The rules of a review for one type.

use super::read_apart::ReadApart;
use super::{configuration, groups, locks};
use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::placement::Placed;
use crate::layout::subject::Subject;
use crate::search::score::Problem;
use crate::search::unit_set::UnitSet;
use crate::text::body::Body;
use crate::text::sources::Sources;
use lineup_model::types::{TypeKind, Types};
use std::collections::BTreeSet;
use std::ops::Range;

/// The rules for one type. Units are those of its text.
#[derive(Clone, Default, Debug)]
pub(crate) struct Review {
    /// Locks with their data: no further apart than now.
    near: Vec<(usize, usize)>,
    /// Members below a comment: together, the first of them first.
    groups: Vec<Range<usize>>,
    /// Units that a configuration leaves out, or sizes.
    conditional: BTreeSet<usize>,
    read_apart: ReadApart,
    /// Units of the problem before the first unit of text.
    head: usize,
    /// The rules at work.
    pub(crate) bindings: Vec<Binding>,
    /// The first unit stays first.
    pub(crate) keeps_first: bool,
}

impl Review {
    /// The rules for a type. Locks in its text are marked as still, and ends of groups as such.
    pub(crate) fn of(
        subject: &Subject<'_>,
        body: &mut Body<'_>,
        ranges: &[Range<usize>],
        sources: &Sources,
    ) -> Self {
        let mut review = Review { read_apart: ReadApart::of(subject), ..Review::default() };
        for lock in locks::locks(subject, body, ranges) {
            body.units[lock.unit].is_still = true;
            let units = std::iter::once(&lock.unit).chain(&lock.data);
            let names: Vec<String> = units.flat_map(|unit| body.units[*unit].names.clone()).collect();
            let binding = Binding::new(Constraint::LockWithData).on(names);
            review.bindings.push(binding.at(&body.found.path, body.line_of(lock.unit)));
            review.near.extend(lock.data.iter().map(|data| (lock.unit, *data)));
        }
        for (group, binding) in groups::commented(body, ranges) {
            body.units[group.end - 1].ends_group = true;
            review.bindings.push(binding);
            review.groups.push(group);
        }
        for (unit, because) in configuration::conditional(subject, body, ranges, sources) {
            let binding = Binding::new(Constraint::Configuration).on(body.units[unit].names.clone());
            review.bindings.push(binding.at(&body.found.path, body.line_of(unit)).because(because));
            review.conditional.insert(unit);
        }
        review.bindings.extend(review.read_apart.binding(subject));
        if let Some(binding) = first(subject, body, ranges, &review.read_apart) {
            review.keeps_first = true;
            review.bindings.push(binding);
        }
        review
    }

    /// The same for a problem that has units before the text's.
    pub(crate) fn behind(mut self, head: usize) -> Self {
        self.head = head;
        self
    }

    /// Whether a reviewer would accept the moves of an order that leaves some units in place. `used` are the units that
    /// calls use often.
    pub(crate) fn accepts_moves(
        &self,
        problem: &Problem,
        (order, stays): (&[usize], &UnitSet),
        used: &UnitSet,
    ) -> bool {
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, unit)| places[*unit] = place);
        let place = |unit: usize| places[unit + self.head];
        let moved = || order.iter().filter(|unit| !stays.contains(**unit)).map(|unit| &problem.units[*unit]);
        let members: usize = moved().map(|unit| unit.fields.len()).sum();
        let is_together = |group: &Range<usize>| {
            let top = place(group.start);
            group.clone().all(|unit| (top..top + group.len()).contains(&place(unit)))
        };
        let is_passed =
            |unit: usize| used.iter().any(|used| used < unit + self.head && places[used] > place(unit));
        members <= MOST_MEMBERS
            && !moved().any(|unit| unit.is_still)
            && self.keeps_data_near(problem, order)
            && self.groups.iter().all(is_together)
            && !self.conditional.iter().any(|&unit| is_passed(unit))
    }

    /// Whether the data of each lock lie as near to it as in the present order.
    fn keeps_data_near(&self, problem: &Problem, order: &[usize]) -> bool {
        if self.near.is_empty() {
            return true;
        }
        let present: Vec<usize> = (0..order.len()).collect();
        let placed = |order: &[usize]| problem.place(problem.models.first()?, order);
        let Some((before, after)) = placed(&present).zip(placed(order)) else { return false };
        let distance = |placed: &Placed, (lock, data): (usize, usize)| {
            let offset = |unit: usize| {
                let field = problem.units.get(unit + self.head).map(|unit| unit.fields.start);
                field.and_then(|field| placed.offsets_bits.get(field)).copied().unwrap_or_default()
            };
            offset(lock).abs_diff(offset(data))
        };
        self.near.iter().all(|&pair| distance(&after, pair) <= distance(&before, pair))
    }

    /// The members that calls only read and that lie on a line with members that change, by the place of each.
    pub(crate) fn beside_written(&self, problem: &Problem, order: &[usize]) -> BTreeSet<usize> {
        self.read_apart.beside_written(problem, order)
    }
}

/// A patch moves at most this many members, however many of them move as one.
const MOST_MEMBERS: usize = 10;

/// The rule that the first member stays first, where it holds: a pointer of which every CPU has a target, or a pointer
/// that calls read and never write. Code reaches it without an offset.
fn first(
    subject: &Subject<'_>,
    body: &Body<'_>,
    ranges: &[Range<usize>],
    read: &ReadApart,
) -> Option<Binding> {
    let unit = body.units.first()?;
    let fields = ranges.first()?;
    let is_percpu = body.code_words(unit).any(|word| word == "__percpu");
    let is_read = |field: usize| {
        let member = subject.aggregate.members.get(field);
        member.is_some_and(|member| is_pointer(subject.types, member.ty)) && read.is_only_read(field)
    };
    let binding = Binding::new(Constraint::StaysFirst).on(unit.names.clone());
    (is_percpu || fields.clone().next().is_some_and(is_read)).then_some(binding)
}

fn is_pointer(types: &Types, id: lineup_model::types::TypeId) -> bool {
    types.strip(id).and_then(|id| types.get(id)).is_some_and(|ty| matches!(ty.kind, TypeKind::Pointer(_)))
}
