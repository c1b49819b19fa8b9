//! Members that are reached from another by an index that is written as a number.

use super::Judge;
use super::sayings::keep;
use crate::facts::{Place, Source, Value, Where};
use crate::tree::Name;
use crate::uses::UseKind;

impl Judge<'_> {
    /// `int *p = &x->low; p[2]`: all that lies in the bytes from the member on stays where it is. What a function does with
    /// its parameter may be meant for other objects than this one when several types come there.
    pub(super) fn spanned(
        &mut self,
        (record, member): (&Name, &Name),
        bytes: u64,
        value: &Value,
        is_generic: bool,
        at: &Where,
    ) {
        let is_meant = match &value.source {
            Source::Origin(_) | Source::Place(Place::Variable(_)) => true,
            _ => !is_generic,
        };
        let Some(found) = self.own(record).filter(|_| is_meant) else { return };
        let Some(known) = found.members.iter().find(|known| known.name == *member) else { return };
        if known.is_open_array || known.size_bytes == 0 || bytes <= known.size_bytes {
            return;
        }
        let reason = format!("an index past the end of {member} reaches what follows it");
        self.find(record, keep(found, known.offset_bits / 8, Some(bytes)), UseKind::Walk, at, reason);
    }
}
