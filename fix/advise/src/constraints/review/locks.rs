//! Locks, and the members that they protect.

use super::declared_types::is_named_after;
use crate::constraints::paragraphs::{paragraphs, usual_prefix};
use crate::layout::subject::Subject;
use crate::text::body::Body;
use lineup_model::types::{AggregateKind, TypeId, Types};
use std::ops::Range;

/// A lock of a type, by its unit, and the units that it protects as far as the text shows them nearby.
pub(super) struct HeldLock {
    pub(super) unit: usize,
    pub(super) data: Vec<usize>,
}

/// Last words of the names of locks' types.
pub(super) const LOCKS: [&str; 13] = [
    "spinlock",
    "rwlock",
    "mutex",
    "semaphore",
    "rwsem",
    "seqlock",
    "seqcount",
    "lockref",
    "local_lock",
    "mutex_base",
    "socket_lock",
    "bh_lock",
    "sem",
];

/// Data further away than this from its lock has left it already.
const NEAR_UNITS: usize = 8;

/// Words of a comment that make a lock's name in it a lock.
const PROTECTS: [&str; 12] = [
    "protect",
    "protects",
    "protected",
    "protecting",
    "protection",
    "guard",
    "guards",
    "guarded",
    "under",
    "serialized",
    "serialised",
    "holding",
];

/// Endings of locks' names.
const ENDINGS: [&str; 7] = ["_spinlock", "_lock", "_mutex", "_rwsem", "_sem", "_seqcount", "_seq"];

/// The locks of a type, each with its data.
pub(super) fn locks(subject: &Subject<'_>, body: &Body<'_>, ranges: &[Range<usize>]) -> Vec<HeldLock> {
    let is_lock = |unit: usize| {
        let fields = ranges[unit].clone();
        fields.into_iter().any(|field| holds_lock(subject.types, subject.aggregate.members[field].ty))
    };
    let all: Vec<bool> = (0..body.units.len()).map(is_lock).collect();
    let locks = (0..body.units.len()).filter(|&unit| all[unit] && ranges[unit].len() == 1);
    locks.map(|unit| HeldLock { unit, data: data(subject, body, ranges, (unit, &all)) }).collect()
}

/// A lock, or an anonymous struct or union with one in it.
fn holds_lock(types: &Types, id: TypeId) -> bool {
    let inner = || types.aggregate(id).filter(|(id, _)| types.get(*id).is_some_and(|ty| ty.name.is_none()));
    let has = |kind: AggregateKind| matches!(kind, AggregateKind::Struct | AggregateKind::Union);
    is_named_after(types, id, &LOCKS)
        || inner().is_some_and(|(_, inner)| {
            has(inner.kind) && inner.members.iter().any(|member| is_named_after(types, member.ty, &LOCKS))
        })
}

/// The units that comments or names give to a lock; without such, those behind it up to a blank line.
fn data(
    subject: &Subject<'_>,
    body: &Body<'_>,
    ranges: &[Range<usize>],
    (lock, locks): (usize, &[bool]),
) -> Vec<usize> {
    let Some(name) = body.units[lock].names.first() else { return Vec::new() };
    let prefix = usual_prefix(subject.aggregate);
    let bare = name.strip_prefix(prefix).unwrap_or(name);
    let stem = ENDINGS.iter().find_map(|ending| bare.strip_suffix(ending)).filter(|stem| stem.len() > 1);
    let own = words_of_comments(body, lock);
    let is_named = |unit: usize| {
        body.units[unit].names.iter().any(|other| {
            let other_bare = other.strip_prefix(prefix).unwrap_or(other);
            let begins = |stem: &str| {
                other_bare.strip_prefix(stem).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
            };
            stem.is_some_and(begins) || (other.len() > 1 && own.contains(other))
        })
    };
    let is_said = |unit: usize| {
        let words = words_of_comments(body, unit);
        words.contains(name) && words.iter().any(|word| PROTECTS.contains(&word.to_lowercase().as_str()))
    };
    let near = lock.saturating_sub(NEAR_UNITS)..(lock + NEAR_UNITS + 1).min(body.units.len());
    let is_data = |unit: &usize| !locks[*unit] && (is_named(*unit) || is_said(*unit));
    let found: Vec<usize> = near.filter(is_data).collect();
    if !found.is_empty() {
        return found;
    }
    let paragraphs = paragraphs(body, ranges);
    let own = paragraphs.iter().find(|paragraph| paragraph.contains(&lock)).filter(|_| paragraphs.len() > 1);
    let behind = own.map_or(0..0, |own| lock + 1..own.end.min(lock + 1 + NEAR_UNITS));
    let is_next = |unit: &usize| !locks[*unit] && body.leading_comments(&body.units[*unit]).is_empty();
    behind.take_while(is_next).collect()
}

fn words_of_comments(body: &Body<'_>, unit: usize) -> Vec<String> {
    let comments = body.comments_of(&body.units[unit]);
    let words = comments.flat_map(|comment| comment.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}
