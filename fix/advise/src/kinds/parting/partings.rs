//! Data of different threads on lines of their own, if they contend for one line without need. Locks are moved too, if
//! threads wait less with them elsewhere.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::judge::asserted::Asserted;
use crate::judge::verification::{self, Candidate, Verified};
use crate::kind::{Description, FixKind, KindName, Task};
use crate::kinds::order::member_order::Plan;
use crate::kinds::parting::layout_choice::{self, said};
use crate::kinds::parting::room_layout::{self, Layout, place};
use crate::kinds::parting::room_text::{Room, RoomStyle, write_room};
use crate::kinds::parting::rust_types;
use crate::layout::demand::Model;
use crate::layout::placement::Placed;
use crate::layout::spelling::{Spelling, spelling};
use crate::layout::subject::{Subject, member_name};
use crate::layout::{figures, thread_groups};
use crate::options::Options;
use crate::proposal::{Advice, Check, OrderProposal, PART, Parted, Reason, Refusal, Suggestion};
use crate::text::sources::Sources;
use lineup_model::types::Language;
use lineup_model::usage::FoughtOver;
use std::collections::{BTreeMap, BTreeSet};

/// Members of different threads apart, and objects of different threads.
pub(crate) struct Partings;

impl FixKind for Partings {
    fn name(&self) -> KindName {
        PART
    }

    fn propose(&self, task: &mut Task<'_>, advice: &mut Advice) -> Result<(), AdviseError> {
        let mut done = BTreeSet::new();
        let fought = task.usage.fought_over.iter().map(|one| (one.ty, Some(*one)));
        let locks = task.usage.locks.iter().map(|lock| (lock.ty, None));
        for (ty, fought) in fought.chain(locks).collect::<Vec<_>>() {
            let Some(subject) = Subject::new(task.types, ty, task.usage) else { continue };
            let Some(spelling) = spelling(task.types, subject.id) else { continue };
            if done.insert(spelling.name.clone()) {
                propose_for(task, advice, (&subject, &spelling), fought)?;
            }
        }
        Ok(())
    }

    fn describe(&self, advice: &Advice) -> Vec<Description> {
        advice.suggestions_of(PART)
    }
}

/// Proposes for a type's objects with false sharing or waits for a lock.
fn propose_for(
    task: &mut Task<'_>,
    advice: &mut Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    fought: Option<FoughtOver>,
) -> Result<(), AdviseError> {
    let options = task.options;
    let is_rust = subject.types.get(subject.id).is_some_and(|ty| ty.language == Language::Rust);
    if let Some(fought) = fought.filter(|_| is_rust && !options.allow_growth) {
        let told = format!("{} --allow-growth tries it.", said(subject, &fought, options));
        advice.suggestions.push(Suggestion::new(PART, &spelling.name, told));
        return Ok(());
    }
    if let Some(refusal) = options.refusal_of(&spelling.name) {
        advice.refusals.push(refusal);
        return Ok(());
    }
    if is_rust {
        let Some(fought) = fought else { return Ok(()) };
        let because = said(subject, &fought, options);
        match rust_types::part(task, advice, (subject, spelling), &fought, because.clone())? {
            Ok(proposal) => {
                advice.edited.extend(proposal.edited.clone());
                advice.orders.push(proposal);
            }
            Err(binding) => {
                let told = format!("{because} {}", in_rust(&fought, options));
                advice.suggestions.push(Suggestion::new(PART, &spelling.name, told));
                let (owner, constraints) = (spelling.name.clone(), vec![binding]);
                advice.refusals.push(Refusal { owner, constraints, lines: Vec::new() });
            }
        }
        return Ok(());
    }
    match part(task, advice, subject, spelling, fought)? {
        Ok(Some(PartingOutcome::Proposed(proposal))) => {
            advice.edited.extend(proposal.edited.clone());
            advice.orders.push(*proposal);
        }
        Ok(Some(PartingOutcome::Told(told))) => {
            advice.suggestions.push(Suggestion::new(PART, &spelling.name, told))
        }
        Ok(None) => {}
        // A constraint that keeps it unchanged matters only once it may grow.
        Err(_) if let Some(fought) = fought.filter(|_| !options.allow_growth) => {
            let told = format!("{} --allow-growth tries it.", said(subject, &fought, options));
            advice.suggestions.push(Suggestion::new(PART, &spelling.name, told));
        }
        // A lock that lies well does not concern the user.
        Err(_)
            if fought.is_none()
                && !thread_groups::locks(subject).iter().any(|lock| lock.is_better_elsewhere) => {}
        Err(constraints) => {
            advice.refusals.push(Refusal { owner: spelling.name.clone(), constraints, lines: Vec::new() });
        }
    }
    Ok(())
}

