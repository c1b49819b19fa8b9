//! The map from the old layout to the new one.

use crate::error::{Error, Result};
use crate::facts::{Facts, Record, Short, UNNAMED};
use std::collections::HashSet;

/// Where one member was and is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Its name; `?N` stands for the N-th member without a name.
    pub name: String,
    /// Its size in bits.
    pub bits: u64,
    /// Its distance from the record's start before, in bits.
    pub before: u64,
    /// The same after.
    pub after: u64,
}

/// One type of the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMap {
    /// The type's name.
    pub name: String,
    /// Its sizes in bytes, before and after.
    pub bytes: (u64, u64),
    /// All members, in the order before.
    pub members: Vec<Moved>,
}

/// The names of members, with numbers for those without one: their text cannot move them past each other unseen, since
/// members within them have names of their own.
fn labels(record: &Record, facts: &Facts) -> Vec<String> {
    let mut unnamed = 0;
    let label = |member: &crate::facts::Member| match &member.name {
        Some(name) => name.clone(),
        None => match facts.record_of(member.of) {
            Some(inner) => format!("?{}", inner.name),
            None => {
                unnamed += 1;
                format!("?{unnamed}")
            }
        },
    };
    record.members.iter().map(label).collect()
}

impl TypeMap {
    /// The map between two descriptions of one type; a sentence where members come, go or change.
    pub fn between(old: (&Record, &Facts), new: (&Record, &Facts)) -> std::result::Result<Self, String> {
        let (old_labels, new_labels) = (labels(old.0, old.1), labels(new.0, new.1));
        let mut members = Vec::new();
        for (label, member) in old_labels.iter().zip(&old.0.members) {
            let at = new_labels.iter().position(|other| other == label);
            let Some(other) = at.map(|at| &new.0.members[at]) else {
                return Err(format!("the member {label} is gone"));
            };
            if other.bits != member.bits || old.1.short(member.of) != new.1.short(other.of) {
                return Err(format!("the member {label} has another type"));
            }
            members.push(Moved {
                name: label.clone(),
                bits: member.bits,
                before: member.at_bits,
                after: other.at_bits,
            });
        }
        // Room between members is new, and no statement that is equal on both sides can name it.
        let has_all = match old.0.is_union {
            true => new_labels.len() == old_labels.len(),
            false => new_labels.len() >= old_labels.len(),
        };
        match has_all && old.0.is_union == new.0.is_union {
            true => Ok(Self { name: old.0.name.clone(), bytes: (old.0.bytes, new.0.bytes), members }),
            false => Err("it has other members".into()),
        }
    }

    /// The layout is the same on both sides.
    pub fn is_identity(&self) -> bool {
        self.bytes.0 == self.bytes.1 && self.members.iter().all(|member| member.before == member.after)
    }
}

/// The map of all changed types.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The types, by name.
    pub types: Vec<TypeMap>,
}

impl Map {
    /// The names of the types.
    pub fn names(&self) -> HashSet<String> {
        self.types.iter().map(|of| of.name.clone()).collect()
    }

    /// Adds the changes that a unit's debug information shows.
    pub fn learn(&mut self, unit: &str, old: &Facts, new: &Facts) -> Result<()> {
        for found in changes(unit, old, new)? {
            match self.types.iter().find(|known| known.name == found.name) {
                Some(known) if *known != found => {
                    return Err(wrong(unit, &found.name, "two units give it different layouts"));
                }
                Some(_) => {}
                None => self.types.push(found),
            }
        }
        self.types.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(())
    }

    /// Compares the map with a unit's debug information; returns the names of the mapped types that the unit has.
    pub fn verify(&self, unit: &str, old: &Facts, new: &Facts) -> Result<HashSet<String>> {
        let found = changes(unit, old, new)?;
        for change in &found {
            match self.types.iter().find(|known| known.name == change.name) {
                Some(known) if known == change => {}
                Some(known) => {
                    let differs = known.members.iter().zip(&change.members).find(|(one, other)| one != other);
                    let what = differs.map_or("its sizes or its members differ".into(), |(said, is)| {
                        format!(
                            "{} is said to go from bit {} to {}, but goes from {} to {}",
                            said.name, said.before, said.after, is.before, is.after
                        )
                    });
                    return Err(wrong(unit, &change.name, &what));
                }
                None => return Err(wrong(unit, &change.name, "its layout changes, and the map lacks it")),
            }
        }
        for known in self.types.iter().filter(|known| !found.iter().any(|change| change.name == known.name)) {
            // Another type of the same name, or the same type where it did not change although it should.
            let Some(record) = old.record(&known.name) else { continue };
            let before: Vec<(u64, u64)> =
                record.members.iter().map(|member| (member.at_bits, member.bits)).collect();
            let said: Vec<(u64, u64)> =
                known.members.iter().map(|member| (member.before, member.bits)).collect();
            if before == said && record.bytes == known.bytes.0 {
                return Err(wrong(unit, &known.name, "it keeps its layout in this unit"));
            }
        }
        Ok(found.into_iter().map(|change| change.name).collect())
    }
}

