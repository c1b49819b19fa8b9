//! The objects that locks lie in, and the parts of each that the holders of its lock use.

use super::report::LockWithin;
use crate::naming::owner::{OwnerKey, Part};
use crate::threads::access_log::Use;
use crate::threads::process::Process;
use crate::types::catalog::Ty;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Data is a lock's when its holders use it this many times as often as others.
const TIMES_AS_OFTEN: u64 = 4;

/// An object of a named type: its type and its first byte.
type Object = (Ty, u64);

/// Bytes of an object that an instruction used.
struct UsedBytes {
    first: u64,
    end: u64,
    /// The place of their first use in the order of lines.
    rank: usize,
    object: Object,
}

/// Uses of bytes of an object by one instruction.
struct ObjectUse {
    /// Offset and size.
    bytes: (u64, u64),
    /// The lock that was held.
    under: Option<u32>,
    count: u64,
}

/// The used objects of a process, by place and by object: a guest has thousands of locks, and many more uses.
pub(super) struct LockedObjects {
    /// In the order of their first bytes.
    used: Vec<UsedBytes>,
    /// For each of these, the furthest end of it and of those before it.
    furthest: Vec<u64>,
    uses: HashMap<Object, Vec<ObjectUse>>,
}

impl LockedObjects {
    pub(super) fn of(process: &Process, uses: &[Use]) -> Self {
        let used = |tag: u32| -> Option<(Part, Object, Option<u32>)> {
            let used = uses.get(tag as usize)?;
            let part = used.object?;
            let OwnerKey::Object(ty, start) = part.owner else { return None };
            Some((part, (ty, start), used.under))
        };
        let mut seen = HashSet::new();
        let tags = process.touched.values().flat_map(|touched| touched.keys()).map(|(_, _, tag, _)| *tag);
        let bytes = |(rank, tag)| {
            let (part, object, _) = used(tag)?;
            let first = object.1.saturating_add(part.offset);
            Some(UsedBytes { first, end: first.saturating_add(part.size_bytes), rank, object })
        };
        let mut all: Vec<UsedBytes> =
            tags.filter(|tag| seen.insert(*tag)).enumerate().filter_map(bytes).collect();
        all.sort_by_key(|bytes| (bytes.first, bytes.rank));
        let furthest = all.iter().scan(0, |furthest, bytes| {
            *furthest = bytes.end.max(*furthest);
            Some(*furthest)
        });
        let furthest = furthest.collect();
        let mut by_object: HashMap<Object, Vec<ObjectUse>> = HashMap::new();
        for (tag, count) in &process.counts {
            if let Some((part, object, under)) = used(*tag) {
                let bytes = (part.offset, part.size_bytes);
                by_object.entry(object).or_default().push(ObjectUse { bytes, under, count: *count });
            }
        }
        LockedObjects { used: all, furthest, uses: by_object }
    }

    /// The object that a lock lies in, and the part of it that the lock's holders use. Of several, the one that is used
    /// on the first line.
    pub(super) fn within(&self, word: u64, lock: u32) -> Option<LockWithin> {
        let behind = self.used.partition_point(|bytes| bytes.first <= word);
        let before = self.used[..behind].iter().zip(&self.furthest[..behind]).rev();
        let around = before.take_while(|(_, furthest)| **furthest > word).map(|(bytes, _)| bytes);
        let (ty, start) = around.filter(|bytes| word < bytes.end).min_by_key(|bytes| bytes.rank)?.object;
        let mut parts: BTreeMap<(u64, u64), [u64; 2]> = BTreeMap::new();
        for ObjectUse { bytes, under, count } in self.uses.get(&(ty, start)).into_iter().flatten() {
            parts.entry(*bytes).or_default()[usize::from(*under == Some(lock))] += count;
        }
        let is_guarded = |[outside, inside]: &[u64; 2]| *inside > 0 && *inside >= TIMES_AS_OFTEN * outside;
        let guards =
            parts.into_iter().filter(|(_, counts)| is_guarded(counts)).map(|(bytes, _)| bytes).collect();
        Some(LockWithin { ty, offset: word - start, guards })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::access_log::Log;
    use crate::threads::process::process;
    use lineup_coherence::{Access, Kind, Timed};
    use lineup_model::access::{ProcessId, ThreadId};
    use lineup_model::line::LineSize;

    /// A thread that writes each of these parts as often as is said; the parts' numbers are their tags.
    fn used(parts: &[(Part, Option<u32>, u64)]) -> LockedObjects {
        let mut log = Log::default();
        let mut uses = Vec::new();
        for (tag, (part, under, count)) in (0..).zip(parts) {
            let OwnerKey::Object(_, start) = part.owner else { panic!("an object") };
            let size_bytes = part.size_bytes as u32;
            let access =
                Access { thread: 0, address: start + part.offset, size_bytes, kind: Kind::Store, tag };
            log.accesses.extend((0..*count).map(|at| Timed { access, at }));
            let object = Some(*part);
            let own = Use { pc: 0, part: None, object, label: None, under: *under, whom: None, within: None };
            uses.push(own);
        }
        let process = process(ProcessId(0), BTreeMap::from([(ThreadId(0), log)]), LineSize::B64);
        LockedObjects::of(&process, &uses)
    }

    fn part(ty: Ty, start: u64, (offset, size_bytes): (u64, u64)) -> Part {
        Part { owner: OwnerKey::Object(ty, start), offset, size_bytes, is_in_variable: false }
    }

    #[test]
    fn a_lock_lies_in_the_object_around_it_that_is_used_on_the_first_line() {
        let [outer, inner] = [Ty(1), Ty(2)];
        let objects = used(&[
            // An array of 256 bytes, in which the object with the lock lies.
            (part(outer, 0x1000, (0, 256)), None, 1),
            (part(inner, 0x1080, (0, 8)), None, 1),
            (part(inner, 0x2000, (0, 8)), None, 1),
            // Its holders use the first of these far more often than others do, and the second not.
            (part(inner, 0x2000, (8, 8)), Some(7), 8),
            (part(inner, 0x2000, (8, 8)), None, 2),
            (part(inner, 0x2000, (16, 8)), Some(7), 7),
            (part(inner, 0x2000, (16, 8)), None, 2),
            (part(inner, 0x3000, (8, 8)), Some(7), 9),
        ]);
        let found = |ty, offset, guards: &[_]| Some(LockWithin { ty, offset, guards: guards.to_vec() });
        assert_eq!(objects.within(0x2000, 7), found(inner, 0, &[(8, 8)]));
        assert_eq!(objects.within(0x2004, 1), found(inner, 4, &[]));
        assert_eq!(objects.within(0x1084, 7), found(outer, 0x84, &[]));
        assert_eq!(objects.within(0x0fff, 7), None);
        assert_eq!(objects.within(0x2018, 7), None);
    }
}
