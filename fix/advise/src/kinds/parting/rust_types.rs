//! Types of Rust, of which different threads use objects or fields: an edit that the compiler confirms.

use crate::constraints::constraint::{Binding, Constraint};
use crate::error::AdviseError;
use crate::judge::compiler::Compiled;
use crate::kind::Task;
use crate::kinds::parting::layout_choice::by_prediction;
use crate::kinds::parting::rust_text::{self, Edit, Edited};
use crate::layout::placement::Placed;
use crate::layout::spelling::{Spelling, bare};
use crate::layout::subject::{Models, RecordedOffsets, Subject, member_name};
use crate::layout::{figures, thread_groups};
use crate::proposal::{Advice, Check, OrderProposal, Parted, Reason};
use lineup_explain::threads::ObjectsElsewhere;
use lineup_model::usage::FoughtOver;

/// Bytes of a word of room.
const WORD_BYTES: u64 = 8;

/// The wanted edit and layout.
struct PartingEdit {
    edit: Edit,
    /// Fields with room before them.
    apart: Vec<usize>,
    /// The objects as they would be, as far as can be foreseen: each field keeps its alignment.
    objects: ObjectsElsewhere,
}

/// The edit that parts a type's objects, or its fields by the threads that write them; or the reason why there is none.
pub(crate) fn part(
    task: &mut Task<'_>,
    advice: &Advice,
    (subject, spelling): (&Subject<'_>, &Spelling),
    fought: &FoughtOver,
    because: String,
) -> Result<Result<OrderProposal, Binding>, AdviseError> {
    let line_bytes = task.options.primary.bytes();
    let wanted = match wanted(subject, fought.is_inside, line_bytes) {
        Ok(wanted) => wanted,
        Err(binding) => return Ok(Err(binding)),
    };
    let predicted = match by_prediction(subject, &wanted.objects) {
        Ok(predicted) => predicted,
        Err(binding) => return Ok(Err(binding)),
    };
    let sources = task.sources.with(&advice.edited);
    let (path, texts) = match rust_text::edit(&sources, bare(&spelling.name), &wanted.edit) {
        Ok(edited) => edited,
        Err(binding) => return Ok(Err(binding)),
    };
    let mut all = advice.edited.clone();
    all.extend(texts.clone());
    let check = match task.judge.compile(&all) {
        Ok(compiled) => compiled
            .first()
            .map_or(Ok(Check::Predicted), |build| confirm(build, spelling, &wanted, line_bytes)),
        Err(error) => Err(disagrees(error.into_first_words()?)),
    };
    Ok(check.map(|check| {
        let mut proposal = proposal(subject, spelling, &wanted, (path, texts));
        proposal.parted = Some(Parted {
            line_bytes,
            because,
            room_bytes: wanted.objects.new_size_bytes - wanted.objects.size_bytes,
            predicted,
        });
        OrderProposal { check, ..proposal }
    }))
}

fn disagrees(why: String) -> Binding {
    Binding::new(Constraint::CompilerDisagrees).because(why)
}

fn unknown(why: &str) -> Binding {
    Binding::new(Constraint::LayoutNotReproduced).because(why.to_owned())
}

fn wanted(subject: &Subject<'_>, is_inside: bool, line_bytes: u64) -> Result<PartingEdit, Binding> {
    let size_bytes = subject.types.size_bytes(subject.id).ok_or_else(|| unknown("its size is not known"))?;
    let offsets =
        subject.types.layout_offsets(subject.id).ok_or_else(|| unknown("a field's place is not known"))?;
    let size = |field: usize| subject.types.size_bytes(subject.aggregate.members[field].ty).unwrap_or(0);
    if !is_inside {
        let members =
            (0..offsets.len()).map(|field| (offsets[field] / 8, size(field), offsets[field] / 8)).collect();
        let new_size_bytes = size_bytes.next_multiple_of(line_bytes);
        if new_size_bytes == size_bytes {
            return Err(unknown("each object fills its lines already"));
        }
        let objects = ObjectsElsewhere { size_bytes, new_size_bytes, members };
        return Ok(PartingEdit { edit: Edit::Align { bytes: line_bytes }, apart: Vec::new(), objects });
    }
    let groups = thread_groups::groups(subject);
    // This much room keeps the fields before and behind apart, since words begin at multiples of their size.
    let room_bytes = line_bytes - WORD_BYTES;
    let mut fields: Vec<usize> = (0..offsets.len()).collect();
    fields.sort_by_key(|field| offsets[*field]);
    let (mut shift, mut last, mut end) = (0, None, 0);
    let (mut apart, mut members) = (Vec::new(), vec![(0, 0, 0); offsets.len()]);
    for field in fields {
        let start = offsets[field] / 8;
        if let Some(group) = groups[field] {
            if last.is_some_and(|last| last != group) {
                apart.push(field);
                let least: u64 = u64::next_multiple_of(end, WORD_BYTES) + room_bytes;
                shift = u64::max(shift, least.saturating_sub(start).next_multiple_of(WORD_BYTES));
            }
            last = Some(group);
        }
        members[field] = (start, size(field), start + shift);
        end = start + shift + size(field);
    }
    if apart.is_empty() {
        return Err(Binding::new(Constraint::KeptApart)
            .because("no room inside the type puts what threads wait for further apart"));
    }
    let name = |field: &usize| member_name(subject.aggregate, *field);
    let edit = Edit::Room { before: apart.iter().map(name).collect(), words: room_bytes / WORD_BYTES };
    Ok(PartingEdit {
        edit,
        apart,
        objects: ObjectsElsewhere { size_bytes, new_size_bytes: size_bytes + shift, members },
    })
}

/// Whether the build has the wanted layout.
fn confirm(
    build: &Compiled,
    spelling: &Spelling,
    wanted: &PartingEdit,
    line_bytes: u64,
) -> Result<Check, Binding> {
    let ids = build.types.by_name();
    let found = ids.get(spelling.name.as_str()).and_then(|ids| ids.first()).copied();
    let found = found.and_then(|id| Some((build.types.size_bytes(id)?, build.types.aggregate(id)?.1)));
    let (size_bytes, aggregate) =
        found.ok_or_else(|| disagrees(format!("{} is not in the build", spelling.name)))?;
    let place = |name: &str| {
        let member = aggregate.members.iter().find(|member| member.name.as_deref() == Some(name))?;
        member.offset_bytes()
    };
    match &wanted.edit {
        Edit::Align { .. } if size_bytes.is_multiple_of(line_bytes) => Ok(Check::CompiledRecordedOnly),
        Edit::Align { .. } => Err(disagrees(format!("an object has {size_bytes} bytes"))),
        Edit::Room { before, .. } => {
            let is_foreseen = |(name, field): (&String, &usize)| {
                let then = wanted.objects.members.get(*field).map(|(_, _, then)| *then);
                then.is_some() && place(name) == then
            };
            match before.iter().zip(&wanted.apart).all(is_foreseen) {
                true => Ok(Check::CompiledRecordedOnly),
                false => Err(disagrees("a field is not where it was foreseen".to_owned())),
            }
        }
    }
}

fn proposal(
    subject: &Subject<'_>,
    spelling: &Spelling,
    wanted: &PartingEdit,
    (path, texts): Edited,
) -> OrderProposal {
    let names: Vec<String> =
        (0..subject.aggregate.members.len()).map(|field| member_name(subject.aggregate, field)).collect();
    let ObjectsElsewhere { size_bytes, new_size_bytes, members } = &wanted.objects;
    let bits = |place: fn(&(u64, u64, u64)) -> u64| {
        members.iter().map(|member| 8 * place(member)).collect::<Vec<u64>>()
    };
    let before = Placed { offsets_bits: bits(|member| member.0), size_bytes: *size_bytes };
    let after = Placed { offsets_bits: bits(|member| member.2), size_bytes: *new_size_bytes };
    let (mut lines, mut sizes) = (Vec::new(), Vec::new());
    if let Ok(Models { mut models, mut names }) = subject.models() {
        models.truncate(1);
        names.truncate(1);
        let models = Models { models, names };
        let layouts = ([before], [after.clone()]);
        lines = figures::compare(subject.usage, &models, &layouts.0, &layouts.1);
        sizes = figures::sizes(&models, &layouts.0, &layouts.1);
    }
    let reason = |field: &usize| Reason {
        member: names[*field].clone(),
        because: "has room before it, since other threads use the bytes there".to_owned(),
    };
    OrderProposal {
        type_name: spelling.name.clone(),
        path,
        new_order: names.clone(),
        new_offsets_bits: after.offsets_bits,
        field_order: (0..names.len()).collect(),
        reasons: wanted.apart.iter().map(reason).collect(),
        old_order: names,
        moved: Vec::new(),
        moved_bytes: 0,
        lines,
        sizes,
        further: None,
        is_proven_minimal: false,
        check: Check::Predicted,
        obeyed: Vec::new(),
        averaged: None,
        seen_outside: None,
        rewritten_values: Vec::new(),
        named_values: Vec::new(),
        parted: None,
        asserted: Vec::new(),
        edited: texts,
    }
}
