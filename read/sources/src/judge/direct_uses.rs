//! Facts about a type itself.

use super::{Judge, Product};
use crate::facts::{Follows, Member, RecordFact, Saying, Where};
use crate::relation::begins_with;
use crate::smallest_size::may_shrink;
use crate::tree::Name;
use crate::uses::{UseKind, Verdict};
use std::collections::BTreeMap;
use std::path::Path;

impl Judge<'_> {
    pub(super) fn sayings(&mut self) {
        let facts = self.facts;
        let mut instances: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
        for (template, record) in &facts.instances {
            instances.entry(template).or_default().push(record);
        }
        for (record, saying, at) in &facts.sayings {
            for instance in instances.get(record).into_iter().flatten() {
                if let Some(found) = self.own(instance).filter(|found| may_shrink(found)) {
                    self.saying(instance, found, saying, at);
                }
            }
            let Some(found) = self.own(record) else { continue };
            match saying {
                Saying::LeadingMembers(bytes) => self.leading_members(record, found, *bytes, at),
                _ => self.saying(record, found, saying, at),
            }
        }
    }

    fn saying(&mut self, record: &Name, found: &RecordFact, saying: &Saying, at: &Where) {
        let (verdict, kind, reason) = match saying {
            Saying::AssertedOffset(member) => (
                Verdict::Keep(vec![member.to_string()]),
                UseKind::Assertion,
                format!("an assertion holds the offset of {member}"),
            ),
            Saying::Measured(member) => (
                Verdict::Boundary(member.to_string()),
                UseKind::Offset,
                format!("code computes with the offset of {member}"),
            ),
            Saying::TailAllocated(member) => {
                let is_last = found.members.last().is_some_and(|last| last.name == *member);
                let verdict = match is_last {
                    true => Verdict::Last(member.to_string()),
                    false => Verdict::Boundary(member.to_string()),
                };
                (verdict, UseKind::TrailingArray, format!("memory is allocated up to {member} and on"))
            }
            Saying::Offset(member) => {
                (Verdict::Harmless, UseKind::Offset, format!("the compiler works out the offset of {member}"))
            }
            Saying::Prefix(bytes) | Saying::LeadingMembers(bytes) => (
                self.keep_first(found, *bytes),
                UseKind::PartialMemory,
                format!("its first {bytes} bytes are treated by themselves"),
            ),
            Saying::Span(member, bytes) => {
                let start = found.members.iter().find(|known| known.name == *member);
                let Some(start) = start.map(|member| member.offset_bits / 8) else { return };
                let reason = format!("bytes from {member} on are treated as one");
                (keep(found, start, *bytes), UseKind::PartialMemory, reason)
            }
            Saying::Distance(one, two) => (
                between(found, one, two),
                UseKind::Offset,
                format!("code computes with the distance from {one} to {two}"),
            ),
            Saying::WorkedOut(members) => (
                Verdict::InOrder(members.iter().map(|member| member.to_string()).collect()),
                UseKind::Construction,
                "values that do something are worked out in the order of the members".to_string(),
            ),
            Saying::Ordered => (
                Verdict::Refuse,
                UseKind::Positional,
                "the compiler compares objects in the order of their members".to_string(),
            ),
            Saying::LibraryBytes(name) => {
                (Verdict::Refuse, UseKind::Bytes, format!("{name}() looks at its bytes"))
            }
            Saying::Positional(count, follows) => by_position(self.leading(record, *count), *follows),
            Saying::Unbraced => (
                Verdict::Refuse,
                UseKind::Positional,
                "an initialiser gives its values by position, without braces of their own".to_string(),
            ),
            Saying::UnknownSize if self.grows(found) => return,
            Saying::UnknownSize => (
                Verdict::Refuse,
                UseKind::PartialMemory,
                "bytes from its start on are treated as one, and how many is known only when it runs".into(),
            ),
            Saying::Given(function, _) if self.facts.defined.contains(function) => return,
            Saying::Given(_, name) => {
                (Verdict::Refuse, UseKind::Crossing, format!("{name}() gives one, and is not compiled here"))
            }
            Saying::StandsForIt(given) if !begins_with(self.facts, record, given, 0) => return,
            Saying::StandsForIt(_) => (
                Verdict::First,
                UseKind::FirstMember,
                "a pointer to its first member is given with the size of all of it".to_string(),
            ),
            Saying::VolatilePointer => (
                Verdict::Refuse,
                UseKind::Volatile,
                "a pointer to volatile objects, such as a device's registers".into(),
            ),
            Saying::Whole(what) => (Verdict::Harmless, UseKind::Whole, what.to_string()),
            Saying::Format => (
                Verdict::Refuse,
                UseKind::Bytes,
                "it has bytes alone in it and is laid over bytes, as a format is".to_string(),
            ),
            Saying::SizeShown(how) => return self.keep_size(record, at, &format!("its size {how}")),
            Saying::ComparedOffset(member) => (
                Verdict::Keep(vec![member.to_string()]),
                UseKind::Offset,
                format!("code compares the offset of {member} with a number"),
            ),
            Saying::OffsetShown(member, how) => (
                Verdict::Keep(vec![member.to_string()]),
                UseKind::Offset,
                format!("the offset of {member} {how}"),
            ),
            Saying::SizeBounded(number) => return self.size_bounded(record, *number, at),
            Saying::Stride(bytes) => {
                let reason = format!("objects are found by the number {bytes}, which is its size");
                return self.keep_size(record, at, &reason);
            }
            Saying::AbiConstant(what) => {
                (Verdict::Refuse, UseKind::Crossing, format!("its size is part of {what}"))
            }
        };
        self.find(record, verdict, kind, at, reason);
    }

    /// The members in the first bytes keep their places; where these end inside an embedded object, all do.
    pub(super) fn keep_first(&self, found: &RecordFact, bytes: u64) -> Verdict {
        match self.cuts(found, bytes) {
            true => Verdict::Refuse,
            false => keep(found, 0, Some(bytes)),
        }
    }

    /// Members that are copied to the same members, or cleared, by the bytes that they lie in: they stay in these
    /// bytes, and the members after them keep their places, so that sizes that measure them stay the same. Where the
    /// bytes end inside a member, all members in them keep their places.
    fn leading_members(&mut self, record: &Name, found: &RecordFact, bytes: u64, at: &Where) {
        let follows = |member: &&Member| member.offset_bits >= bytes.saturating_mul(8);
        let rest: Vec<String> =
            found.members.iter().filter(follows).map(|member| member.name.to_string()).collect();
        let next = found.members.iter().find(follows);
        let ends_there = next.is_some_and(|next| next.offset_bits == bytes.saturating_mul(8))
            && found.members.iter().filter(|member| !follows(member)).all(|member| {
                member.offset_bits.is_multiple_of(8)
                    && member.offset_bits / 8 + member.size_bytes.max(1) <= bytes
            });
        if !ends_there || rest.iter().any(String::is_empty) {
            return self.saying(record, found, &Saying::Prefix(bytes), at);
        }
        let reason = format!("the members in its first {bytes} bytes are copied or cleared by themselves");
        let kind = UseKind::PartialMemory;
        self.find(record, Verdict::Boundary(rest[0].clone()), kind, at, reason.clone());
        self.find(record, Verdict::Keep(rest), kind, at, reason);
    }

    /// Types that a shared library shows: declared in a header, and taken or given by an exported function.
    pub(super) fn exports(&mut self, product: &Product) {
        if !product.is_shared_library {
            return;
        }
        let facts = self.facts;
        for (function, record, at) in &facts.exported {
            let Some(found) = self.own(record) else { continue };
            let file = Path::new(&*found.at.file);
            let is_header =
                file.extension().is_some_and(|extension| extension.to_string_lossy().starts_with('h'));
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            let is_shown = product.installed_headers.is_empty() || product.installed_headers.contains(&name);
            if is_header && is_shown {
                let reason = format!("the shared library shows it to others: {function}() takes or gives it");
                self.find(record, Verdict::Refuse, UseKind::Exported, at, reason);
            }
        }
    }
}

