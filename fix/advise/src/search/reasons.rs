//! The reasons for the places of members.

use crate::layout::granules::ONE;
use crate::layout::placement::Placed;
use crate::layout::subject::{Models, Subject, member_name};
use crate::proposal::Reason;
use crate::search::score::Problem;

/// A reason for every member that a region touches, that moves, or that is under contention.
pub(crate) fn explain(
    subject: &Subject<'_>,
    problem: &Problem,
    models: &Models,
    (before, after): (&Placed, &Placed),
    moved: &[usize],
) -> Vec<Reason> {
    let line = problem.primary.bytes();
    let line_of =
        |layout: &Placed, field: usize| layout.offsets_bits.get(field).map_or(0, |bits| bits / 8 / line);
    let mut reasons = Vec::new();
    let mut fields: Vec<usize> = (0..subject.aggregate.members.len()).collect();
    fields.sort_by_key(|&field| after.offsets_bits.get(field));
    for field in fields {
        let uses = uses_of(subject, models, field);
        let traffic = problem.traffic.get(field).copied().unwrap_or_default();
        let (from, to) = (line_of(before, field), line_of(after, field));
        let place = match (from == to, moved.contains(&field)) {
            (true, true) => format!("moves within line {to}"),
            (true, false) => format!("stays on line {to}"),
            (false, _) => format!("from line {from} to line {to}"),
        };
        let because = if traffic.is_write_shared {
            format!(
                "{place}: written by one thread and touched by another, kept from members that threads only read"
            )
        } else if !uses.is_empty() {
            format!("{place}: {}", uses.join(", "))
        } else if moved.contains(&field) {
            format!("{place}: no recorded region touches it; it makes room")
        } else {
            continue;
        };
        reasons.push(Reason { member: member_name(subject.aggregate, field), because });
    }
    reasons
}

/// `region touches it 1.00 times per call`, one per region.
fn uses_of(subject: &Subject<'_>, models: &Models, field: usize) -> Vec<String> {
    let Some(model) = models.models.first() else { return Vec::new() };
    let mut sentences = Vec::new();
    for (id, region) in subject.usage.regions.iter() {
        let touching = model
            .demands
            .iter()
            .filter(|demand| demand.region == id && demand.spans.iter().any(|span| span.0 == field));
        let objects: f64 = touching.map(|demand| demand.per_call as f64 / ONE as f64).sum();
        if objects > 0.0 {
            sentences.push(format!("{} touches it in {objects:.2} objects per call", region.name));
        }
    }
    sentences
}
