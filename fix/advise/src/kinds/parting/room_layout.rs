//! Places of members when there is room between those of different threads.
//!
//! Room consists of arrays of `char`. If many values are given by position, or such that cannot get names, it consists
//! of unnamed bit-fields, which are no members, so that the values stay unchanged. Neither asks for an alignment, which memory from `malloc` would not
//! have. There is enough room to keep the two apart for every beginning of an object.

use crate::constraints::constraint::{Binding, Constraint};
use crate::kinds::order::member_order::Plan;
use crate::layout::demand::Model;
use crate::layout::placement::{Lead, Placed, end_after, place_after};
use crate::layout::subject::{Subject, member_name};
use std::collections::BTreeMap;

/// Bits of each bit-field that makes room.
pub(crate) const ROOM_BITS: u64 = 32;

/// A layout to try: an order, and room before some members and behind all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    /// The plan's units in their order.
    pub(crate) order: Vec<usize>,
    pub(crate) fields: Vec<usize>,
    /// Bit-fields before a member.
    pub(crate) room: BTreeMap<usize, u64>,
    /// Bit-fields behind the last.
    pub(crate) behind: u64,
}

impl Layout {
    /// Bytes of the room in each object.
    pub(crate) fn room_bytes(&self) -> u64 {
        (ROOM_BITS / 8) * (self.room.values().sum::<u64>() + self.behind)
    }
}

/// Room behind each object, so that the next one begins on another line.
pub(crate) fn with_room_behind(plan: &Plan<'_>, line_bytes: u64) -> Result<Layout, Binding> {
    let order: Vec<usize> = (0..plan.problem.units.len()).collect();
    let fields = plan.problem.field_order(&order);
    also_behind(plan, Layout { order, fields, room: BTreeMap::new(), behind: 0 }, line_bytes)
}

/// The same layout with room behind each object.
pub(crate) fn also_behind(plan: &Plan<'_>, mut layout: Layout, line_bytes: u64) -> Result<Layout, Binding> {
    let unknown = || Binding::new(Constraint::LayoutNotReproduced);
    let model = plan.models.models.first().ok_or_else(unknown)?;
    layout.behind = least(line_bytes, |count| {
        let placed = place(model, &Layout { behind: count, ..layout.clone() })?;
        let end = end_bytes(model, &layout.fields, &placed)?;
        Some(are_apart((end, placed.size_bytes), model.align_bytes, line_bytes))
    })
    .ok_or_else(unknown)?;
    Ok(layout)
}

/// Members by group: those of one group are put together where that is allowed.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    /// The group of each member that threads share.
    pub(crate) of: Vec<Option<usize>>,
    /// The group that the object begins with; else with members that no thread shares.
    pub(crate) first: Option<usize>,
}

/// Room between members of different groups. Members that no thread shares count as room.
pub(crate) fn by_groups(
    subject: &Subject<'_>,
    plan: &Plan<'_>,
    groups: &Groups,
    line_bytes: u64,
) -> Result<Layout, Binding> {
    let identity: Vec<usize> = (0..plan.problem.units.len()).collect();
    let order = grouped(plan, groups).filter(|order| plan.problem.allows(order)).unwrap_or(identity);
    let fields = plan.problem.field_order(&order);
    let mut layout = Layout { order, fields, room: BTreeMap::new(), behind: 0 };
    let model = plan.models.models.first().ok_or_else(|| Binding::new(Constraint::LayoutNotReproduced))?;
    let mut last: Option<usize> = None;
    for (place_of, &field) in layout.fields.clone().iter().enumerate() {
        let Some(group) = groups.of[field] else { continue };
        if last.is_some_and(|last| last != group) {
            let before = layout.fields[..place_of].iter().copied();
            let before: Vec<usize> = before.filter(|field| groups.of[*field].is_some()).collect();
            let name = subject.aggregate.members[field].name.as_deref().map(str::to_owned);
            let is_plain = model.fields[field].bit_width.is_none() && model.fields[field].lead == Lead::None;
            let Some(name) = name.filter(|_| is_plain) else {
                return Err(Binding::new(Constraint::UnclearSource)
                    .on([member_name(subject.aggregate, field)])
                    .because("no room can be made before a bit-field or a member without a name"));
            };
            let count = least(line_bytes, |count| {
                let mut tried = layout.clone();
                tried.room.insert(field, count);
                let placed = place(model, &tried)?;
                let end = end_bytes(model, &before, &placed)?;
                let start = placed.offsets_bits[field] / 8;
                Some(are_apart((end, start), model.align_bytes, line_bytes))
            });
            let count = count.ok_or_else(|| Binding::new(Constraint::LayoutNotReproduced).on([name]))?;
            if count > 0 {
                layout.room.insert(field, count);
            }
        }
        last = Some(group);
    }
    if layout.room.is_empty() && layout.order.is_sorted() {
        return Err(Binding::new(Constraint::KeptApart)
            .because("no room inside the type puts what threads wait for further apart"));
    }
    keeps_offsets(subject, plan, model, &layout)?;
    Ok(layout)
}

