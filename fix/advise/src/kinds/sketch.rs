//! Sketches of edits that no kind of fix makes: a person's options for a type that the patch does not change.

use crate::constraints::constraint::Constraint;
use crate::kind::Task;
use crate::kinds::saving_share;
use crate::layout::current_demand;
use crate::layout::granules::Span;
use crate::layout::spelling::spelling;
use crate::layout::subject::{RecordedOffsets, Subject, member_name, members_in, merge_spans};
use crate::proposal::{Advice, RegionLines, SPLIT, Suggestion};
use lineup_model::first_names;
use lineup_model::region::{Region, RegionId};
use lineup_model::types::{Language, TypeId};
use std::collections::BTreeSet;
use std::fmt::Display;

/// Members named in a sketch.
const MEMBERS: usize = 8;

/// The sketch of a split, where calls use at most half of an object and the split would save enough lines. `None` of
/// types that the patch changes, and of those outside the sources. The caller leaves out those of libraries.
pub(crate) fn of_type(task: &Task<'_>, advice: &Advice, id: TypeId) -> Option<Suggestion> {
    let (usage, types) = (task.usage, task.types);
    let subject = Subject::new(types, id, usage)?;
    let name = spelling(types, subject.id)?.name;
    let is_changed = advice.is_split(&name)
        || advice.orders.iter().any(|order| order.type_name == name)
        || advice.gathers.iter().any(|gather| gather.reordered_types.contains(&name));
    let is_outside = advice.refusals.iter().any(|refusal| {
        let is_outside = |one: &Constraint| *one == Constraint::OutsideSource;
        refusal.owner == name && refusal.constraints.iter().any(|one| is_outside(&one.constraint))
    });
    if is_changed || is_outside {
        return None;
    }
    let size_bytes = types.size_bytes(subject.id)?;
    let used = used(&subject)?;
    let used_bytes = used.iter().fold(0u64, |sum, (_, _, size)| sum.saturating_add(*size));
    if used_bytes == 0 || used_bytes.saturating_mul(2) > size_bytes {
        return None;
    }
    let lines = lines(task, &subject, used_bytes);
    let saves = saving_share::of_lines(usage, &lines, task.options.primary.bytes());
    let share = saves.iter().filter_map(|worth| worth.share).max_by(f64::total_cmp)?;
    if share < task.options.least_share.max(LEAST_SHARE) {
        return None;
    }
    let fields: BTreeSet<usize> = used.iter().map(|(field, ..)| *field).collect();
    let hot: Vec<String> = fields.iter().map(|&field| member_name(subject.aggregate, field)).collect();
    let others = match subject.aggregate.members.len().saturating_sub(hot.len()) {
        1 => "the other member".to_owned(),
        others => format!("the other {others} members"),
    };
    let hot = first_names(&hot, MEMBERS);
    let is_rust = types.get(subject.id).is_some_and(|ty| ty.language == Language::Rust);
    let link = if is_rust { "a Box of" } else { "a pointer to" };
    let why = why_by_hand(advice.not_split.get(&name));
    let summary = format!(
        "By hand, since {why}: {name} keeps {hot} ({used_bytes} of its {size_bytes} bytes) and {link} a second \
         struct with {others}. Where objects lie in an array, an array for each of {hot} needs no pointer."
    );
    Some(Suggestion { lines, ..Suggestion::new(SPLIT, name, summary) })
}

/// The reason why a split is an edit by hand.
pub(crate) fn why_by_hand(refusal: Option<impl Display>) -> String {
    match refusal {
        Some(because) => format!("a patch for a split was refused ({because})"),
        None => "no patch is made for a split".to_owned(),
    }
}

/// A split that saves a smaller share of a region's lines is not worth a person's time.
const LEAST_SHARE: f64 = 0.05;

/// The parts of members that calls use.
pub(crate) fn used(subject: &Subject<'_>) -> Option<Vec<Span>> {
    used_within(subject, &[(subject, 0)])
}

/// The same, of objects that lie at these bytes of others.
pub(crate) fn used_within(subject: &Subject<'_>, holders: &[(&Subject<'_>, u64)]) -> Option<Vec<Span>> {
    let offsets = subject.types.layout_offsets(subject.id)?;
    let ranges = holders.iter().flat_map(|(holder, at)| {
        let patterns = holder.uses.iter().flat_map(|used| &used.patterns);
        patterns.flat_map(|pattern| &pattern.bytes).map(|bytes| {
            let end = bytes.offset.saturating_add(bytes.size_bytes);
            bytes.offset.saturating_sub(*at)..end.saturating_sub(*at)
        })
    });
    let parts = ranges.flat_map(|range| members_in(subject.types, subject.aggregate, &offsets, &range));
    Some(merge_spans(parts.map(|(field, part)| (field, part.start, part.end - part.start)).collect()))
}

/// Lines per call now, and with parts of `part_bytes` of the used objects packed together: a lower bound. A line that
/// neighbours share counts once, where the type's layout follows from its members.
pub(crate) fn lines(task: &Task<'_>, subject: &Subject<'_>, part_bytes: u64) -> Vec<RegionLines> {
    let line = task.options.primary;
    let recorded = task.usage.abi.data_model();
    let mut shared = current_demand::of_type(task.usage, task.types, subject.id).unwrap_or_default();
    shared.retain(|row| row.data_model == recorded && row.line_bytes == line.bytes());
    let of_region = |(id, region): (RegionId, &Region)| {
        let (mut before, mut objects) = (0.0, 0.0);
        for used in subject.uses.iter().filter(|used| used.region == id) {
            for pattern in &used.patterns {
                let base = u64::from(pattern.base_in_line);
                let bytes = pattern.bytes.iter().filter(|bytes| bytes.size_bytes > 0);
                let spans = bytes.map(|bytes| (base.saturating_add(bytes.offset), bytes.size_bytes));
                let per_call = pattern.occurrences as f64 / used.calls.max(1) as f64;
                before += per_call * line.count_distinct(spans) as f64;
                objects += per_call;
            }
        }
        let with_neighbours = shared.iter().find(|row| row.id == id).and_then(|row| row.before);
        (objects > 0.0).then(|| RegionLines {
            id,
            region: region.name.clone(),
            data_model: recorded,
            line_bytes: line.bytes(),
            before: Some(with_neighbours.unwrap_or(before)),
            after: objects * part_bytes as f64 / line.bytes() as f64,
        })
    };
    task.usage.regions.iter().filter_map(of_region).collect()
}
