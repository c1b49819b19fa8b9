//! The facts about structs of C that an edit needs which removes a member or gives it a smaller type: each use of a
//! member, the values that may be written to it, and each use of an object for which its size or its bytes count.

use lineup_model::object_uses::{HeldPart, MemberUse, MemberValues};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A use that keeps members as they are declared.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MemberHold {
    /// The member; `None` for all.
    pub member: Option<String>,
    /// The part that is kept.
    pub part: HeldPart,
    /// Why, as a part of a sentence.
    pub reason: String,
    /// File, relative to the source folder where it lies in it.
    pub path: String,
    /// Line, from 1.
    pub line: u32,
}

/// The facts about one struct.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct MemberFacts {
    /// Its members are kept for these reasons.
    pub holds: BTreeSet<MemberHold>,
    /// Every use of a member.
    pub uses: BTreeSet<MemberUse>,
    /// The values of its integers.
    pub values: BTreeMap<String, MemberValues>,
}

/// A range of integers, both ends included.
pub(crate) type Range = (i128, i128);

/// The values that an expression may have.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Bound {
    /// Values that the expression shows; `None` where it only copies others.
    own: Option<Range>,
    /// Copied values: the source, with the range of its type.
    copied: BTreeMap<String, Range>,
}

impl Bound {
    pub(crate) fn within(range: Range) -> Bound {
        Bound { own: Some(range), copied: BTreeMap::new() }
    }

    pub(crate) fn copy_of(source: String, range: Range) -> Bound {
        Bound { own: None, copied: BTreeMap::from([(source, range)]) }
    }

    /// Either value.
    pub(crate) fn or(mut self, other: Bound) -> Bound {
        self.own = joined(self.own, other.own);
        for (source, range) in other.copied {
            let known = self.copied.entry(source).or_insert(range);
            *known = (known.0.min(range.0), known.1.max(range.1));
        }
        self
    }

    /// The range of all values that types and constants allow.
    pub(crate) fn widest(&self) -> Range {
        self.copied.values().fold(self.own, |all, range| joined(all, Some(*range))).unwrap_or((0, 0))
    }

    /// The range, where sources have these values.
    fn settled(&self, known: &BTreeMap<&str, Range>) -> Option<Range> {
        let copied = |(source, range): (&String, &Range)| match known.get(source.as_str()) {
            Some(found) if found.0 >= range.0 && found.1 <= range.1 => *found,
            _ => *range,
        };
        self.copied.iter().map(copied).fold(self.own, |all, range| joined(all, Some(range)))
    }
}

fn joined(one: Option<Range>, other: Option<Range>) -> Option<Range> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// The name of a variable or function in libclang's name of it, or of its parameters.
pub(crate) fn last_name(source: &str) -> &str {
    source.rsplit('@').next().unwrap_or(source).split(['#', '(']).next().unwrap_or(source)
}

/// The greatest number with as many bits as this one.
pub(crate) fn mask_of(value: i128) -> i128 {
    match u128::try_from(value) {
        Ok(value) => i128::MAX.checked_shr(value.leading_zeros().saturating_sub(1)).unwrap_or(0),
        Err(_) => i128::MAX,
    }
}

/// The effect of a write on the value that was there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Change {
    /// Another takes its place.
    Replaced,
    /// Bits of another are joined with it: `|=`, `^=`.
    Joined,
    /// It loses bits, and can only grow where it is negative: `&=`. The bound is that of its type.
    Masked,
}

/// A value that is written to a variable, a parameter, a member, or given back by a function.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct WrittenValue {
    pub(crate) bound: Bound,
    pub(crate) change: Change,
    pub(crate) path: Arc<str>,
    pub(crate) line: u32,
}

/// An integer member of a struct.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct IntegerMember {
    /// libclang's name of the struct.
    pub(crate) class: String,
    pub(crate) name: String,
    /// The range of its type.
    pub(crate) range: Range,
}

/// The facts of one unit, or of the whole program.
#[derive(Clone, Default, Debug)]
pub(crate) struct AllMemberFacts {
    /// Holds and uses, by libclang's name of the struct.
    pub(crate) classes: BTreeMap<String, MemberFacts>,
    /// The integers of structs, by libclang's name.
    pub(crate) members: BTreeMap<String, IntegerMember>,
    /// Variables, parameters and results of functions whose writes are all seen.
    pub(crate) followed: BTreeSet<String>,
    /// Sources that are written in a way that shows no bound, with the first place.
    pub(crate) unbounded: BTreeMap<String, (Arc<str>, u32)>,
    /// The values that are written to each source.
    pub(crate) written: BTreeMap<String, BTreeSet<WrittenValue>>,
    /// Functions that code in other languages or outside of the program may call.
    pub(crate) exported: BTreeSet<String>,
    /// The program looks functions up by name, or loads code that does.
    pub(crate) looks_up: bool,
}

