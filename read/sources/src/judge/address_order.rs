//! Members whose addresses are compared, or sorted: the lower one stays the lower one.

use super::Judge;
use crate::facts::{Act, Origin, Reach, Value, Where};
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::{BTreeMap, BTreeSet};

/// Members by their records.
type Members = BTreeMap<Name, BTreeSet<Name>>;

impl Judge<'_> {
    pub(super) fn address_order(&mut self) {
        let facts = self.facts;
        for (lower, higher, at) in &facts.compared {
            let (lower, higher) = (self.members_at(lower), self.members_at(higher));
            for (record, one) in &lower {
                let Some(other) = higher.get(record) else { continue };
                self.stay_in_order(record, &(one | other), "compared", at);
            }
        }
        let mut sorted: BTreeMap<Name, (BTreeSet<Name>, &Where)> = BTreeMap::new();
        for (value, _, at) in facts.acts.iter().filter(|(_, act, _)| *act == Act::Sorted) {
            for (record, members) in self.members_at(std::slice::from_ref(value)) {
                sorted.entry(record).or_insert((BTreeSet::new(), at)).0.extend(members);
            }
        }
        for (record, (members, at)) in sorted {
            self.stay_in_order(&record, &members, "sorted", at);
        }
    }

    fn stay_in_order(&mut self, record: &Name, members: &BTreeSet<Name>, how: &str, at: &Where) {
        let Some(found) = self.own(record).filter(|found| !found.is_union) else { return };
        let names = found.members.iter().filter(|member| members.contains(&member.name));
        let names: Vec<String> = names.map(|member| member.name.to_string()).collect();
        if names.len() > 1 {
            let reason = format!("addresses of {} are {how}", names.join(" and "));
            self.find(record, Verdict::InOrder(names), UseKind::Offset, at, reason);
        }
    }

    /// The members to whose starts these values lead; an object's start is that of its first member.
    fn members_at(&self, values: &[Value]) -> Members {
        let mut members = Members::new();
        let objects = values.iter().flat_map(|value| self.points_to.objects(value).each);
        for (origin, ..) in objects.filter(|(_, reach, _)| *reach == Reach::Start) {
            if let Origin::MemberOf(record, member) = origin {
                members.entry(record).or_default().insert(member);
            }
        }
        members
    }
}
