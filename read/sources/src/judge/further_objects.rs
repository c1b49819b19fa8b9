//! Objects that are given whole among the further arguments of functions.

use super::Judge;
use crate::collect::variadic;
use crate::facts::{Act, Origin, PointerPlace, Shape, Source};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

impl Judge<'_> {
    /// `sum(2, object)` where the function takes its further arguments as numbers: these are the object's bytes.
    pub(super) fn further_objects(&mut self) {
        let facts = self.facts;
        if facts.further_objects.is_empty() {
            return;
        }
        let lists: BTreeSet<Name> = facts.defined.iter().map(|function| variadic(function, false)).collect();
        let mut taken: BTreeSet<Name> = BTreeSet::new();
        for (value, act, _) in &facts.acts {
            let is_list =
                matches!(&value.source, Source::Place(PointerPlace::Variable(list)) if lists.contains(list));
            if is_list && matches!(act, Act::As(Shape::Record(_), _)) {
                let objects = self.points_to.objects(value).each;
                taken.extend(objects.into_iter().filter_map(|(origin, ..)| match origin {
                    Origin::Object(record) => Some(record),
                    _ => None,
                }));
            }
        }
        for (function, record, at) in &facts.further_objects {
            if facts.defined.contains(function) && !taken.contains(record) {
                let reason = "it is given among further arguments, and nothing takes an object there";
                self.find(record, Verdict::Refuse, UseKind::Bytes, at, reason);
            }
        }
    }
}
