//! The guard: `lineup.lock` says which members must share lines, and why; a check says which moved.
//!
//! Offsets are counted from the start of the object: where an object's own start is not aligned to the
//! line, sharing a line is a property of the allocation, which no layout can hold.

use crate::error::AdviseError;
use lineup_model::abi::Abi;
use lineup_model::line::LineSize;
use lineup_model::types::{TypeId, Types};
use serde::{Deserialize, Serialize};

/// Version of the lock's text.
pub const LOCK_SCHEMA: &str = "lineup.lock/1";

/// Everything a `lineup.lock` holds.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Lock {
    /// The groups, in order.
    pub groups: Vec<Group>,
}

/// Members of one type that must lie on one line.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// The type's name.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Line size in bytes: a power of two from 8 to 4096.
    pub line_bytes: u32,
    /// `LP64` or `ILP32`: the data model the group is for.
    pub data_model: String,
    /// Members that must share one line; nested ones as `outer.inner`.
    pub members: Vec<String>,
    /// Members that must not be on that line: other threads write them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart: Vec<String>,
    /// The reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<Why>,
}

/// One reason for a group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The region that uses the members.
    pub region: String,
    /// Lines of the type's objects per call, with the group kept.
    pub lines_per_call: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    schema: String,
    #[serde(default)]
    group: Vec<Group>,
}

/// A broken promise of a lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Violation {
    /// The type.
    #[serde(rename = "type")]
    pub type_name: String,
    /// The member that moved, when one can be named.
    pub member: Option<String>,
    /// One sentence.
    pub message: String,
}

/// The result of a check.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct CheckReport {
    /// Broken promises; the check fails when there is one.
    pub violations: Vec<Violation>,
    /// The number of groups in the lock.
    pub groups: usize,
    /// The number of groups that hold.
    pub kept: usize,
    /// Groups for another data model than the file's: not checked.
    pub not_checked: usize,
}

impl Lock {
    /// The lock as text.
    pub fn to_text(&self) -> String {
        let document = Document { schema: LOCK_SCHEMA.to_string(), group: self.groups.clone() };
        let body = toml::to_string_pretty(&document).unwrap_or_default();
        format!(
            "# Members that must share cache lines, and why. Check with `lineup layout --check lineup.lock FILE`;\n\
             # write anew with `lineup advise --guard` after a change that is meant.\n{body}"
        )
    }

    /// Reads a lock. `name` is how errors call it.
    ///
    /// # Errors
    /// [`AdviseError::LockSyntax`] with the line, [`AdviseError::LockVersion`].
    pub fn parse(name: &str, text: &str) -> Result<Lock, AdviseError> {
        let syntax = |offset: usize, what: String| AdviseError::LockSyntax {
            name: name.to_string(),
            line: crate::text::lex::line_at(text, offset),
            what,
        };
        let document: Document = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            syntax(offset, error.message().to_string())
        })?;
        if document.schema != LOCK_SCHEMA {
            let (name, found) = (name.to_string(), document.schema);
            return Err(AdviseError::LockVersion { name, found, expected: LOCK_SCHEMA });
        }
        for (index, group) in document.group.iter().enumerate() {
            if let Some(what) = group.defect() {
                let offset = text.match_indices("[[group]]").nth(index).map_or(0, |(offset, _)| offset);
                return Err(syntax(offset, format!("group {}: {what}", index + 1)));
            }
        }
        Ok(Lock { groups: document.group })
    }

    /// Leaves out the groups that a build with these types does not keep, and names their types.
    pub fn leave_out_broken(&mut self, types: &Types, abi: Abi) -> Vec<String> {
        let known = types.by_name();
        let is_kept = |group: &Group| {
            !known.contains_key(group.type_name.as_str())
                || Lock { groups: vec![group.clone()] }.check(types, abi).violations.is_empty()
        };
        let (kept, broken): (Vec<Group>, Vec<Group>) =
            std::mem::take(&mut self.groups).into_iter().partition(is_kept);
        self.groups = kept;
        let mut names: Vec<String> = broken.into_iter().map(|group| group.type_name).collect();
        names.dedup();
        names
    }

    /// Holds the lock against the types of a file compiled for `abi`.
    pub fn check(&self, types: &Types, abi: Abi) -> CheckReport {
        let names = types.by_name();
        let mut report = CheckReport { groups: self.groups.len(), ..CheckReport::default() };
        for group in &self.groups {
            if group.data_model != abi.data_model() {
                report.not_checked += 1;
                continue;
            }
            let found = names
                .get(group.type_name.as_str())
                .and_then(|ids| ids.iter().copied().find(|&id| types.aggregate(id).is_some()));
            let violations = match found {
                Some(id) => group.check(types, id),
                None => vec![group.violation(None, format!("type {} is not in the file", group.type_name))],
            };
            report.kept += usize::from(violations.is_empty());
            report.violations.extend(violations);
        }
        report
    }
}

impl Group {
    fn defect(&self) -> Option<String> {
        if LineSize::new(self.line_bytes).is_none() {
            return Some(format!("line_bytes = {} is no power of two from 8 to 4096", self.line_bytes));
        }
        if !matches!(self.data_model.as_str(), "LP64" | "ILP32") {
            return Some(format!("data_model = {:?} is neither \"LP64\" nor \"ILP32\"", self.data_model));
        }
        self.members.is_empty().then(|| "members is empty".to_string())
    }

