//! Objects whose memory is given back by a pointer that does not show their type.

use super::Judge;
use crate::facts::{Origin, Source};
use crate::library_functions;
use crate::uses::{UseKind, Verdict};

impl Judge<'_> {
    /// Functions of the program that stand for `free` are left out: their callers show the type.
    pub(super) fn ended_objects(&mut self) {
        let facts = self.facts;
        let stands_for_one = |function: &str| {
            let known = facts.splitting.wrappers.get(function);
            known.is_some_and(|known| !known.is_empty() && known.iter().all(Option::is_some))
        };
        for (function, caller, value, at) in &facts.ended {
            let is_other = facts.defined.contains(function) && !stands_for_one(function);
            if is_other || stands_for_one(caller) || !matches!(value.source, Source::Place(_)) {
                continue;
            }
            for (origin, ..) in self.points_to.objects(value).each {
                if let Origin::Object(record) = origin {
                    let name = library_functions::plain_name(function);
                    let reason = format!("{name}() is given an object by a pointer of another type");
                    self.find(&record, Verdict::Harmless, UseKind::Ended, at, reason);
                }
            }
        }
    }
}