fn wrong(unit: &str, record: &str, what: &str) -> Error {
    Error::Map { unit: unit.into(), record: record.into(), what: what.into() }
}

/// The types whose layouts differ between both variants of a unit.
fn changes(unit: &str, old: &Facts, new: &Facts) -> Result<Vec<TypeMap>> {
    let mut found: Vec<TypeMap> = Vec::new();
    for record in old.records.iter().filter(|record| !record.name.starts_with(UNNAMED)) {
        let same_name =
            |facts: &Facts| facts.records.iter().filter(|other| other.name == record.name).count();
        let Some(other) = new.record(&record.name) else {
            // The compiler leaves out what nothing uses; code that uses it differs and is found there.
            continue;
        };
        if same_name(old) > 1 || same_name(new) > 1 {
            let layouts = |facts: &Facts| -> Vec<TypeMap> {
                let all = facts.records.iter().filter(|other| other.name == record.name);
                all.filter_map(|one| TypeMap::between((one, facts), (one, facts)).ok()).collect()
            };
            if layouts(old) != layouts(new) {
                return Err(wrong(unit, &record.name, "two types of the unit have this name"));
            }
            continue;
        }
        let map =
            TypeMap::between((record, old), (other, new)).map_err(|what| wrong(unit, &record.name, &what))?;
        if !map.is_identity() {
            found.push(map);
        }
    }
    Ok(found)
}

/// Both variants of a unit's types, which explain how numbers move.
#[derive(Debug)]
pub struct Pair<'a> {
    /// Types before.
    pub old: &'a Facts,
    /// Types after.
    pub new: &'a Facts,
    /// Names of the types that the map changes and that the unit has.
    pub changed: HashSet<String>,
    /// These, and all that hold one of them by value.
    pub holders: HashSet<String>,
    /// Records that lie within a changed one.
    pub parts: HashSet<String>,
    /// Records that hold a pointer to one of all these, or to a function that has to do with one.
    pub carriers: HashSet<String>,
}

impl<'a> Pair<'a> {
    /// A pair for the changed types of a unit.
    pub fn new(old: &'a Facts, new: &'a Facts, changed: HashSet<String>) -> Self {
        let holders = old.holders(&changed);
        let parts = old.parts(&changed);
        let mut pair = Self { old, new, changed, holders, parts, carriers: HashSet::new() };
        let carries = |record: &&Record| {
            record.members.iter().any(|member| {
                let short = new.short(member.of);
                pair.is_address(&short) || pair.is_code(&short)
            })
        };
        let direct = new.records.iter().filter(carries).map(|record| record.name.clone()).collect();
        pair.carriers = new.holders(&direct);
        pair
    }

    /// A changed type, one that holds it, a record within it, or a pointer to one.
    pub fn is_sensitive(&self, short: &Short) -> bool {
        short.is_record && (self.holders.contains(&short.base) || self.parts.contains(&short.base))
    }

    /// A pointer to such a type.
    pub fn is_address(&self, short: &Short) -> bool {
        short.stars > 0 && self.is_sensitive(short)
    }

    /// A pointer to a function that takes or returns such a type.
    pub fn is_code(&self, short: &Short) -> bool {
        self.code_about(short).is_some()
    }