/// The members in the `bytes` bytes from `start` on; to the end when the number is not known.
pub(super) fn keep(found: &RecordFact, start: u64, bytes: Option<u64>) -> Verdict {
    let end = bytes.map_or(u64::MAX, |bytes| start.saturating_add(bytes));
    let inside = found.members.iter().filter(|member| {
        let at = member.offset_bits / 8;
        at < end && at.saturating_add(member.size_bytes.max(1)) > start
    });
    let names: Vec<String> = inside.map(|member| member.name.to_string()).collect();
    match names.iter().any(String::is_empty) || names.is_empty() {
        true => Verdict::Refuse,
        false => Verdict::Keep(names),
    }
}

/// The requirement of values by position on their members.
fn by_position(members: Vec<String>, follows: Follows) -> (Verdict, UseKind, String) {
    let (verdict, reason): (fn(Vec<String>) -> Verdict, &str) = match follows {
        Follows::Named => {
            (Verdict::Named, "an initialiser gives values by position; an edit names the members there")
        }
        Follows::Exchanged => (
            Verdict::Exchanged,
            "an initialiser gives values by position, where no members can be named; an edit reorders the values",
        ),
        Follows::Not => {
            (Verdict::Keep, "values are given by position, and an edit cannot name the members there")
        }
    };
    (verdict(members), UseKind::Positional, reason.to_string())
}

/// The members from one to the other.
pub(super) fn between(found: &RecordFact, one: &str, two: &str) -> Verdict {
    let position = |name: &str| found.members.iter().position(|member| &*member.name == name);
    let (Some(a), Some(b)) = (position(one), position(two)) else { return Verdict::Refuse };
    let names = found.members[a.min(b)..=a.max(b)].iter().map(|member| member.name.to_string());
    let names: Vec<String> = names.collect();
    match names.iter().any(String::is_empty) {
        true => Verdict::Refuse,
        false => Verdict::Keep(names),
    }
}
