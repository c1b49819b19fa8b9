//! Bytes before an object or a member that code reaches from it.

use super::Judge;
use crate::facts::{Act, Member, Origin, RecordFact, Shape, Where, behind};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};

impl Judge<'_> {
    /// `(char *)x - 8`: the members before the object in its enclosing record stay in place, and so does the object.
    pub(super) fn before(&mut self, origin: &Origin, act: &Act, at: &Where) {
        let facts = self.facts;
        let keep_up_to = |found: &RecordFact, last: usize| {
            let names: Vec<String> =
                found.members[..=last].iter().map(|member| member.name.to_string()).collect();
            if names.iter().any(String::is_empty) { Verdict::Refuse } else { Verdict::Keep(names) }
        };
        let mut held: Vec<(&Name, Verdict)> = Vec::new();
        match origin {
            Origin::Object(record) => {
                for (outer, found) in &facts.records {
                    let at = found.members.iter().rposition(|member| member.record.as_ref() == Some(record));
                    held.extend(at.filter(|&at| at > 0).map(|at| (outer, keep_up_to(found, at))));
                }
            }
            Origin::MemberOf(record, member) => {
                let Some(found) = self.own(record) else { return };
                // Bytes are read before the target of a pointer, not before the pointer.
                let is_pointer = |known: &Member| *act == Act::Bytes && known.shape == Shape::Pointer;
                let at = found.members.iter().position(|known| known.name == *member);
                let at = at.filter(|&at| !is_pointer(&found.members[at]));
                held.extend(at.filter(|&at| at > 0).map(|at| (record, keep_up_to(found, at))));
            }
            // `object->text[-1]`, of an array that memory is allocated behind.
            Origin::Bytes(array) => {
                for (record, found) in &facts.records {
                    let at = found.members.len().saturating_sub(1);
                    let last = found.members.last().filter(|last| last.is_open_array && last.name == *array);
                    held.extend(last.map(|_| (record, keep_up_to(found, at))));
                }
            }
            Origin::Memory(block, 0) => {
                for (record, found) in &facts.records {
                    let at = found.members.len().saturating_sub(1);
                    let last = found.members.last().filter(|last| *block == behind(record, &last.name));
                    held.extend(last.map(|_| (record, keep_up_to(found, at))));
                }
            }
            _ => {}
        }
        let reason = "what lies before one of its members is reached from that at a fixed distance";
        for (record, verdict) in held {
            self.find(record, verdict, UseKind::Offset, at, reason);
        }
    }
}
