//! Functions of other units that are worth reading: they are given objects of a type in question.

use super::is_harmless_name;
use crate::facts::{Act, Facts, Origin};
use crate::points_to::PointsTo;
use crate::tree::Name;
use std::collections::BTreeSet;

/// The functions that no unit defines and that are given an object of one of these types, or of a type that holds such,
/// without a word about its type.
pub(crate) fn unread_functions(facts: &Facts, types: &BTreeSet<String>) -> BTreeSet<String> {
    let records = around(facts, types);
    if records.is_empty() {
        return BTreeSet::new();
    }
    let points_to = PointsTo::of(facts);
    let mut functions = BTreeSet::new();
    for (value, act, _) in &facts.acts {
        let Act::Given(usr, name) = act else { continue };
        if functions.contains(&**name) || facts.defined.contains(usr) || is_harmless_name(name) {
            continue;
        }
        let is_asked = |origin: &Origin| match origin {
            Origin::Object(record) | Origin::Handle(record) => records.contains(record),
            _ => false,
        };
        let objects = points_to.objects(value);
        let is_any_asked = objects.each.iter().any(|(origin, ..)| is_asked(origin))
            || (!objects.many.is_empty() && points_to.many.iter().any(|(origin, _)| is_asked(origin)));
        if is_any_asked {
            functions.insert(name.to_string());
        }
    }
    functions
}

/// The records of these names, and all records that hold one.
fn around<'f>(facts: &'f Facts, types: &BTreeSet<String>) -> BTreeSet<&'f Name> {
    let named =
        facts.records.iter().filter(|(_, record)| record.names.iter().any(|name| types.contains(name)));
    let mut found: BTreeSet<&Name> = named.map(|(usr, _)| usr).collect();
    loop {
        let holds = |usr: &&Name| {
            let members = &facts.records[*usr].members;
            members.iter().any(|member| member.record.as_ref().is_some_and(|inner| found.contains(inner)))
        };
        let more: Vec<&Name> =
            facts.records.keys().filter(|usr| !found.contains(usr)).filter(holds).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}
