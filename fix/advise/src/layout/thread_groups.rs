//! Members by the threads that use them.

use crate::layout::subject::{RecordedOffsets, Subject, members_in};
use lineup_model::access::ThreadId;
use lineup_model::usage::{LockUse, ThreadUse};
use std::collections::BTreeSet;
use std::ops::Range;

/// Members written less often than in one of this number of accesses to the type count as read only: each write makes
/// others wait, and fewer waits are no reason to part members.
const ACCESSES_PER_WRITE: u64 = 1000;
/// Members that are read this many times as often as written count as read only as well.
const READS_PER_WRITE: u64 = 50;

/// The relation that keeps members together.
#[derive(PartialEq, Eq)]
enum Key {
    /// They are a lock and the data that only its holders use.
    Lock(usize),
    /// The same threads write them: none, where they are read only.
    Writers(BTreeSet<ThreadId>),
}

/// The locks that several threads take in objects of the type.
pub(crate) fn locks<'u>(subject: &Subject<'u>) -> Vec<&'u LockUse> {
    let own = |lock: &&LockUse| subject.types.aggregate(lock.ty).map(|(id, _)| id) == Some(subject.id);
    subject.usage.locks.iter().filter(own).collect()
}

/// The members that a lock's word is in, and those that only the lock's holders use.
pub(crate) fn members_of(subject: &Subject<'_>, lock: &LockUse) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let offsets = subject.types.layout_offsets(subject.id).unwrap_or_default();
    let members = |(offset, size): (u64, u64)| {
        let range = offset..offset.saturating_add(size);
        members_in(subject.types, subject.aggregate, &offsets, &range).into_iter().map(|(field, _)| field)
    };
    let own: BTreeSet<usize> = members((lock.offset, 1)).collect();
    let guards = lock.guards.iter().copied().flat_map(members).filter(|field| !own.contains(field)).collect();
    (own, guards)
}

/// The members by lock, then by the threads that write them, and those that are only read; `None` for members that no
/// thread shares.
pub(crate) fn groups(subject: &Subject<'_>) -> Vec<Option<usize>> {
    let mut of_lock = vec![None; subject.aggregate.members.len()];
    let all: Vec<_> = locks(subject).into_iter().map(|lock| members_of(subject, lock)).collect();
    // A lock's word belongs to the lock, even if another lock guards it. Several in one member stay together.
    let words = all.iter().enumerate().map(|(number, (own, _))| (number, own));
    for (number, own) in words.clone() {
        own.iter().for_each(|field| of_lock[*field] = of_lock[*field].or(Some(number)));
    }
    for ((_, own), (_, guards)) in words.zip(&all) {
        let number = own.first().and_then(|field| of_lock[*field]);
        guards.iter().for_each(|field| of_lock[*field] = of_lock[*field].or(number));
    }
    let used = used(subject);
    let accesses: u64 = used.iter().map(|(_, loads, stores)| loads + stores).sum();
    let mut known: Vec<Key> = Vec::new();
    let mut groups = Vec::new();
    for ((writers, loads, stores), lock) in used.into_iter().zip(of_lock) {
        if loads + stores == 0 {
            groups.push(None);
            continue;
        }
        let is_seldom = |times: u64, of: u64| stores.saturating_mul(times) < of;
        let is_read = is_seldom(ACCESSES_PER_WRITE, accesses) || is_seldom(READS_PER_WRITE, loads);
        let key = match lock {
            Some(number) => Key::Lock(number),
            None if is_read => Key::Writers(BTreeSet::new()),
            None => Key::Writers(writers),
        };
        let number = known.iter().position(|one| *one == key).unwrap_or_else(|| {
            known.push(key);
            known.len() - 1
        });
        groups.push(Some(number));
    }
    groups
}

/// The first byte of each member that threads use, and the one behind the last: of a lock's 40 bytes they are some 20.
pub(crate) fn used_bytes(subject: &Subject<'_>) -> Vec<Option<(u64, u64)>> {
    let mut all: Vec<Option<(u64, u64)>> = vec![None; subject.aggregate.members.len()];
    for Use { field, bytes, .. } in uses(subject) {
        let (from, to) = all[field].unwrap_or((bytes.start, bytes.end));
        all[field] = Some((from.min(bytes.start), to.max(bytes.end)));
    }
    all
}

/// The threads' use of a member.
struct Use<'u> {
    of: &'u ThreadUse,
    field: usize,
    /// The member's bytes.
    bytes: Range<u64>,
}

fn uses<'u>(subject: &Subject<'u>) -> Vec<Use<'u>> {
    let offsets = subject.types.layout_offsets(subject.id).unwrap_or_default();
    let own = |used: &&ThreadUse| subject.types.aggregate(used.ty).map(|(id, _)| id) == Some(subject.id);
    let fields = |of: &'u ThreadUse| {
        let range = of.offset..of.offset.saturating_add(of.size_bytes);
        let fields = members_in(subject.types, subject.aggregate, &offsets, &range);
        fields.into_iter().map(move |(field, bytes)| Use { of, field, bytes })
    };
    subject.usage.thread_uses.iter().filter(own).flat_map(fields).collect()
}

/// For each member the threads that write it, and the numbers of its loads and stores in objects that several threads
/// use.
fn used(subject: &Subject<'_>) -> Vec<(BTreeSet<ThreadId>, u64, u64)> {
    let mut all = vec![(BTreeSet::new(), 0_u64, 0_u64); subject.aggregate.members.len()];
    for Use { of, field, .. } in uses(subject) {
        let (writers, loads, stores) = &mut all[field];
        writers.extend(&of.writers);
        *loads += of.loads;
        *stores += of.stores;
    }
    all
}
