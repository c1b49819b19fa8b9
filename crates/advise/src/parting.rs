//! Data of different threads on lines of their own, where they fight over one line without need.
//!
//! Room is made by unnamed bit-fields: they are no members, so that values by position stay as they are, and they ask for no
//! alignment, which memory from `malloc` would not have. There is as much of it as keeps the two apart wherever an object begins.

use crate::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::kind::{Description, FixKind, KindName, Task};
use crate::member_order::Plan;
use crate::options::Options;
use crate::parting_text::{Room, write_room};
use crate::placement::{Lead, Placed, end_after, place_after};
use crate::problem::RecordedOffsets;
use crate::problem::{Subject, members_in};
use crate::proposal::{Advice, Check, OrderProposal, PART, Parted, Reason, Refusal, Suggestion};
use crate::score::Model;
use crate::sources::Sources;
use crate::spelling::{Spelling, spelling};
use crate::verify::{self, Candidate, Verified};
use crate::{asserted::Asserted, figures, reasons};
use lineup_model::access::ThreadId;
use lineup_model::types::Language;
use lineup_model::usage::FoughtOver;
use std::collections::{BTreeMap, BTreeSet};

/// Bits of each bit-field that makes room.
const ROOM_BITS: u64 = 32;

/// Members of different threads apart, and objects of different threads.
pub(crate) struct Partings;

impl FixKind for Partings {
    fn name(&self) -> KindName {
        PART
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let mut done = BTreeSet::new();
        for fought_over in task.usage.fought_over.clone() {
            let Some(subject) = Subject::new(task.types, fought_over.ty, task.usage) else { continue };
            let Some(spelling) = spelling(task.types, subject.id) else { continue };
            if !done.insert(spelling.name.clone()) {
                continue;
            }
            if subject.types.get(subject.id).is_some_and(|ty| ty.language == Language::Rust) {
                let told = format!(
                    "{} {}",
                    said(&subject, &fought_over, task.options),
                    in_rust(&fought_over, task.options)
                );
                advice.suggestions.push(Suggestion::new(PART, &spelling.name, told));
                continue;
            }
            if !task.options.allow_growth {
                let told = format!("{} --allow-growth tries it.", said(&subject, &fought_over, task.options));
                advice.suggestions.push(Suggestion::new(PART, &spelling.name, told));
                continue;
            }
            if let Some(refusal) = task.options.refusal_of(&spelling.name) {
                advice.refusals.push(refusal);
                continue;
            }
            match part(task, advice, &subject, &spelling, fought_over)? {
                Ok(proposal) => {
                    advice.edited.extend(proposal.edited.clone());
                    advice.orders.push(proposal);
                }
                Err(constraints) => {
                    advice.refusals.push(Refusal { owner: spelling.name, constraints, lines: Vec::new() });
                }
            }
        }
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.suggestions_of(PART)
    }
}

fn said(subject: &Subject<'_>, fought_over: &FoughtOver, options: &Options) -> String {
    let FoughtOver { per_thousand, per_thousand_at_most, is_inside, .. } = *fought_over;
    let what = if is_inside {
        let groups = groups(subject);
        let mut by_group: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (field, group) in groups.iter().enumerate() {
            by_group
                .entry(group.unwrap_or(usize::MAX))
                .or_default()
                .push(reasons::member_name(subject.aggregate, field));
        }
        by_group.remove(&usize::MAX);
        let lists: Vec<String> = by_group.values().map(|names| names.join(" ")).collect();
        format!("Different threads use ({})", lists.join(") and ("))
    } else {
        "Different threads use objects that lie beside each other".to_owned()
    };
    format!(
        "{what} on one line of {} bytes: {per_thousand:.1} waits in a thousand accesses as recorded, up to {per_thousand_at_most:.1} in \
         other orders of the same accesses.",
        options.primary.bytes()
    )
}