impl AllMemberFacts {
    pub(crate) fn add(&mut self, other: AllMemberFacts) {
        for (class, facts) in other.classes {
            let known = self.classes.entry(class).or_default();
            known.holds.extend(facts.holds);
            known.uses.extend(facts.uses);
        }
        self.members.extend(other.members);
        self.followed.extend(other.followed);
        for (source, at) in other.unbounded {
            self.unbounded.entry(source).or_insert(at);
        }
        for (source, values) in other.written {
            self.written.entry(source).or_default().extend(values);
        }
        self.exported.extend(other.exported);
        self.looks_up |= other.looks_up;
    }

    /// Works out the values of every member whose struct is not `opaque`: bytes of those may come from elsewhere.
    /// Code that libclang does not show changes the `hidden` names.
    pub(crate) fn settle(
        &mut self,
        has_other_callers: bool,
        (opaque, hidden): (&BTreeSet<&str>, &BTreeSet<String>),
        relative: impl Fn(&str) -> String,
    ) {
        let is_whole = |class: &str| {
            let holds = self.classes.get(class).map(|facts| &facts.holds);
            !opaque.contains(class)
                && !holds
                    .into_iter()
                    .flatten()
                    .any(|hold| hold.member.is_none() && hold.part != HeldPart::Presence)
        };
        let is_called_from_outside = |source: &str| {
            let function = source.split(['#', '(']).next().unwrap_or(source);
            let is_called = self.written.contains_key(source) && !has_other_callers && !self.looks_up;
            source.contains('#') && self.exported.contains(function) && !is_called
        };
        let members = self.members.iter().filter(|(_, member)| is_whole(&member.class)).map(|(key, _)| key);
        let sources = self.followed.iter().filter(|source| !is_called_from_outside(source)).chain(members);
        let is_bounded = |source: &&String| {
            let all = source.find('#').map(|at| &source[..=at]);
            !self.unbounded.contains_key(*source)
                && !all.is_some_and(|all| self.unbounded.contains_key(all))
                && !hidden.contains(last_name(source))
        };
        let sources: Vec<&String> = sources.filter(is_bounded).collect();
        // Memory that no statement wrote is zero, or nothing may be known of it.
        let mut known: BTreeMap<&str, Range> = sources.iter().map(|key| (key.as_str(), (0, 0))).collect();
        loop {
            let mut has_grown = false;
            for source in &sources {
                let before = known[source.as_str()];
                let mut range = before;
                let written = || self.written.get(*source).into_iter().flatten();
                for one in written() {
                    if one.change == Change::Masked && range.0 >= 0 {
                        continue;
                    }
                    range = joined(Some(range), one.bound.settled(&known)).unwrap_or(range);
                }
                if written().any(|one| one.change == Change::Joined) {
                    let mask = mask_of(range.1).max(mask_of((-1 - range.0).max(0)));
                    range = (if range.0 < 0 { -1 - mask } else { 0 }, mask);
                }
                has_grown |= range != before;
                known.insert(source, range);
            }
            if !has_grown {
                break;
            }
        }
        let mut values: Vec<(String, String, MemberValues)> = Vec::new();
        for (key, member) in &self.members {
            let range = known.get(key.as_str()).copied().unwrap_or(member.range);
            let end =
                |value: i128| i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX });
            let reach = |written: &&WrittenValue| {
                written.bound.settled(&known).map_or(0, |range| range.1.max(-range.0))
            };
            let widest = self.written.get(key).into_iter().flatten().max_by_key(reach);
            let widest = widest.map(|written| (&written.path, written.line));
            let widest = self.unbounded.get(key).map(|(path, line)| (path, *line)).or(widest);
            let values_of = MemberValues {
                low: end(range.0),
                high: end(range.1),
                widest: widest.map(|(path, line)| (relative(path), line)),
            };
            values.push((member.class.clone(), member.name.clone(), values_of));
        }
        for (class, name, values) in values {
            self.classes.entry(class).or_default().values.insert(name, values);
        }
    }

    /// The facts about a struct, with the paths that `relative` gives.
    pub(crate) fn of(&self, class: &str, relative: impl Fn(&str) -> String) -> Option<MemberFacts> {
        let facts = self.classes.get(class)?.clone();
        let holds = facts.holds.into_iter().map(|hold| MemberHold { path: relative(&hold.path), ..hold });
        let uses = facts.uses.into_iter().map(|used| MemberUse { path: relative(&used.path), ..used });
        Some(MemberFacts { holds: holds.collect(), uses: uses.collect(), values: facts.values })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_has_the_bits_of_a_number() {
        assert_eq!([0, 1, 2, 5, 255, 256].map(mask_of), [0, 1, 3, 7, 255, 511]);
    }
}
