//! Members whose addresses are compared, or sorted: the lower one stays the lower one.

use super::Judge;
use super::direct_uses::{between, keep};
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

    /// `end - start` in a function that is given two members of one type, or a member and the object's end.
    pub(super) fn distances(&mut self) {
        let facts = self.facts;
        for (left, right, at) in &facts.subtracted {
            let (Some(left), Some(right)) = (self.only_origin(left), self.only_origin(right)) else {
                continue;
            };
            let (record, verdict, to) = match (&left, &right) {
                (Origin::MemberOf(record, one), Origin::MemberOf(other, two))
                    if record == other && one != two =>
                {
                    let Some(found) = self.own(record) else { continue };
                    (record, between(found, one, two), format!("{one} to {two}"))
                }
                (Origin::MemberOf(record, member), Origin::End(other))
                | (Origin::End(other), Origin::MemberOf(record, member))
                    if record == other =>
                {
                    let Some(found) = self.own(record) else { continue };
                    let start = found.members.iter().find(|known| known.name == *member);
                    let Some(start) = start.map(|known| known.offset_bits / 8) else { continue };
                    (record, keep(found, start, None), format!("{member} to the end"))
                }
                _ => continue,
            };
            let reason = format!("code computes with the distance from {to}");
            self.find(record, verdict, UseKind::Offset, at, reason);
        }
    }

    /// The one thing that the values lead to the start of.
    fn only_origin(&self, values: &[Value]) -> Option<Origin> {
        let mut found = BTreeSet::new();
        for value in values {
            let objects = self.points_to.objects(value);
            if !objects.many.is_empty() {
                return None;
            }
            found.extend(objects.each.into_iter().map(|(origin, reach, _)| (origin, reach)));
        }
        let one = found.pop_first().filter(|(_, reach)| *reach == Reach::Start)?;
        found.is_empty().then_some(one.0)
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