/// What to write in Rust, which is not edited.
fn in_rust(fought_over: &FoughtOver, options: &Options) -> String {
    let bytes = options.primary.bytes();
    match fought_over.is_inside {
        true => format!(
            "Rust is not edited: give each of them a type with #[repr(align({bytes}))] around it, which parts them whether the \
             struct is repr(C) or not."
        ),
        false => format!(
            "Rust is not edited: #[repr(align({bytes}))] on the type gives each object lines of its own."
        ),
    }
}

/// The members by the threads that write them, and those that are only read; `None` for members that no thread shares.
pub(crate) fn groups(subject: &Subject<'_>) -> Vec<Option<usize>> {
    /// Members written less often than in one of so many accesses are as good as read only.
    const ACCESSES_PER_WRITE: u64 = 50;
    let offsets = subject.types.layout_offsets(subject.id).unwrap_or_default();
    let mut writers = vec![BTreeSet::<ThreadId>::new(); subject.aggregate.members.len()];
    let mut counts = vec![(0_u64, 0_u64); writers.len()];
    let own = |ty| subject.types.aggregate(ty).map(|(id, _)| id) == Some(subject.id);
    for used in subject.usage.thread_uses.iter().filter(|used| own(used.ty)) {
        let range = used.offset..used.offset.saturating_add(used.size_bytes);
        for (field, _) in members_in(subject.types, subject.aggregate, &offsets, &range) {
            writers[field].extend(&used.writers);
            counts[field].0 += used.loads;
            counts[field].1 += used.stores;
        }
    }
    let all: u64 = counts.iter().map(|(loads, stores)| loads + stores).sum();
    let mut known: Vec<BTreeSet<_>> = Vec::new();
    let mut groups = Vec::new();
    for (mut writers, (loads, stores)) in writers.into_iter().zip(counts) {
        if loads + stores == 0 {
            groups.push(None);
            continue;
        }
        if stores.saturating_mul(ACCESSES_PER_WRITE) < all {
            writers.clear();
        }
        let number = known.iter().position(|one| *one == writers).unwrap_or_else(|| {
            known.push(writers);
            known.len() - 1
        });
        groups.push(Some(number));
    }
    groups
}

/// What is tried: an order, and room before some members and behind all.
struct Layout {
    /// Of the plan's units.
    order: Vec<usize>,
    fields: Vec<usize>,
    /// Bit-fields before a member.
    room: BTreeMap<usize, u64>,
    /// And behind the last.
    behind: u64,
}

type Tried<T> = Result<Result<T, Vec<Binding>>, AdviseError>;

fn part(
    task: &mut Task<'_>,
    advice: &Advice,
    subject: &Subject<'_>,
    spelling: &Spelling,
    fought_over: FoughtOver,
) -> Tried<OrderProposal> {
    let sources = task.sources.with(&advice.edited);
    let models = match subject.models() {
        Ok(models) => models,
        Err(binding) => return Ok(Err(vec![binding])),
    };
    let plan = match Plan::make(subject, spelling, &sources, task.options, models) {
        Ok(plan) => plan,
        Err((_, bindings)) => return Ok(Err(bindings)),
    };
    let line_bytes = task.options.primary.bytes();
    let layout = match layout(subject, &plan, fought_over.is_inside, line_bytes) {
        Ok(layout) => layout,
        Err(binding) => return Ok(Err(vec![binding])),
    };
    let texts = match texts(&plan, &sources, (subject, spelling), &layout) {
        Ok(texts) => texts,
        Err(binding) => return Ok(Err(vec![binding])),
    };
    let mut all = advice.edited.clone();
    all.extend(texts.clone());
    let identity: Vec<usize> = (0..plan.problem.units.len()).collect();
    let before = plan.layouts(&identity);
    let placed = |model: &Model| place(model, &layout);
    let Some(predicted) = plan.models.models.iter().map(placed).collect::<Option<Vec<Placed>>>() else {
        return Ok(Err(vec![Binding::new(Constraint::LayoutNotReproduced)]));
    };
    let path = &plan.ground.body.found.path;
    let asserted = Asserted::of_type(subject, spelling, path, &layout.fields, [&before[0], &predicted[0]]);
    let candidate = Candidate { edited: &all, spelling, field_order: &layout.fields, asserted: &asserted };
    let verified = verify::confirm(&mut *task.judge, &candidate, subject, &plan.models, predicted)?;
    let Verified { after, check } = match verified {
        Ok(verified) => verified,
        Err(binding) => return Ok(Err(vec![binding])),
    };
    let layouts = (before.as_slice(), after.as_slice());
    let mut proposal = proposal(&plan, subject, spelling, &layout, layouts);
    proposal.check = check;
    proposal.seen_outside = task.options.meaning.seen_outside(&spelling.name);
    proposal.parted = Some(Parted {
        line_bytes,
        because: said(subject, &fought_over, task.options),
        room_bytes: (ROOM_BITS / 8) * (layout.room.values().sum::<u64>() + layout.behind),
    });
    (proposal.asserted, proposal.edited) = (vec![asserted], texts);
    Ok(Ok(proposal))
}

