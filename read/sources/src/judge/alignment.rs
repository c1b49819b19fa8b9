//! Members that must lie at multiples of more bytes than their type asks for.

use super::Judge;
use crate::facts::{Member, Where};
use crate::library_functions::{self, BLOCK_BYTES};
use crate::smallest_size::may_shrink;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

impl Judge<'_> {
    /// The member keeps its place and its type its size, so that it is aligned in each element of an array. The same
    /// holds for each type that contains the type.
    pub(super) fn aligned(&mut self, (record, member): (&Name, &Name), bytes: u64, reason: &str, at: &Where) {
        let known = self.facts.records.get(record).and_then(|found| {
            let at = found.members.iter().position(|known| known.name == *member)?;
            Some(&found.members[at])
        });
        if known.is_some_and(|known| known.align_bytes < bytes && !member.is_empty()) {
            let verdict = Verdict::Keep(vec![member.to_string()]);
            self.find(record, verdict, UseKind::PartialMemory, at, reason);
            self.aligned_objects(record, bytes, reason, at);
        }
    }

    /// Objects of the record lie at multiples of `bytes`, in any place.
    pub(super) fn aligned_objects(&mut self, record: &Name, bytes: u64, reason: &str, at: &Where) {
        let facts = self.facts;
        let (mut work, mut seen) = (vec![record.clone()], BTreeSet::from([record.clone()]));
        while let Some(inner) = work.pop() {
            let own_align = facts
                .records
                .get(&inner)
                .map_or(1, |found| found.members.iter().map(|member| member.align_bytes).max().unwrap_or(1));
            if own_align >= bytes {
                continue;
            }
            self.keep_size(&inner, at, reason);
            for (outer, found) in &facts.records {
                let holds = found.members.iter().filter(|member| member.record.as_ref() == Some(&inner));
                let names: Vec<String> = holds.map(|member| member.name.to_string()).collect();
                if names.is_empty() || found.is_union || !seen.insert(outer.clone()) {
                    continue;
                }
                let verdict = match names.iter().any(String::is_empty) {
                    true => Verdict::Refuse,
                    false => Verdict::Keep(names),
                };
                self.find(outer, verdict, UseKind::PartialMemory, at, reason);
                work.push(outer.clone());
            }
        }
    }

    /// No order makes the type larger, so that one with the last member in its place does not make it smaller. A union
    /// is as large as what is in it.
    pub(super) fn keep_size(&mut self, record: &Name, at: &Where, reason: &str) {
        let Some(found) = self.own(record) else { return };
        if found.is_union {
            let inside = found.members.iter().filter_map(|member| member.record.as_ref());
            for inner in inside.filter(|inner| self.own(inner).is_some_and(may_shrink)).collect::<Vec<_>>() {
                self.keep_size(inner, at, reason);
            }
            return;
        }
        let last = found.members.last().map(|member| member.name.to_string());
        let verdict = match last.filter(|name| !name.is_empty()) {
            Some(name) => Verdict::Keep(vec![name]),
            None => Verdict::Refuse,
        };
        self.find(record, verdict, UseKind::Whole, at, format!("{reason}, so its size stays"));
    }

    /// Objects lie as far apart as their size, which is written as a number.
    pub(super) fn stepped_over(&mut self, record: &Name, bytes: u64, at: &Where) {
        if self.own(record).is_some_and(|found| found.size_bytes == bytes) {
            let reason = format!("objects are found by the number {bytes}, which is its size");
            self.keep_size(record, at, &reason);
        }
    }

    /// A file's bytes go straight between a device and a member: both lie at a multiple of the device's blocks.
    pub(super) fn member_in_file(&mut self, record: &Name, member: &Name, function: &Name, at: &Where) {
        let is_direct = self.facts.has_direct_files && library_functions::moves_file(function);
        let Some(found) = self.own(record).filter(|_| is_direct) else { return };
        let known = found.members.iter().find(|known| known.name == *member);
        let is_block = |known: &Member| {
            known.size_bytes >= BLOCK_BYTES && (known.offset_bits / 8).is_multiple_of(BLOCK_BYTES)
        };
        if known.is_some_and(is_block) {
            let reason = format!(
                "{function}() of a file with O_DIRECT asks for {member} at a multiple of {BLOCK_BYTES} bytes"
            );
            self.aligned((record, member), BLOCK_BYTES, &reason, at);
        }
    }
}
