//! Member orders as a kind of fix: every used type in turn, the most used first.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::guard::lock::Lock;
use crate::guard::lock_groups;
use crate::kind::{Description, FixKind, KindName, Task, per_call};
use crate::kinds::order::member_order::{self, Verdict};
use crate::kinds::saving_share;
use crate::layout::spelling::{Spelling, spelling};
use crate::layout::subject::Subject;
use crate::patch::value_lines::ValueLines;
use crate::proposal::{
    Advice, FurtherMoves, OrderProposal, PART, Parted, REORDER, Refusal, RegionLines, SizeChange,
};
use crate::search::outcome::Outcome;
use crate::usage::Usage;
use lineup_model::types::{TypeId, Types};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Orders of members.
pub(crate) struct Orders;

impl FixKind for Orders {
    fn name(&self) -> KindName {
        REORDER
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let ids = used_types(task.usage, task.types);
        let foreseen = foresee_all(task, advice, &ids);
        for (id, foreseen) in ids.into_iter().zip(foreseen) {
            order_type(task, advice, id, foreseen)?;
        }
        Ok(())
    }

    /// Guards proposed orders, and present ones that are good already.
    fn guard(&self, task: &Task<'_>, advice: &Advice, lock: &mut Lock) {
        let mut done = BTreeSet::new();
        for id in used_types(task.usage, task.types) {
            let Some(subject) = Subject::new(task.types, id, task.usage) else { continue };
            let Some(name) = spelling(task.types, subject.id).map(|spelling| spelling.name) else { continue };
            if !done.insert(name.clone()) {
                continue;
            }
            if let Some(proposal) = advice.orders.iter().find(|order| order.type_name == name) {
                lock_groups::add_order(lock, &subject, proposal, task.options);
            } else if advice.already_good.contains(&name)
                && !lock_groups::holds_resized(task.types, subject.id, &advice.orders)
            {
                lock_groups::add_present(lock, &subject, &name, task.options);
            }
        }
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.orders.iter().map(describe).collect()
    }
}

/// Used aggregates, the one with the most accesses per call first.
pub(crate) fn used_types(usage: &Usage, types: &Types) -> Vec<TypeId> {
    let mut weights: BTreeMap<TypeId, f64> = BTreeMap::new();
    for used in &usage.types {
        let Some((id, _)) = types.aggregate(used.ty) else { continue };
        let weight = usage.regions.get(used.region).map_or(0.0, |region| region.weight);
        let objects: u64 = used.patterns.iter().map(|pattern| pattern.occurrences).sum();
        *weights.entry(id).or_default() += weight * objects as f64 / used.calls.max(1) as f64;
    }
    let mut ids: Vec<(TypeId, f64)> = weights.into_iter().collect();
    ids.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ids.into_iter().map(|(id, _)| id).collect()
}

/// The search's result for one type: an order worth a patch, or the answer.
type Foreseen = Result<Outcome, Verdict>;

/// The stack of a thread that searches.
const STACK_BYTES: usize = 16 << 20;

/// Every type's order, worked out on all processors: types do not depend on each other until they are written.
fn foresee_all(task: &Task<'_>, advice: &Advice, ids: &[TypeId]) -> Vec<Option<Foreseen>> {
    let (usage, types, options) = (task.usage, task.types, task.options);
    let sources = task.sources.with(&advice.edited);
    let of = |id: TypeId| {
        let subject = Subject::new(types, id, usage)?;
        let spelling = spelling(types, subject.id)?;
        let is_tried = options.refusal_of(&spelling.name).is_none() && subject.aggregate.members.len() > 1;
        is_tried.then(|| member_order::foresee(&subject, &spelling, &sources, options))
    };
    let next = AtomicUsize::new(0);
    let found: Vec<OnceLock<Option<Foreseen>>> = ids.iter().map(|_| OnceLock::new()).collect();
    let work = || {
        let place = || next.fetch_add(1, Ordering::Relaxed);
        while let Some((&id, one)) = Some(place()).and_then(|at| ids.get(at).zip(found.get(at))) {
            one.get_or_init(|| of(id));
        }
    };
    std::thread::scope(|scope| {
        let others = std::thread::available_parallelism().map_or(0, |all| all.get() - 1);
        for _ in 0..others {
            // Without another thread this one does it all.
            let _ = std::thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        }
        work();
    });
    found.into_iter().map(|one| one.into_inner().flatten()).collect()
}