/// The texts with the order and the room.
fn texts(
    plan: &Plan<'_>,
    sources: &Sources,
    (subject, spelling): (&Subject<'_>, &Spelling),
    layout: &Layout,
) -> Result<BTreeMap<String, String>, Binding> {
    // In the present order values by position and constructors stay as they are.
    let mut texts = match layout.order.is_sorted() {
        true => BTreeMap::new(),
        false => plan.write(subject, sources, spelling, &layout.order)?,
    };
    let room = layout.room.iter().map(|(field, count)| Room {
        before: subject.aggregate.members[*field].name.as_deref().map(str::to_owned),
        fields: *count,
    });
    let behind = Room { before: None, fields: layout.behind };
    let all: Vec<Room> = room.chain((layout.behind > 0).then_some(behind)).collect();
    let text = write_room(&sources.with(&texts), subject, spelling, &all)?;
    texts.insert(plan.ground.body.found.path.clone(), text);
    Ok(texts)
}

/// The proposal, without what was edited and how it was checked.
fn proposal(
    plan: &Plan<'_>,
    subject: &Subject<'_>,
    spelling: &Spelling,
    layout: &Layout,
    (before, after): (&[Placed], &[Placed]),
) -> OrderProposal {
    let moved = plan.moved_members(&layout.order);
    let name = |field: &usize| reasons::member_name(subject.aggregate, *field);
    let bytes = |field: &usize| plan.models.models[0].fields[*field].size_bytes;
    OrderProposal {
        type_name: spelling.name.clone(),
        path: plan.ground.body.found.path.clone(),
        old_order: (0..layout.fields.len()).map(|field| name(&field)).collect(),
        new_order: layout.fields.iter().map(name).collect(),
        new_offsets_bits: layout.fields.iter().map(|&field| after[0].offsets_bits[field]).collect(),
        moved: moved.iter().map(name).collect(),
        moved_bytes: moved.iter().map(bytes).sum(),
        lines: figures::compare(subject.usage, &plan.models, before, after),
        sizes: figures::sizes(&plan.models, before, after),
        is_proven_minimal: false,
        check: Check::Predicted,
        reasons: why(subject, layout),
        obeyed: plan.obeyed(),
        seen_outside: None,
        field_order: layout.fields.clone(),
        parted: None,
        asserted: Vec::new(),
        edited: BTreeMap::new(),
    }
}

fn why(subject: &Subject<'_>, layout: &Layout) -> Vec<Reason> {
    let reason = |member: String| Reason {
        member,
        because: "has room before it, since other threads than its own use what lies there".to_owned(),
    };
    layout.room.keys().map(|field| reason(reasons::member_name(subject.aggregate, *field))).collect()
}

fn layout(
    subject: &Subject<'_>,
    plan: &Plan<'_>,
    is_inside: bool,
    line_bytes: u64,
) -> Result<Layout, Binding> {
    let units = plan.problem.units.len();
    let identity: Vec<usize> = (0..units).collect();
    let order = match is_inside {
        true => grouped(subject, plan).filter(|order| plan.problem.allows(order)).unwrap_or(identity),
        false => identity,
    };
    let fields = plan.problem.field_order(&order);
    let mut layout = Layout { order, fields, room: BTreeMap::new(), behind: 0 };
    let model = plan.models.models.first().ok_or_else(|| Binding::new(Constraint::LayoutNotReproduced))?;
    if !is_inside {
        layout.behind = least(line_bytes, |count| {
            let placed = place(model, &Layout { behind: count, ..layout.same() })?;
            let end = end_bytes(model, &layout.fields, &placed)?;
            Some(are_apart((end, placed.size_bytes), model.align_bytes, line_bytes))
        })
        .ok_or_else(|| Binding::new(Constraint::LayoutNotReproduced))?;
        return Ok(layout);
    }
    let groups = groups(subject);
    let mut last: Option<usize> = None;
    for (place_of, &field) in layout.fields.clone().iter().enumerate() {
        let Some(group) = groups[field] else { continue };
        if last.is_some_and(|last| last != group) {
            let before = layout.fields[..place_of].to_vec();
            let name = subject.aggregate.members[field].name.as_deref().map(str::to_owned);
            let is_plain = model.fields[field].bit_width.is_none() && model.fields[field].lead == Lead::None;
            let Some(name) = name.filter(|_| is_plain) else {
                return Err(Binding::new(Constraint::UnclearSource)
                    .on([reasons::member_name(subject.aggregate, field)])
                    .because("no room can be made before a bit-field or a member without a name"));
            };
            let count = least(line_bytes, |count| {
                let mut tried = layout.same();
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
    if layout.room.is_empty() {
        return Err(Binding::new(Constraint::LayoutNotReproduced)
            .because("its members are apart already, as far as their own layout goes"));
    }
    Ok(layout)
}

impl Layout {
    fn same(&self) -> Layout {
        Layout {
            order: self.order.clone(),
            fields: self.fields.clone(),
            room: self.room.clone(),
            behind: self.behind,
        }
    }
}

/// Members that no thread shares first, then those that are only read, then those of each set of writers.
fn grouped(subject: &Subject<'_>, plan: &Plan<'_>) -> Option<Vec<usize>> {
    let groups = groups(subject);
    let of_unit = |unit: usize| {
        let fields = plan.problem.units[unit].fields.clone();
        fields.filter_map(|field| groups.get(field).copied().flatten()).min()
    };
    let mut order: Vec<usize> = (0..plan.problem.units.len()).collect();
    order.sort_by_key(|unit| {
        let first = |group: usize| (0..plan.problem.units.len()).find(|unit| of_unit(*unit) == Some(group));
        (of_unit(*unit).and_then(first).map_or(0, |first| first + 1), *unit)
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

/// Whether what ends before `end` and what begins at `start` are on different lines wherever the object begins.
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

fn place(model: &Model, layout: &Layout) -> Option<Placed> {
    let mut fields = model.fields.clone();
    for (place_of, field) in layout.fields.iter().enumerate() {
        let Some(count) = layout.room.get(field) else { continue };
        let before = &layout.fields[..place_of];
        let placed = place_after(&fields, before, 1, model.head_bits)?;
        let end = before
            .last()
            .map_or(Some(model.head_bits), |last| end_after(&fields[*last], placed.offsets_bits[*last]))?;
        let room = end.checked_next_multiple_of(ROOM_BITS)? - end + ROOM_BITS * count;
        fields[*field].lead = Lead::Bits(room);
    }
    let placed = place_after(&fields, &layout.fields, model.align_bytes, model.head_bits)?;
    if layout.behind == 0 {
        return Some(placed);
    }
    let last = layout.fields.last()?;
    let end = end_after(&fields[*last], placed.offsets_bits[*last])?.checked_next_multiple_of(ROOM_BITS)?;
    let end = (end + ROOM_BITS * layout.behind).div_ceil(8);
    Some(Placed { size_bytes: end.checked_next_multiple_of(model.align_bytes)?, ..placed })
}
