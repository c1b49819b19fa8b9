//! The choice of the layout that parts data of different threads, and of the place for a lock, by the coherence model's
//! counts.

use crate::constraints::constraint::{Binding, Constraint};
use crate::kind::Task;
use crate::kinds::order::member_order::Plan;
use crate::kinds::parting::room_layout::{Groups, Layout, also_behind, by_groups, place, with_room_behind};
use crate::layout::placement::Placed;
use crate::layout::subject::{Subject, member_name};
use crate::layout::thread_groups::{self, members_of};
use crate::options::Options;
use crate::proposal::PredictedWaits;
use lineup_explain::threads::{ObjectsElsewhere, Waits, WaitsElsewhere};
use lineup_model::usage::{FoughtOver, LockUse};
use std::collections::{BTreeMap, BTreeSet};

/// Fewer waits than this are nothing to move a lock for.
const LEAST_WAITS: u64 = 100;
/// Waits that are rarer than one in this number of accesses are nothing to act on either.
const ACCESSES_PER_WAIT: u64 = 1000;

/// A layout, and the reasons for it.
pub(crate) struct Choice {
    pub(crate) layout: Layout,
    /// In sentences.
    pub(crate) because: String,
    pub(crate) predicted: Option<PredictedWaits>,
    /// The reason why a member has room before it.
    pub(crate) room_because: &'static str,
}

const OTHERS_USE: &str = "has room before it, since other threads use the bytes there";
const LOCK_APART: &str = "has room before it: a lock, or what it guards, is apart from the rest";

/// A lock, and where it might go.
struct LockMove<'u> {
    lock: &'u LockUse,
    /// The members next to it.
    beside: BTreeSet<usize>,
    layout: Layout,
    waits: Waits,
}

/// The layout for a type with contention for its objects or members, or with a lock that would lie better elsewhere.
/// `None` when all locks lie well and there is no contention.
pub(crate) fn choose(
    task: &Task<'_>,
    subject: &Subject<'_>,
    plan: &Plan<'_>,
    fought: Option<&FoughtOver>,
) -> Result<Option<Choice>, Binding> {
    let line_bytes = task.options.primary.bytes();
    let groups = Groups { of: thread_groups::groups(subject), first: None };
    let parted = match fought {
        Some(fought) => {
            let inside = by_groups(subject, plan, &groups, line_bytes);
            let both = inside.clone().and_then(|layout| also_behind(plan, layout, line_bytes)).ok();
            let as_told = if fought.is_inside { inside? } else { with_room_behind(plan, line_bytes)? };
            Some(both.filter(|both| is_better(subject, plan, both, &as_told)).unwrap_or(as_told))
        }
        None => None,
    };
    let moved = if fought.is_none_or(|fought| fought.is_inside) {
        move_lock(subject, plan, line_bytes)
    } else {
        None
    };
    let as_parted = parted.as_ref().and_then(|layout| waits(subject, plan, layout));
    let is_fewer =
        |moved: &LockMove<'_>| as_parted.is_none_or(|parted| is_much_less(subject, moved.waits, parted));
    let because = |fought: &FoughtOver| said(subject, fought, task.options);
    Ok(match (parted, moved.filter(is_fewer)) {
        (_, Some(moved)) => Some(Choice {
            because: fought
                .map(because)
                .into_iter()
                .chain([in_words(subject, &moved)])
                .collect::<Vec<_>>()
                .join(" "),
            predicted: predict(subject, plan, &moved.layout),
            layout: moved.layout,
            room_because: LOCK_APART,
        }),
        (Some(layout), None) => {
            let objects = objects(plan, &layout);
            let predicted = objects.map_or(Ok(None), |objects| by_prediction(subject, &objects))?;
            Some(Choice {
                because: fought.map(because).unwrap_or_default(),
                predicted,
                layout,
                room_because: OTHERS_USE,
            })
        }
        (None, None) => None,
    })
}

/// Whether threads wait much less with one layout than with another. A member next to another of its own object, and of
/// the next object as well, takes room inside and behind.
fn is_better(subject: &Subject<'_>, plan: &Plan<'_>, one: &Layout, other: &Layout) -> bool {
    let both = waits(subject, plan, one).zip(waits(subject, plan, other));
    both.is_some_and(|(one, other)| is_much_less(subject, one, other))
}

/// The best place of a lock, if it is better than the present one: its member alone on lines of its own, it with the
/// members it guards, or every lock with its guarded members.
fn move_lock<'u>(subject: &Subject<'u>, plan: &Plan<'_>, line_bytes: u64) -> Option<LockMove<'u>> {
    let elsewhere = subject.usage.elsewhere.as_ref()?;
    let locks = thread_groups::locks(subject);
    let is_waited_for = |lock: &&&LockUse| is_much(elsewhere.accesses(), lock.waits);
    let lock = locks.iter().filter(is_waited_for).max_by_key(|lock| lock.waits)?;
    let (own, guards) = members_of(subject, lock);
    let all = thread_groups::groups(subject);
    let is_used = |field: usize| all[field].is_some();
    let apart = |together: &BTreeSet<usize>| -> Vec<Option<usize>> {
        let group = |field| is_used(field).then(|| usize::from(together.contains(&field)));
        (0..all.len()).map(group).collect()
    };
    let of_lock = |of: &[Option<usize>]| own.first().and_then(|field| of[*field]);
    let with_guards: BTreeSet<usize> = own.union(&guards).copied().collect();
    let tried =
        [(BTreeSet::new(), apart(&own)), (guards.clone(), apart(&with_guards)), (guards, all.clone())];
    let orders = tried.into_iter().flat_map(|(beside, of)| {
        [None, of_lock(&of)].map(|first| (beside.clone(), Groups { of: of.clone(), first }))
    });
    let places = orders.filter_map(|(beside, groups)| {
        let layout = by_groups(subject, plan, &groups, line_bytes).ok()?;
        let waits = waits(subject, plan, &layout)?;
        Some(LockMove { lock, beside, layout, waits })
    });
    let best = places.min_by_key(|place| (place.waits.all(), place.layout.room_bytes()))?;
    let now = elsewhere.waits().recorded;
    is_much_less(subject, best.waits, now).then_some(best)
}

