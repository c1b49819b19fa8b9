//! Findings about an object hold for the objects inside it.

use super::{Finding, Judge};
use crate::facts::Member;
use crate::smallest_size::may_shrink;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeSet;

impl Judge<'_> {
    /// Where others know an object's bytes, they know the bytes of the objects in it. Where its start stands for it, so
    /// does the start of its first member. Code that has a header's bytes also has those behind it.
    pub(super) fn embedded(&mut self) {
        let mut work: Vec<(Name, Finding)> = self
            .found
            .iter()
            .flat_map(|(record, findings)| findings.iter().map(|finding| (record.clone(), finding.clone())))
            .collect();
        let mut seen: BTreeSet<(Name, Verdict, UseKind)> = BTreeSet::new();
        while let Some((record, finding)) = work.pop() {
            for inner in self.reached(&record, &finding) {
                if inner == record || !seen.insert((inner.clone(), finding.verdict.clone(), finding.kind)) {
                    continue;
                }
                let inside = format!("it lies in {}: ", self.name(&record));
                let reason = match finding.reason.starts_with("it lies in ") {
                    true => finding.reason.clone(),
                    false => inside + &finding.reason,
                };
                let passed = Finding { reason: reason.clone(), ..finding.clone() };
                self.find(&inner, passed.verdict.clone(), passed.kind, &passed.at, reason);
                work.push((inner, passed));
            }
        }
    }

    /// A member keeps its offset only where the objects before it keep their sizes, and bytes that are used as one keep
    /// their number only where the objects among them do.
    pub(super) fn sizes_inside(&mut self) {
        let mut work: Vec<(Name, Finding)> = Vec::new();
        for (record, findings) in &self.found {
            work.extend(findings.iter().map(|finding| (record.clone(), finding.clone())));
        }
        let mut seen: BTreeSet<Name> = BTreeSet::new();
        while let Some((outer, finding)) = work.pop() {
            for inner in self.sized(&outer, &finding) {
                let Some(found) = self.own(&inner).filter(|found| may_shrink(found)) else { continue };
                let last = found.members.last().map(|last| last.name.to_string());
                if seen.insert(inner.clone()) {
                    let reason = format!("it lies in {}, where members keep their places", self.name(&outer));
                    self.keep_size(&inner, &finding.at, &reason);
                    let verdict = Verdict::Keep(last.into_iter().collect());
                    let (kind, at) = (UseKind::Whole, finding.at.clone());
                    work.push((inner, Finding { verdict, kind, at, reason }));
                }
            }
        }
    }

    /// The records inside a record on whose size a finding depends.
    fn sized(&self, record: &Name, finding: &Finding) -> Vec<Name> {
        let (Some(found), Verdict::Keep(names)) = (self.own(record), &finding.verdict) else {
            return Vec::new();
        };
        let is_kept = |member: &&Member| names.iter().any(|name| **name == *member.name);
        let count = found.members.iter().rposition(|member| is_kept(&member)).map_or(0, |last| last + 1);
        let members: Vec<&Member> = match finding.kind {
            UseKind::Offset | UseKind::Whole => found.members[..count].iter().collect(),
            UseKind::PartialMemory | UseKind::Walk => found.members.iter().filter(is_kept).collect(),
            _ => return Vec::new(),
        };
        let bases = found.bases.iter().filter(|_| matches!(finding.kind, UseKind::Offset | UseKind::Whole));
        members.into_iter().filter_map(|member| member.record.clone()).chain(bases.cloned()).collect()
    }

    /// The records inside a record that a finding concerns as well.
    fn reached(&self, record: &Name, finding: &Finding) -> Vec<Name> {
        let Some(found) = self.facts.records.get(record) else { return Vec::new() };
        let members: Vec<Name> = match finding.verdict {
            // A volatile member or a union concerns the type that has it.
            Verdict::Refuse if !matches!(finding.kind, UseKind::Volatile | UseKind::Positional) => {
                let is_alone = self.alone_in_bytes.contains(&(record.clone(), finding.reason.clone()));
                let behind = self.behind.get(record).into_iter().flatten().filter(|_| !is_alone).cloned();
                found.members.iter().filter_map(|member| member.record.clone()).chain(behind).collect()
            }
            Verdict::First => {
                found.members.first().and_then(|member| member.record.clone()).into_iter().collect()
            }
            _ => return Vec::new(),
        };
        let bases = found.bases.iter().filter(|_| finding.verdict == Verdict::Refuse).cloned();
        members.into_iter().chain(bases).collect()
    }
}