fn order_type(
    task: &mut Task<'_>,
    advice: &mut Advice,
    id: TypeId,
    foreseen: Option<Foreseen>,
) -> Result<(), AdviseError> {
    let Some(subject) = Subject::new(task.types, id, task.usage) else { return Ok(()) };
    let Some(spelling) = spelling(task.types, subject.id) else {
        let constraints = vec![Binding::new(Constraint::Anonymous)];
        let owner = format!("(anonymous type {})", id.0);
        advice.refusals.push(Refusal { owner, constraints, lines: Vec::new() });
        return Ok(());
    };
    if let Some(refusal) = task.options.refusal_of(&spelling.name) {
        advice.refusals.push(refusal);
        return Ok(());
    }
    // A layout that keeps threads apart is not packed again.
    let is_parted = task.options.allow_growth && subject.is_fought_over()
        || advice.is_split(&spelling.name)
        || advice.is_narrowed(&spelling.name)
        || advice.orders.iter().any(|parted| parted.type_name == spelling.name);
    let is_gathered = advice.gathers.iter().any(|gather| gather.reordered_types.contains(&spelling.name));
    let Some(foreseen) = foreseen.filter(|_| !is_gathered && !is_parted) else { return Ok(()) };
    advice.types_touched += 1;
    let (options, edited) = (task.options, &advice.edited);
    let verdict = match foreseen {
        Ok(order) => {
            let current = task.sources.with(edited);
            member_order::write(&subject, &spelling, &current, options, &mut *task.judge, edited, order)?
        }
        Err(verdict) => verdict,
    };
    let verdict = match verdict {
        Verdict::Proposed(proposal) => {
            Verdict::Proposed(with_values_as_they_are(task, advice, (&subject, &spelling), proposal)?)
        }
        other => other,
    };
    match verdict {
        Verdict::Proposed(mut proposal) => {
            proposal.seen_outside = options.meaning.seen_outside(&spelling.name);
            if let Some(little) = saving_share::too_little(task.usage, options, &describe(&proposal)) {
                advice.too_little.push(little);
            } else {
                advice.edited.extend(proposal.edited.clone());
                advice.orders.push(*proposal);
            }
        }
        Verdict::AlreadyGood(name) => advice.already_good.push(name),
        Verdict::Refused(refusal) => {
            let unread = refusal.constraints.iter().find(|binding| is_unread(binding.constraint));
            advice.types_not_read.extend(unread.map(|binding| (refusal.owner.clone(), binding.clone())));
            advice.refusals.push(refusal);
        }
    }
    Ok(())
}

/// The share of the best order's saving at which an order is preferred because it leaves values by position unchanged.
const ENOUGH: f64 = 0.5;

/// The order; or, if it rewrites many lines of values by position, one that leaves them unchanged and saves enough.
fn with_values_as_they_are(
    task: &mut Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    mut proposal: Box<OrderProposal>,
) -> Result<Box<OrderProposal>, AdviseError> {
    let sources = task.sources.with(&advice.edited);
    let values = ValueLines::of(&proposal, &sources);
    if values.iter().any(ValueLines::is_unwelcome) && !proposal.named_values.is_empty() {
        let mut options = task.options.clone();
        let pinned = proposal.named_values.iter().map(|member| (spelling.name.clone(), member.clone()));
        options.pins.extend(pinned);
        let other = match member_order::foresee(subject, spelling, &sources, &options) {
            Ok(order) => member_order::write(
                subject,
                spelling,
                &sources,
                &options,
                &mut *task.judge,
                &advice.edited,
                order,
            )?,
            Err(verdict) => verdict,
        };
        let primary = task.options.primary.bytes();
        if let Verdict::Proposed(other) = other
            && saved(&other, primary) >= ENOUGH * saved(&proposal, primary)
        {
            proposal = other;
        }
    }
    let values = ValueLines::of(&proposal, &sources);
    proposal.rewritten_values = values.iter().map(ValueLines::in_words).collect();
    Ok(proposal)
}

/// Lines of a size saved over all regions.
fn saved(proposal: &OrderProposal, line_bytes: u64) -> f64 {
    let rows = proposal.lines.iter().filter(|row| row.line_bytes == line_bytes);
    rows.map(RegionLines::gain).sum()
}

/// True for constraints that say that the declaration was not found or not understood.
fn is_unread(constraint: Constraint) -> bool {
    matches!(constraint, Constraint::UnclearSource | Constraint::OutsideSource | Constraint::StaleDebugInfo)
}

pub(crate) fn describe(one: &OrderProposal) -> Description {
    let kind = if one.parted.is_some() { PART } else { REORDER };
    let minimal = match (&one.further, one.is_proven_minimal) {
        (Some(FurtherMoves { moves, region, lines_per_call }), _) => format!(
            "{moves} more {} would gain another {} lines per call of {region} (--most-moved all).",
            if *moves == 1 { "move" } else { "moves" },
            per_call(*lines_per_call)
        ),
        (None, true) => "No allowed order needs fewer lines for an object.".into(),
        (None, false) => "Found by search: a better order is not excluded.".into(),
    };
    let moved = one.moved.join(", ");
    let summary = match &one.parted {
        None => format!("Moved in {}: {moved} ({} bytes). {minimal}", one.path, one.moved_bytes),
        Some(Parted { because, room_bytes: 0, .. }) => format!("Another order in {}. {because}", one.path),
        Some(Parted { because, room_bytes, .. }) => {
            format!(
                "Room of {room_bytes} bytes in {} keeps them apart wherever an object begins. {because}",
                one.path
            )
        }
    };
    let mut reasons: Vec<String> =
        one.reasons.iter().map(|reason| format!("{}: {}", reason.member, reason.because)).collect();
    reasons.extend(one.sizes.first().and_then(side_effect));
    reasons.extend(one.averaged.clone());
    reasons.extend(one.seen_outside.clone());
    reasons.extend(one.rewritten_values.clone());
    Description {
        reasons,
        lines: one.lines.clone(),
        sizes: one.sizes.clone(),
        obeyed: one.obeyed.clone(),
        check: Some(one.check),
        predicted: one.parted.as_ref().and_then(|parted| parted.predicted),
        is_in_patch: !one.edited.is_empty(),
        ..Description::told(kind, &one.type_name, summary)
    }
}

/// The effect of a type's new size on the data behind its objects.
fn side_effect(size: &SizeChange) -> Option<String> {
    let by = size.after_bytes.abs_diff(size.before_bytes);
    (by > 0).then(|| {
        format!("side effect: what follows an object of it, in arrays and in types that hold it, moves by {by} bytes")
    })
}
