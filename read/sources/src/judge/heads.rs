//! Objects of which code uses the first bytes alone: other things follow in their memory.

use super::Judge;
use super::direct_uses::keep;
use crate::facts::{Act, PointerPlace, Reach, Shape, Source, Where};
use crate::tree::Name;
use crate::uses::UseKind;
use std::collections::{BTreeMap, BTreeSet};

/// The uses of a pointer to bytes.
#[derive(Default)]
struct Uses<'f> {
    /// The records that it is cast to.
    records: BTreeSet<&'f Name>,
    /// Sizes of types that it is moved on by.
    steps: BTreeMap<u64, &'f Where>,
}

impl<'f> Judge<'f> {
    /// `block = (struct pool *)m; m += sizeof(struct head);`, where the head is the beginning of a pool: the variable
    /// leads to objects and to bytes behind a part of them.
    pub(super) fn passed_as_bytes(&mut self) {
        let mut places: BTreeMap<&'f PointerPlace, Uses<'f>> = BTreeMap::new();
        for (value, act, at) in &self.facts.acts {
            let (Source::Place(place), Reach::Start, 0) = (&value.source, value.reach, value.level) else {
                continue;
            };
            if !matches!(place, PointerPlace::Variable(_) | PointerPlace::Parameter(..)) {
                continue;
            }
            match act {
                Act::As(Shape::Record(record), _) => {
                    _ = places.entry(place).or_default().records.insert(record)
                }
                Act::Past(bytes) => _ = places.entry(place).or_default().steps.entry(*bytes).or_insert(at),
                _ => {}
            }
        }
        for uses in places.values() {
            for record in &uses.records {
                for (bytes, at) in &uses.steps {
                    self.passed(record, *bytes, at);
                }
            }
        }
    }

    /// An object that is moved past by fewer bytes than it has: these keep their members.
    pub(super) fn passed(&mut self, record: &Name, bytes: u64, at: &Where) {
        let Some(found) = self.own(record).filter(|found| bytes > 0 && bytes < found.size_bytes) else {
            return;
        };
        let reason = format!("other things are put behind its first {bytes} bytes");
        self.find(record, self.keep_first(found, bytes), UseKind::PartialMemory, at, reason);
    }

    /// `(int *)(&x->head + 1)`: the member after the head stays behind it.
    pub(super) fn member_passed(&mut self, (record, member): (&Name, &Name), bytes: u64, at: &Where) {
        let Some(found) = self.own(record) else { return };
        let Some(known) = found.members.iter().find(|known| known.name == *member) else { return };
        let end = known.offset_bits / 8 + known.size_bytes;
        let is_last = end >= found.size_bytes;
        if known.record.is_none() || known.is_array || bytes != known.size_bytes || is_last {
            return;
        }
        let reason = format!("code finds what lies behind {member}");
        let verdict = keep(found, known.offset_bits / 8, Some(bytes.saturating_add(1)));
        self.find(record, verdict, UseKind::PartialMemory, at, reason);
    }
}
