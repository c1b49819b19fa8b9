//! Facts that follow from the declarations alone.

use super::Judge;
use crate::facts::{Facts, Member, Reach, RecordFact, Shape, Where};
use crate::relation::common_members;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeMap;

/// An array of one element, and an array of the same elements right behind it: code may index across both.
fn continues(one: &Member, next: &Member) -> bool {
    let element = |member: &Member| member.ty.split('[').next().unwrap_or("").trim_end().to_string();
    one.is_open_array && one.is_array && next.is_array && element(one) == element(next)
}

/// The nesting of members that is looked at.
const DEPTH: u32 = 16;

/// True when making or ending an object of the record runs code, its own or that of its members.
fn runs_code(facts: &Facts, record: &Name, depth: u32) -> bool {
    let Some(found) = facts.records.get(record).filter(|_| depth > 0) else { return false };
    let inner = found.members.iter().filter_map(|member| member.record.as_ref()).chain(&found.bases);
    found.runs_code || inner.into_iter().any(|inner| runs_code(facts, inner, depth - 1))
}

impl Judge<'_> {
    pub(super) fn layouts(&mut self) {
        let facts = self.facts;
        for (usr, record) in &facts.records {
            self.volatile(usr, record);
            self.copied(usr, record);
            self.constructed(usr, record);
            match record.is_union {
                true => {
                    self.union(usr, record);
                    self.union_of_pointers(usr, record);
                }
                false => self.trailing(usr, record),
            }
        }
        self.common_leading();
    }

    /// A header that the build copied is read in both places; an edit changes one.
    fn copied(&mut self, usr: &Name, record: &RecordFact) {
        if let Some(copy) = record.copies.first().filter(|_| !record.is_foreign && !record.names.is_empty()) {
            let short = |path: &Name| {
                path.rsplit('/').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("/")
            };
            let reason = format!(
                "it is declared in {} and in {}, and an edit changes one",
                short(&record.at.file),
                short(copy)
            );
            self.find(usr, Verdict::Refuse, UseKind::Exported, &record.at, reason);
        }
    }

    /// Constructors and destructors of members run in the order of the members.
    fn constructed(&mut self, usr: &Name, record: &RecordFact) {
        let runs_code = |member: &&Member| {
            member.record.as_ref().is_some_and(|inner| runs_code(self.facts, inner, DEPTH))
        };
        let names: Vec<String> =
            record.members.iter().filter(runs_code).map(|member| member.name.to_string()).collect();
        if names.len() < 2 || record.is_union {
            return;
        }
        let reason = "constructors and destructors of these members run in the order of their declarations";
        let verdict = match names.iter().any(String::is_empty) {
            true => Verdict::Refuse,
            false => Verdict::InOrder(names),
        };
        self.find(usr, verdict, UseKind::Construction, &record.at, reason);
    }

    /// A block of which most members are volatile is a device's; single volatile members keep their place, but in a
    /// type with pointers: no device has such, and its volatile members are there for signals and threads.
    fn volatile(&mut self, usr: &Name, record: &RecordFact) {
        let volatile: Vec<&Member> = record.members.iter().filter(|member| member.is_volatile).collect();
        if volatile.is_empty() {
            return;
        }
        let has_pointers = record.members.iter().any(|member| member.shape == Shape::Pointer);
        if has_pointers && volatile.len() * 2 <= record.members.len() {
            return;
        }
        let names = volatile.iter().map(|member| member.name.to_string()).collect();
        let (verdict, reason) = match volatile.len() * 2 > record.members.len() {
            true => (Verdict::Refuse, "most of its members are volatile, as in a block of registers"),
            false => (Verdict::Keep(names), "volatile members"),
        };
        self.find(usr, verdict, UseKind::Volatile, &record.at, reason);
    }

    /// Structs that share a union keep their common beginning; a struct that shares it with plain bytes of its own size
    /// is read through them.
    fn union(&mut self, usr: &Name, union: &RecordFact) {
        let name = union.names.first().map_or("a union".to_string(), |name| format!("the union {name}"));
        let records: Vec<(&Name, u64)> = union
            .members
            .iter()
            .filter_map(|member| {
                Some((member.record.as_ref().filter(|_| !member.is_array)?, member.size_bytes))
            })
            .collect();
        for &(record, size) in &records {
            // An array that no code names only makes room, as for a kernel's stacks.
            let is_named =
                |member: &Member| self.facts.alternatives.contains(&(usr.clone(), member.name.clone()));
            let raw = union.members.iter().find(|member| {
                let is_read = if member.is_array { is_named(member) } else { member.size_bytes == size };
                member.is_raw && member.size_bytes >= size && is_read
            });
            if let Some(raw) = raw {
                let reason = format!("{name} lets {} stand for its bytes", raw.name);
                self.find(record, Verdict::Refuse, UseKind::Union, &union.at, reason);
            }
        }
        for (index, &(one, _)) in records.iter().enumerate() {
            for &(two, _) in &records[index + 1..] {
                let both = (self.facts.records.get(one), self.facts.records.get(two));
                let (Some(a), Some(b)) = both else { continue };
                let count = a.members.iter().zip(&b.members).take_while(|(a, b)| a.ty == b.ty).count();
                if count > 0 && one != two {
                    let what = format!("it shares {name} with");
                    self.keep_common((one, count), (two, count), UseKind::Union, &union.at, &what);
                } else if one != two && !self.is_tagged(usr) {
                    for ((record, own), other) in [((one, a), b), ((two, b), a)] {
                        if let Some(words) = words_over(own, other) {
                            let reason = format!("{name} lets {words} stand for its members");
                            self.find(record, Verdict::Refuse, UseKind::Union, &union.at, reason);
                        }
                    }
                }
            }
        }
    }

    /// True for a union with a neighbouring number, which distinguishes its members.
    fn is_tagged(&self, union: &Name) -> bool {
        self.facts.records.values().any(|outer| {
            let lies_there = outer.members.iter().any(|member| member.record.as_ref() == Some(union));
            lies_there && outer.members.iter().any(|member| matches!(member.shape, Shape::Scalar(_)))
        })
    }

    /// Pointers that share a union without a neighbouring tag: one is stored, another may be read, which is a cast from
    /// one to the other. With a neighbouring number as a tag, each is read as it was stored.
    fn union_of_pointers(&mut self, usr: &Name, union: &RecordFact) {
        let pointed: Vec<&Name> =
            union.members.iter().filter_map(|member| member.points_to.as_ref()).collect();
        let numbers: Vec<&(Shape, Name)> =
            union.members.iter().filter_map(|member| member.points_to_number.as_ref()).collect();
        if pointed.is_empty() || pointed.len() + numbers.len() < 2 || self.is_tagged(usr) {
            return;
        }
        for (index, one) in pointed.iter().enumerate() {
            for two in &pointed[index + 1..] {
                self.used_as_record(one, Reach::Start, two, false, &union.at);
            }
            for (shape, spelling) in &numbers {
                self.used_as_value(one, Reach::Start, shape, spelling, false, &union.at);
            }
        }
    }

    /// An array without a size stays last, and the members after an embedded one stay behind it.
    fn trailing(&mut self, usr: &Name, record: &RecordFact) {
        if let Some(last) = record.members.last().filter(|last| last.is_open_array || self.ends_open(last)) {
            let (name, reason) = (last.name.to_string(), "an array that grows past the end stays last");
            self.find(usr, Verdict::Last(name), UseKind::TrailingArray, &record.at, reason);
        }
        for pair in record.members.windows(2) {
            if continues(&pair[0], &pair[1]) {
                let names = pair.iter().map(|member| member.name.to_string()).collect();
                let reason =
                    format!("{} is an array of one element that may go on in {}", pair[0].name, pair[1].name);
                self.find(usr, Verdict::Adjacent(names), UseKind::Walk, &record.at, reason);
            }
            if self.ends_open(&pair[0]) {
                let names = pair.iter().map(|member| member.name.to_string()).collect();
                let reason = format!("{} ends in an array that may grow into {}", pair[0].name, pair[1].name);
                self.find(usr, Verdict::Adjacent(names), UseKind::TrailingArray, &record.at, reason);
            }
        }
    }

    /// True when objects are larger than their type.
    pub(super) fn grows(&self, record: &RecordFact) -> bool {
        record.members.last().is_some_and(|last| last.is_open_array || self.ends_open(last))
    }

    /// True when this many bytes end inside a member that has members itself.
    pub(super) fn cuts(&self, record: &RecordFact, bytes: u64) -> bool {
        record.members.iter().any(|member| {
            let start = member.offset_bits / 8;
            member.record.is_some() && start < bytes && bytes < start.saturating_add(member.size_bytes)
        })
    }

    fn ends_open(&self, member: &Member) -> bool {
        let mut record = member.record.as_ref().filter(|_| !member.is_array);
        for _ in 0..16 {
            let Some(found) = record.and_then(|record| self.facts.records.get(record)) else { return false };
            let Some(last) = found.members.last().filter(|_| !found.is_union) else { return false };
            if last.is_open_array && last.size_bytes == 0 {
                return true;
            }
            record = last.record.as_ref().filter(|_| !last.is_array);
        }
        false
    }

    /// Two types that begin with two or more members of equal names and types keep them.
    fn common_leading(&mut self) {
        let mut by_first: BTreeMap<(&Name, &Name), Vec<(&Name, &RecordFact)>> = BTreeMap::new();
        for (usr, record) in &self.facts.records {
            let is_named = !record.names.is_empty() && !record.is_union && record.members.len() > 1;
            if let Some(first) = record.members.first().filter(|_| is_named && !record.is_foreign) {
                by_first.entry((&first.name, &first.ty)).or_default().push((usr, record));
            }
        }
        for group in by_first.into_values() {
            for (index, &(one, a)) in group.iter().enumerate() {
                let others = group.iter().enumerate().filter(|&(other, _)| other != index);
                let most =
                    others.map(|(_, &(two, b))| (common_members(a, b), two)).max_by_key(|(count, _)| *count);
                if let Some((count, two)) = most.filter(|(count, _)| *count >= 2) {
                    let names = self.leading(one, count);
                    let reason = format!("{} begins with the same members", self.name(two));
                    let at: &Where = &a.at;
                    self.find(one, Verdict::Keep(names), UseKind::CommonLeadingMembers, at, reason);
                }
            }
        }
    }
}

/// The array of numbers in `other` that lies over several members of its element's type in `record`.
fn words_over<'f>(record: &RecordFact, other: &'f RecordFact) -> Option<&'f Name> {
    let covers = |array: &&Member| {
        let element = array.ty.split('[').next().unwrap_or_default().trim_end();
        let start = array.offset_bits;
        let end = start.saturating_add(array.size_bytes.saturating_mul(8));
        let covered = record.members.iter().filter(|member| {
            *member.ty == *element && (start..end).contains(&member.offset_bits) && !member.is_bit_field
        });
        array.is_array && array.is_raw && covered.count() > 1
    };
    other.members.iter().find(covers).map(|array| &array.name)
}