fn is_much(accesses: u64, waits: u64) -> bool {
    waits >= LEAST_WAITS.max(accesses / ACCESSES_PER_WAIT)
}

/// A tenth less, and as many as are worth an edit.
fn is_much_less(subject: &Subject<'_>, new: Waits, old: Waits) -> bool {
    let accesses = subject.usage.elsewhere.as_ref().map_or(0, |elsewhere| elsewhere.accesses());
    is_much(accesses, old.all().saturating_sub(new.all())) && new.all() + old.all() / 10 < old.all()
}

fn in_words(subject: &Subject<'_>, place: &LockMove<'_>) -> String {
    let names = |fields: &BTreeSet<usize>| {
        let names: Vec<String> = fields.iter().map(|field| member_name(subject.aggregate, *field)).collect();
        names.join(", ")
    };
    let (own, _) = members_of(subject, place.lock);
    match place.beside.is_empty() {
        true => format!("The lock {} moves away from its neighbours.", names(&own)),
        false => format!(
            "The lock {} goes next to the data that it guards ({}), away from the rest.",
            names(&own),
            names(&place.beside)
        ),
    }
}

fn objects(plan: &Plan<'_>, layout: &Layout) -> Option<ObjectsElsewhere> {
    let identity: Vec<usize> = (0..plan.problem.units.len()).collect();
    let model = plan.models.models.first()?;
    let now: Placed = plan.layouts(&identity).into_iter().next()?;
    let then = place(model, layout)?;
    let member = |field: usize| {
        let size = model.fields[field]
            .bit_width
            .map_or(model.fields[field].size_bytes, |bits| u64::from(bits).div_ceil(8));
        (now.offsets_bits[field] / 8, size, then.offsets_bits[field] / 8)
    };
    Some(ObjectsElsewhere {
        size_bytes: now.size_bytes,
        new_size_bytes: then.size_bytes,
        members: (0..model.fields.len()).map(member).collect(),
    })
}

fn waits(subject: &Subject<'_>, plan: &Plan<'_>, layout: &Layout) -> Option<Waits> {
    subject.usage.elsewhere.as_ref()?.objects_as_recorded(subject.id, &objects(plan, layout)?)
}

fn predict(subject: &Subject<'_>, plan: &Plan<'_>, layout: &Layout) -> Option<PredictedWaits> {
    let waits = subject.usage.elsewhere.as_ref()?.objects(subject.id, &objects(plan, layout)?)?;
    Some(PredictedWaits::from(waits))
}

/// The predicted waits of objects, if they can be predicted.
///
/// # Errors
/// When more than half of the waits are predicted to stay.
pub(crate) fn by_prediction(
    subject: &Subject<'_>,
    objects: &ObjectsElsewhere,
) -> Result<Option<PredictedWaits>, Binding> {
    let foreseen = subject.usage.elsewhere.as_ref().and_then(|all| all.objects(subject.id, objects));
    let predicted = foreseen.map(PredictedWaits::from);
    match predicted.is_some_and(|predicted| !predicted.is_half()) {
        true => Err(Binding::new(Constraint::WaitsStay).because(
            "what threads fight over lies within one member; by hand, alignas on the type of its elements gives each lines of its \
             own",
        )),
        false => Ok(predicted),
    }
}

impl From<WaitsElsewhere> for PredictedWaits {
    fn from(waits: WaitsElsewhere) -> PredictedWaits {
        let WaitsElsewhere { accesses, before, after } = waits;
        PredictedWaits { accesses, before, after }
    }
}

pub(crate) fn said(subject: &Subject<'_>, fought_over: &FoughtOver, options: &Options) -> String {
    let FoughtOver { per_thousand, per_thousand_at_most, is_inside, .. } = *fought_over;
    let what = if is_inside {
        let groups = thread_groups::groups(subject);
        let mut by_group: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for (field, group) in groups.iter().enumerate() {
            by_group
                .entry(group.unwrap_or(usize::MAX))
                .or_default()
                .push(member_name(subject.aggregate, field));
        }
        by_group.remove(&usize::MAX);
        let lists: Vec<String> = by_group.values().map(|names| names.join(" ")).collect();
        format!("Different threads use ({})", lists.join(") and ("))
    } else {
        "Different threads use objects that lie next to each other".to_owned()
    };
    format!(
        "{what} on one line of {} bytes: {per_thousand:.1} waits in a thousand accesses as recorded, up to {per_thousand_at_most:.1} in \
         other orders of the same accesses.",
        options.primary.bytes()
    )
}
