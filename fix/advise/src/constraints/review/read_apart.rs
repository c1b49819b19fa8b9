//! Members that calls only read, apart from those that change as objects live: a line of both is fetched anew after
//! each change on another CPU. Fork, exit and wake-up change counts, locks and lists, whether they were recorded or
//! not.

use super::declared_types::is_named_after;
use crate::constraints::constraint::{Binding, Constraint};
use crate::constraints::review::locks::LOCKS;
use crate::layout::subject::{RecordedOffsets, Subject, member_name, members_in};
use crate::search::score::Problem;
use lineup_model::region::RegionId;
use lineup_model::types::Member;
use std::collections::BTreeSet;

/// Last words of the names of types that change as objects come and go.
const LIVELY: [&str; 19] = [
    "atomic",
    "atomic64",
    "atomic_long",
    "refcount",
    "refcount_struct",
    "kref",
    "list_head",
    "hlist_head",
    "hlist_node",
    "hlist_nulls_node",
    "hlist_bl_node",
    "rb_node",
    "rb_root",
    "rb_root_cached",
    "llist_head",
    "llist_node",
    "wait_queue_head",
    "swait_queue_head",
    "plist_node",
];

/// Last words of the names of members that count.
const COUNTS: [&str; 5] = ["count", "refcnt", "refs", "users", "usage"];

/// The members of a type by their changes.
#[derive(Clone, Default, Debug)]
pub(super) struct ReadApart {
    fields: Vec<FieldChanges>,
    /// Members that calls only read, each with one that changes meanwhile.
    pairs: Vec<(usize, usize)>,
}

#[derive(Clone, Default, Debug)]
struct FieldChanges {
    /// The regions whose calls read it.
    readers: BTreeSet<RegionId>,
    /// Those whose calls write it.
    writers: BTreeSet<RegionId>,
    /// By its type, it changes as objects come and go.
    is_lively: bool,
    /// So it does by its name, unless calls only read it.
    is_count: bool,
}

impl ReadApart {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let is_count = |member: &Member| {
            let name = member.name.as_deref().unwrap_or_default();
            COUNTS.iter().any(|word| name.rsplit('_').next() == Some(word)) || name.starts_with("nr_")
        };
        let is_lively = |member: &Member| {
            is_named_after(subject.types, member.ty, &LIVELY)
                || is_named_after(subject.types, member.ty, &LOCKS)
        };
        let changes = |member: &Member| FieldChanges {
            is_lively: is_lively(member),
            is_count: is_count(member),
            ..FieldChanges::default()
        };
        let mut fields: Vec<FieldChanges> = subject.aggregate.members.iter().map(changes).collect();
        let offsets = subject.types.layout_offsets(subject.id).unwrap_or_default();
        for used in &subject.uses {
            for bytes in used.patterns.iter().flat_map(|pattern| &pattern.bytes) {
                let range = bytes.offset..bytes.offset.saturating_add(bytes.size_bytes);
                for (field, _) in members_in(subject.types, subject.aggregate, &offsets, &range) {
                    if bytes.loads > 0 {
                        fields[field].readers.insert(used.region);
                    }
                    if bytes.stores > 0 {
                        fields[field].writers.insert(used.region);
                    }
                }
            }
        }
        let mut apart = ReadApart { fields, pairs: Vec::new() };
        let all = 0..apart.fields.len();
        let read = all.clone().filter(|&field| apart.is_read_mostly(field));
        let pairs = read.flat_map(|read| all.clone().map(move |written| (read, written)));
        apart.pairs = pairs.filter(|&(read, written)| apart.disturbs(written, read)).collect();
        apart
    }

    /// Whether calls read a member and never write it.
    pub(super) fn is_only_read(&self, field: usize) -> bool {
        self.fields.get(field).is_some_and(|field| !field.readers.is_empty() && field.writers.is_empty())
    }

    fn is_read_mostly(&self, field: usize) -> bool {
        self.is_only_read(field) && !self.fields[field].is_lively
    }

    /// Whether a member changes while calls read another without changing this one.
    fn disturbs(&self, written: usize, read: usize) -> bool {
        let FieldChanges { writers, is_lively, is_count, .. } = &self.fields[written];
        let changes = *is_lively || (*is_count && !self.is_only_read(written));
        changes || writers.difference(&self.fields[read].readers).next().is_some()
    }

    /// The rule, for a type with members of both kinds.
    pub(super) fn binding(&self, subject: &Subject<'_>) -> Option<Binding> {
        let name = |field: usize| member_name(subject.aggregate, field);
        let read = (0..self.fields.len()).filter(|&field| self.is_read_mostly(field));
        let written: BTreeSet<usize> = self.pairs.iter().map(|&(_, written)| written).collect();
        let binding = Binding::new(Constraint::ReadApart).on(read.map(name));
        let others: Vec<String> = written.into_iter().map(name).collect();
        (!others.is_empty()).then(|| binding.because(format!("apart from {}", others.join(", "))))
    }

    /// The members that calls only read and that share a line with one that changes, at any place where objects begin.
    pub(super) fn beside_written(&self, problem: &Problem, order: &[usize]) -> BTreeSet<usize> {
        let Some(model) = problem.models.first() else { return BTreeSet::new() };
        let Some(placed) = problem.place(model, order) else { return BTreeSet::new() };
        let line = problem.primary.bytes();
        let bases: BTreeSet<u64> = model.demands.iter().map(|demand| demand.base % line).collect();
        let lines = |field: usize, base: u64| {
            let start = base + placed.offsets_bits.get(field).map_or(0, |bits| bits / 8);
            let size = model.fields.get(field).map_or(1, |field| field.size_bytes.max(1));
            (start / line, (start + size - 1) / line)
        };
        let meet = |(read, written): (usize, usize)| {
            bases.iter().any(|&base| {
                let ((first, last), (from, to)) = (lines(read, base), lines(written, base));
                from <= last && first <= to
            })
        };
        self.pairs.iter().filter(|&&pair| meet(pair)).map(|&(read, _)| read).collect()
    }
}