    /// The first such type that a function takes or returns.
    pub fn code_about<'s>(&self, short: &'s Short) -> Option<&'s str> {
        let is_function = short.base == "function" && !short.is_record;
        let mut signature = short.signature().filter(|of| is_function && self.is_sensitive(of));
        signature.next().map(|of| of.base.as_str())
    }

    /// The type in question where a function is called by another type than its own.
    pub fn misfit(&self, own: &Short, said: &Short) -> Option<String> {
        let is_same = own.parameters == said.parameters && own.returned == said.returned;
        let about = self.code_about(own).or_else(|| self.code_about(said)).filter(|_| !is_same);
        about.map(str::to_owned)
    }

    /// Where a byte of a record is after the change.
    pub fn moved(&self, record: &str, byte: u64) -> Option<u64> {
        self.moved_within(record, byte.checked_mul(8)?, 16).map(|bits| bits / 8)
    }

    fn moved_within(&self, name: &str, bit: u64, depth: usize) -> Option<u64> {
        let (old, new) = (self.old.record(name)?, self.new.record(name)?);
        let labels = (labels(old, self.old), labels(new, self.new));
        let inside = |at: u64, bits: u64| at <= bit && bit < at + bits;
        let index = old.members.iter().position(|member| inside(member.at_bits, member.bits));
        let Some(index) = index else {
            // The end of the record, or an array without a size that stands there.
            let last = old.members.iter().zip(&labels.0).find(|(member, _)| member.at_bits == bit);
            let (_, label) = last?;
            let at = labels.1.iter().position(|other| other == label)?;
            return Some(new.members[at].at_bits);
        };
        let member = &old.members[index];
        let other = &new.members[labels.1.iter().position(|other| *other == labels.0[index])?];
        let rest = bit - member.at_bits;
        let inner = self.old.record_of(member.of).filter(|inner| self.holders.contains(&inner.name));
        match inner {
            Some(inner) if depth > 0 => {
                let after = self.new.record(&inner.name)?.bytes * 8;
                let stride = (inner.bytes * 8).max(1);
                let within = self.moved_within(&inner.name, rest % stride, depth - 1)?;
                Some(other.at_bits + rest / stride * after + within)
            }
            _ => Some(other.at_bits + rest),
        }
    }

    /// True when a record moves the byte as `before` to `after`, whole objects further included.
    fn steps(&self, record: &str, before: u64, after: u64) -> bool {
        let (Some(old), Some(new)) = (self.old.record(record), self.new.record(record)) else { return false };
        if old.bytes == 0 {
            return false;
        }
        let count = before / old.bytes;
        let whole = count.saturating_mul(new.bytes);
        let rest = before % old.bytes;
        whole == after && rest == 0 && before > 0
            || self.moved(record, rest).is_some_and(|moved| whole.saturating_add(moved) == after)
            // The bytes from a member to the end.
            || rest > 0
                && self.moved(record, old.bytes - rest).is_some_and(|moved| {
                    whole.saturating_add(new.bytes.saturating_sub(moved)) == after && moved <= new.bytes
                })
    }

    /// The type that explains a number that was `before` and is `after`: an offset, a size, a difference of two
    /// offsets, in bytes or in bits, or the negative of one.
    pub fn explains(&self, before: i128, after: i128) -> Option<String> {
        let signed = |value: i128| match value {
            value if (1 << 63..1 << 64).contains(&value) => value - (1 << 64),
            value if ((1 << 32) - (1 << 20) + 1..1 << 32).contains(&value) => value - (1 << 32),
            other => other,
        };
        let (before, after) = (signed(before), signed(after));
        let mut names: Vec<&String> = self.holders.iter().collect();
        names.sort();
        for name in names {
            for (one, other) in [(before, after), (-before, -after)] {
                if let (Ok(one), Ok(other)) = (u64::try_from(one), u64::try_from(other))
                    && (self.steps(name, one, other)
                        || one % 8 == 0 && other % 8 == 0 && self.steps(name, one / 8, other / 8))
                {
                    return Some(name.clone());
                }
            }
            if self.is_difference(name, before, after) {
                return Some(name.clone());
            }
        }
        None
    }

    /// True when two members, or ends of members, lie `before` bytes apart, and `after` bytes after the change.
    fn is_difference(&self, name: &str, before: i128, after: i128) -> bool {
        let (Some(old), Some(new)) = (self.old.record(name), self.new.record(name)) else { return false };
        let labels = (labels(old, self.old), labels(new, self.new));
        let places: Vec<(i128, i128)> = old
            .members
            .iter()
            .zip(&labels.0)
            .filter_map(|(member, label)| {
                let other = &new.members[labels.1.iter().position(|other| other == label)?];
                Some([
                    (i128::from(member.at_bits / 8), i128::from(other.at_bits / 8)),
                    (
                        i128::from((member.at_bits + member.bits) / 8),
                        i128::from((other.at_bits + other.bits) / 8),
                    ),
                ])
            })
            .flatten()
            .collect();
        let mut pairs = places.iter().flat_map(|one| places.iter().map(move |other| (one, other)));
        places.len() < 2000 && pairs.any(|(one, other)| one.0 - other.0 == before && one.1 - other.1 == after)
    }

    /// The changed type that had a member at this offset which moves, or this size: the number may be a copy of it.
    pub fn was_offset(&self, value: i128) -> Option<String> {
        let value = u64::try_from(value).ok().filter(|value| *value > 0)?;
        let mut names: Vec<&String> = self.changed.iter().collect();
        names.sort();
        names.into_iter().find_map(|name| {
            let (old, new) = (self.old.record(name)?, self.new.record(name)?);
            let moves = |member: &crate::facts::Member| {
                member.at_bits == value * 8 && self.moved(name, value) != Some(value)
            };
            (old.members.iter().any(moves) || old.bytes == value && new.bytes != value).then(|| name.clone())
        })
    }
}