    fn violation(&self, member: Option<&str>, message: String) -> Violation {
        Violation { type_name: self.type_name.clone(), member: member.map(str::to_string), message }
    }

    fn check(&self, types: &Types, id: TypeId) -> Vec<Violation> {
        let line = LineSize::new(self.line_bytes).unwrap_or(LineSize::B64);
        let mut violations = Vec::new();
        let mut places: Vec<(&str, u64, u64, u64)> = Vec::new();
        for member in self.members.iter().chain(&self.apart) {
            match find_member(types, id, member) {
                Some((offset, size)) => {
                    let lines = line.lines(offset, size);
                    places.push((member, offset, *lines.start(), *lines.end()));
                }
                None => violations.push(self.violation(
                    Some(member),
                    format!("member {member} of {} is gone: renamed or removed?", self.type_name),
                )),
            }
        }
        let Some(home) = home_line(places.iter().filter(|place| self.members.iter().any(|m| m == place.0)))
        else {
            return violations;
        };
        let mut broken_places = Vec::new();
        for &(member, offset, first, last) in &places {
            let must_share = self.members.iter().any(|name| name == member);
            let on_home = first <= home && home <= last;
            let broken = if must_share { first != home || last != home } else { on_home };
            if broken {
                broken_places.push((member, offset, first, last));
            }
        }
        let stayed = |name: &&str| !broken_places.iter().any(|(broken, ..)| broken == name);
        let at_home: Vec<&str> = self.members.iter().map(String::as_str).filter(stayed).collect();
        for &(member, offset, first, last) in &broken_places {
            let message = self.moved(member, offset, (first, last), (home, &at_home));
            violations.push(self.violation(Some(member), message));
        }
        violations
    }

    fn moved(
        &self,
        member: &str,
        offset: u64,
        (first, last): (u64, u64),
        (home, at_home): (u64, &[&str]),
    ) -> String {
        let bytes = self.line_bytes;
        let of = &self.type_name;
        let why: Vec<String> = self
            .why
            .iter()
            .map(|why| format!("{} used {} per call", why.region, why.lines_per_call))
            .collect();
        let because = if why.is_empty() { String::new() } else { format!(" (lines: {})", why.join(", ")) };
        if !self.members.iter().any(|name| name == member) {
            return format!(
                "member {member} of {of} moved onto {bytes}-byte line {home}, which it must stay off: other threads write it{because}"
            );
        }
        let place = if first == last { format!("line {first}") } else { format!("lines {first} and {last}") };
        format!(
            "member {member} of {of} moved to offset {offset}, {bytes}-byte {place}; line {home} holds {}{because}",
            at_home.join(", ")
        )
    }
}

/// The line that most places lie on, the lowest of equals.
fn home_line<'p>(places: impl Iterator<Item = &'p (&'p str, u64, u64, u64)>) -> Option<u64> {
    let mut counts: std::collections::BTreeMap<u64, usize> = std::collections::BTreeMap::new();
    for (_, _, first, last) in places {
        for line in [*first, *last] {
            *counts.entry(line).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|&(line, count)| (count, std::cmp::Reverse(line))).map(|(line, _)| line)
}

/// Offset and size in bytes of `outer.inner`; members of anonymous members count as the type's own.
pub(crate) fn find_member(types: &Types, id: TypeId, path: &str) -> Option<(u64, u64)> {
    member_place(types, id, path).map(|place| (place.offset, place.size))
}

/// The place of a member that a lock names.
pub(crate) struct MemberPlace {
    /// In bytes.
    offset: u64,
    /// In bytes; 0 for a flexible array.
    pub(crate) size: u64,
    ty: TypeId,
    pub(crate) is_bit_field: bool,
}

/// The place of `outer.inner`.
pub(crate) fn member_place(types: &Types, id: TypeId, path: &str) -> Option<MemberPlace> {
    let (head, rest) = path.split_once('.').map_or((path, None), |(head, rest)| (head, Some(rest)));
    let outer = find_direct(types, id, head, 0)?;
    let Some(rest) = rest else { return Some(outer) };
    let inner = member_place(types, outer.ty, rest)?;
    Some(MemberPlace { offset: outer.offset.checked_add(inner.offset)?, ..inner })
}

fn find_direct(types: &Types, id: TypeId, name: &str, depth: u32) -> Option<MemberPlace> {
    let (_, aggregate) = types.aggregate(id).filter(|_| depth < 32)?;
    for member in &aggregate.members {
        let Some(bits) = member.offset_bits else { continue };
        if member.name.as_deref() == Some(name) {
            let size = match member.bit_size {
                Some(width) => (bits % 8 + u64::from(width)).div_ceil(8),
                None => types.size_bytes(member.ty).unwrap_or(0),
            };
            let is_bit_field = member.bit_size.is_some();
            return Some(MemberPlace { offset: bits / 8, size, ty: member.ty, is_bit_field });
        }
        if member.name.is_none()
            && let Some(inner) = find_direct(types, member.ty, name, depth + 1)
        {
            return Some(MemberPlace { offset: (bits / 8).checked_add(inner.offset)?, ..inner });
        }
    }
    None
}
