//! Members that are reached from another by an index that is written as a number.

use super::Judge;
use super::direct_uses::keep;
use crate::facts::{Member, Origin, Source, Value, Where};
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

    /// True when nothing but members of one record arrives there.
    pub(super) fn are_members_of_one(&self, value: &Value) -> bool {
        let objects = self.points_to.objects(value);
        let is_member = |origin: &Origin| matches!(origin, Origin::MemberOf(..));
        objects.each.iter().all(|(origin, ..)| is_member(origin)) && self.is_of_one_record(value)
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

    /// A text that may fill its member, and is read to its end: it runs on into the members that follow, as far as
    /// these may be filled as well, and one further.
    pub(super) fn read_to_end(&mut self, record: &Name, member: &Name, at: &Where) {
        let facts = self.facts;
        let is_endless = |member: &Name| {
            let text = (record.clone(), member.clone());
            facts.endless_texts.contains(&text) && !facts.ended_texts.contains(&text)
        };
        let Some(found) = self.own(record).filter(|_| is_endless(member)) else { return };
        let following = found.members.iter().skip_while(|known| known.name != *member);
        let filled: Vec<&Member> = following.take_while(|known| is_endless(&known.name)).collect();
        let (Some(first), Some(last)) = (filled.first(), filled.last()) else { return };
        let start = first.offset_bits / 8;
        let bytes = last.offset_bits / 8 + last.size_bytes + 1 - start;
        let reason = format!("the text in {member} may fill it, and is read on into what follows");
        self.find(record, keep(found, start, Some(bytes)), UseKind::Walk, at, reason);
    }
}