/// Refuses room that would move a member that has to keep its offset.
fn keeps_offsets(
    subject: &Subject<'_>,
    plan: &Plan<'_>,
    model: &Model,
    layout: &Layout,
) -> Result<(), Binding> {
    let placed = place(model, layout).ok_or_else(|| Binding::new(Constraint::LayoutNotReproduced))?;
    let moved =
        plan.problem.models.iter().find_map(|model| model.moved_from_its_offset(&placed.offsets_bits));
    match moved {
        Some(field) => Err(Binding::new(Constraint::NeverLarger)
            .on([member_name(subject.aggregate, field)])
            .because("room before it would move it, and it has to keep its offset")),
        None => Ok(()),
    }
}

/// The group that is to be first, members that no thread shares, then the other groups.
fn grouped(plan: &Plan<'_>, groups: &Groups) -> Option<Vec<usize>> {
    let of_unit = |unit: usize| {
        let fields = plan.problem.units[unit].fields.clone();
        fields.filter_map(|field| groups.of.get(field).copied().flatten()).min()
    };
    let mut order: Vec<usize> = (0..plan.problem.units.len()).collect();
    order.sort_by_key(|unit| {
        let first = |group: usize| (0..plan.problem.units.len()).find(|unit| of_unit(*unit) == Some(group));
        let of = of_unit(*unit);
        let is_first = of.is_some() && of == groups.first;
        (!is_first, of.and_then(first).map_or(0, |first| first + 1), *unit)
    });
    let fixed = |unit: &usize| plan.problem.units[*unit].is_fixed;
    order.iter().enumerate().all(|(place, unit)| !fixed(unit) || place == *unit).then_some(order)
}

/// The fewest bit-fields with which something holds.
fn least(line_bytes: u64, holds: impl Fn(u64) -> Option<bool>) -> Option<u64> {
    for count in 0..=2 * line_bytes / (ROOM_BITS / 8) {
        if holds(count)? {
            return Some(count);
        }
    }
    None
}

/// Whether bytes before `end` and bytes from `start` on lie on different lines for every beginning of the object.
fn are_apart((end, start): (u64, u64), align_bytes: u64, line_bytes: u64) -> bool {
    let step = align_bytes.clamp(1, line_bytes) as usize;
    (0..line_bytes)
        .step_by(step)
        .all(|base| (base + end.saturating_sub(1)) / line_bytes != (base + start) / line_bytes)
}

/// The byte after the last member.
fn end_bytes(model: &Model, fields: &[usize], placed: &Placed) -> Option<u64> {
    let ends = fields.iter().map(|&field| end_after(&model.fields[field], placed.offsets_bits[field]));
    ends.collect::<Option<Vec<u64>>>()?.into_iter().max().map(|bits| bits.div_ceil(8))
}

/// The places of members in a layout.
pub(crate) fn place(model: &Model, layout: &Layout) -> Option<Placed> {
    place_with_room(model, layout).map(|(placed, _)| placed)
}

/// Whether all room begins at a multiple of a bit-field's size. Arrays of as many bytes then take the same place.
pub(crate) fn may_be_arrays(model: &Model, layout: &Layout) -> bool {
    let begins = place_with_room(model, layout).map(|(_, begins)| begins);
    begins.is_some_and(|begins| begins.iter().all(|begin| begin.is_multiple_of(ROOM_BITS)))
}

/// The places of members in a layout, and the beginnings, in bits, of the room before some and behind all.
fn place_with_room(model: &Model, layout: &Layout) -> Option<(Placed, Vec<u64>)> {
    let mut fields = model.fields.clone();
    let mut begins = Vec::new();
    for (place_of, field) in layout.fields.iter().enumerate() {
        let Some(count) = layout.room.get(field) else { continue };
        let before = &layout.fields[..place_of];
        let placed = place_after(&fields, before, 1, model.head_bits)?;
        let end = before
            .last()
            .map_or(Some(model.head_bits), |last| end_after(&fields[*last], placed.offsets_bits[*last]))?;
        let room = end.checked_next_multiple_of(ROOM_BITS)? - end + ROOM_BITS * count;
        fields[*field].lead = Lead::Bits(room);
        begins.push(end);
    }
    let placed = place_after(&fields, &layout.fields, model.align_bytes, model.head_bits)?;
    if layout.behind == 0 {
        return Some((placed, begins));
    }
    let last = layout.fields.last()?;
    let end = end_after(&fields[*last], placed.offsets_bits[*last])?;
    begins.push(end);
    let end = end.checked_next_multiple_of(ROOM_BITS)?;
    let end = (end + ROOM_BITS * layout.behind).div_ceil(8);
    let placed = Placed { size_bytes: end.checked_next_multiple_of(model.align_bytes)?, ..placed };
    Some((placed, begins))
}
