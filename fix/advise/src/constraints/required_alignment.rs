//! Members used by recorded instructions that fault if the member does not lie at a multiple of a number of bytes.

use crate::constraints::constraint::{Binding, Constraint};
use crate::layout::subject::{RecordedOffsets, Subject, member_name, members_in};
use lineup_model::usage::AlignedUse;
use std::collections::BTreeSet;

/// Members that keep their offsets, and the last member, which keeps the size, so that they lie right in each element
/// of an array.
pub(crate) fn asked(subject: &Subject<'_>) -> Vec<Binding> {
    let offsets = subject.types.layout_offsets(subject.id).unwrap_or_default();
    let is_of_type =
        |used: &&AlignedUse| subject.types.aggregate(used.ty).map(|(id, _)| id) == Some(subject.id);
    let mut held: BTreeSet<(usize, u64)> = BTreeSet::new();
    for used in subject.usage.aligned_uses.iter().filter(is_of_type) {
        let range = used.offset..used.offset.saturating_add(used.size_bytes);
        let members = members_in(subject.types, subject.aggregate, &offsets, &range);
        // A compiler joins stores to neighbours where it knows the object's place, as after `malloc`.
        if used.is_atomic || members.len() == 1 {
            held.extend(members.into_iter().map(|(index, _)| (index, used.asked_bytes)));
        }
    }
    let last = subject.aggregate.members.len().saturating_sub(1);
    let binding = |(index, bytes): (usize, u64)| {
        let names = BTreeSet::from([index, last]);
        let names = names.into_iter().map(|index| member_name(subject.aggregate, index));
        let member = member_name(subject.aggregate, index);
        let because =
            format!("a recorded instruction faults where {member} is not at a multiple of {bytes} bytes");
        Binding::new(Constraint::AskedAlignment).on(names).because(because)
    };
    held.into_iter().map(binding).collect()
}