/// The result for a type.
enum PartingOutcome {
    Proposed(Box<OrderProposal>),
    /// It may not grow.
    Told(String),
}

/// The suggested text for Rust, where no edit was made.
fn in_rust(fought_over: &FoughtOver, options: &Options) -> String {
    let bytes = options.primary.bytes();
    match fought_over.is_inside {
        true => format!(
            "No edit was made: give each of them a type with #[repr(align({bytes}))] around it, which parts them whether the struct \
             is repr(C) or not."
        ),
        false => format!(
            "No edit was made: #[repr(align({bytes}))] on the type gives each object lines of its own."
        ),
    }
}

type PartingResult<T> = Result<Result<T, Vec<Binding>>, AdviseError>;

fn part(
    task: &mut Task<'_>,
    advice: &Advice,
    subject: &Subject<'_>,
    spelling: &Spelling,
    fought: Option<FoughtOver>,
) -> PartingResult<Option<PartingOutcome>> {
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
    let choice = match layout_choice::choose(task, subject, &plan, fought.as_ref()) {
        Ok(Some(choice)) => choice,
        Ok(None) => return Ok(Ok(None)),
        Err(binding) => return Ok(Err(vec![binding])),
    };
    if !task.options.allow_growth {
        let predicted = choice.predicted.map_or_else(String::new, |predicted| predicted.in_words());
        return Ok(Ok(Some(PartingOutcome::Told(format!(
            "{} {predicted} --allow-growth tries it.",
            choice.because
        )))));
    }
    let layout = choice.layout;
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
    let verified = verification::confirm(&mut *task.judge, &candidate, subject, &plan.models, predicted)?;
    let Verified { after, check } = match verified {
        Ok(verified) => verified,
        Err(binding) => return Ok(Err(vec![binding])),
    };
    let layouts = (before.as_slice(), after.as_slice());
    let mut proposal = proposal(&plan, subject, spelling, &layout, layouts);
    proposal.reasons = why(subject, &layout, choice.room_because);
    proposal.check = check;
    proposal.seen_outside = task.options.meaning.seen_outside(&spelling.name);
    proposal.parted = Some(Parted {
        line_bytes,
        because: choice.because,
        room_bytes: layout.room_bytes(),
        predicted: choice.predicted,
    });
    (proposal.asserted, proposal.edited) = (vec![asserted], texts);
    Ok(Ok(Some(PartingOutcome::Proposed(Box::new(proposal)))))
}

/// The texts with the order and the room.
fn texts(
    plan: &Plan<'_>,
    sources: &Sources,
    (subject, spelling): (&Subject<'_>, &Spelling),
    layout: &Layout,
) -> Result<BTreeMap<String, String>, Binding> {
    // In the present order values by position and constructors stay unchanged.
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
    let is_counted = |model: &Model| room_layout::may_be_arrays(model, layout);
    // An array is a member more: values by position would go to it.
    let named = plan.naming_values(subject, sources, &layout.order);
    let style = match named.filter(|_| plan.models.models.iter().all(is_counted)) {
        Some(named) => {
            texts.extend(named);
            RoomStyle::Arrays
        }
        None => RoomStyle::BitFields,
    };
    let text = write_room(&sources.with(&texts), subject, spelling, &all, style)?;
    texts.insert(plan.ground.body.found.path.clone(), text);
    Ok(texts)
}

/// The proposal, without the edit and the check.
fn proposal(
    plan: &Plan<'_>,
    subject: &Subject<'_>,
    spelling: &Spelling,
    layout: &Layout,
    (before, after): (&[Placed], &[Placed]),
) -> OrderProposal {
    let moved = plan.moved_members(&layout.order);
    let name = |field: &usize| member_name(subject.aggregate, *field);
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
        further: None,
        is_proven_minimal: false,
        check: Check::Predicted,
        reasons: Vec::new(),
        obeyed: plan.obeyed(),
        averaged: None,
        seen_outside: None,
        rewritten_values: Vec::new(),
        named_values: Vec::new(),
        field_order: layout.fields.clone(),
        parted: None,
        asserted: Vec::new(),
        edited: BTreeMap::new(),
    }
}

fn why(subject: &Subject<'_>, layout: &Layout, because: &str) -> Vec<Reason> {
    let reason = |member: String| Reason { member, because: because.to_owned() };
    layout.room.keys().map(|field| reason(member_name(subject.aggregate, *field))).collect()
}
