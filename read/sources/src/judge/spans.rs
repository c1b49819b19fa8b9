//! Members that are reached from another by an index that is written as a number.

use super::Judge;
use super::direct_uses::keep;
use crate::facts::{Origin, Source, Value, Where};
use crate::tree::Name;
use crate::uses::UseKind;
use std::collections::BTreeSet;

impl Judge<'_> {
    /// True when all values that arrive there lie in objects of one record.
    fn is_of_one_record(&self, value: &Value) -> bool {
        let objects = self.points_to.objects(value).each;
        let records = objects.iter().filter_map(|(origin, ..)| match origin {
            Origin::Object(record) | Origin::MemberOf(record, _) | Origin::Numbers(record, _) => Some(record),
            _ => None,
        });
        records.collect::<BTreeSet<_>>().len() == 1
    }

    /// `int *p = &x->low; p[2]`: all members in the bytes from the member on stay in place. A use where members of
    /// several records arrive may be meant for others than this one.
    pub(super) fn spanned(
        &mut self,
        (record, member): (&Name, &Name),
        bytes: u64,
        value: &Value,
        is_generic: bool,
        at: &Where,
    ) {
        let is_meant =
            matches!(value.source, Source::Origin(_)) || (!is_generic && self.is_of_one_record(value));
        let Some(found) = self.own(record).filter(|_| is_meant) else { return };
        let Some(known) = found.members.iter().find(|known| known.name == *member) else { return };
        if known.is_open_array || known.size_bytes == 0 || bytes <= known.size_bytes {
            return;
        }
        let reason = format!("an index past the end of {member} reaches what follows it");
        self.find(record, keep(found, known.offset_bits / 8, Some(bytes)), UseKind::Walk, at, reason);
    }
}
