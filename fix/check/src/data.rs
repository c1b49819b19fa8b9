//! Initial data of two object files, equal up to the map.

use crate::dwarf::{Object, Reference, Target};
use crate::error::{Error, Result};
use crate::facts::{Record, Type, TypeId, Variable};
use crate::map::{Pair, TypeMap};
use crate::obligation::{Findings, Kind, Obligation};
use std::collections::BTreeMap;

/// Sections in which the linker and the C library leave objects alone.
const ORDINARY: [&str; 9] =
    [".data", ".bss", ".rodata", ".tdata", ".tbss", ".ldata", ".lbss", ".sdata", ".sbss"];

struct Walk<'a> {
    unit: &'a str,
    old: &'a Object,
    new: &'a Object,
    pair: &'a Pair<'a>,
    variable: String,
    findings: Findings,
}

/// Types within types are not followed further.
const DEPTH: usize = 40;

/// Compares all data of two variants of a unit.
pub fn compare(unit: &str, old: &Object, new: &Object, pair: &Pair<'_>) -> Result<Findings> {
    let mut walk = Walk { unit, old, new, pair, variable: String::new(), findings: Findings::default() };
    let (before, after) = (placed(old), placed(new));
    for (key, variable) in &before {
        let Some(other) = after.get(key) else { return Err(walk.gone(&key.0)) };
        walk.variable.clone_from(&variable.name);
        walk.findings.objects += 1;
        let (Some(one), Some(two)) = (variable.place, other.place) else { continue };
        walk.section(variable, two.0);
        let bytes = (old.facts.bytes(variable.of), new.facts.bytes(other.of));
        walk.other_names(variable, two, bytes.1);
        // An array without an end in its type has it in the symbol.
        let sizes = (size_at(old, one, bytes.0), size_at(new, two, bytes.1));
        walk.value((variable.of, other.of), (one, two), sizes, DEPTH)?;
    }
    if let Some((name, _)) = after.keys().find(|key| !before.contains_key(*key)) {
        return Err(walk.gone(name));
    }
    walk.unnamed_types()?;
    Ok(walk.findings)
}

/// True of data that GCC makes to count execution (`--coverage`): sums of lines and of the flow of control are in them.
fn is_of_coverage(name: &str) -> bool {
    name.starts_with("__gcov") && name.contains('.')
}

/// Variables with a place, by name, function and number among those of that name.
fn placed(object: &Object) -> BTreeMap<(String, (String, usize)), &Variable> {
    let mut found = BTreeMap::new();
    for variable in object.facts.variables.iter().filter(|variable| variable.place.is_some()) {
        let function = variable.function.clone().unwrap_or_default();
        let mut number = 0;
        while found.contains_key(&(variable.name.clone(), (function.clone(), number))) {
            number += 1;
        }
        found.insert((variable.name.clone(), (function, number)), variable);
    }
    found
}

fn size_at(object: &Object, (section, offset): (usize, u64), bytes: u64) -> u64 {
    let symbol = object
        .symbols
        .iter()
        .find(|symbol| symbol.is_data && symbol.section == section && symbol.offset == offset);
    symbol.map_or(bytes, |symbol| symbol.bytes.max(bytes))
}

type Place = (usize, u64);

impl Walk<'_> {
    fn gone(&self, name: &str) -> Error {
        Error::Differs {
            unit: self.unit.into(),
            function: name.into(),
            place: "its data".into(),
            before: "only one variant has this object".into(),
            after: "(nothing)".into(),
        }
    }

    fn differs(&self, before: impl Into<String>, after: impl Into<String>) -> Error {
        Error::Differs {
            unit: self.unit.into(),
            function: self.variable.clone(),
            place: "its data".into(),
            before: before.into(),
            after: after.into(),
        }
    }

    fn add(&mut self, kind: Kind, about: &str, statement: String, rule: Option<&'static str>) {
        self.findings.obligations.push(Obligation {
            unit: self.unit.into(),
            function: self.variable.clone(),
            place: String::new(),
            kind,
            about: about.into(),
            statement,
            rule,
        });
    }

    fn section(&mut self, variable: &Variable, section: usize) {
        let holder =
            self.old.facts.record_of(variable.of).filter(|record| self.pair.holders.contains(&record.name));
        let Some(holder) = holder.map(|record| record.name.clone()) else { return };
        let name = self.new.sections.get(&section).map_or("", |section| section.name.as_str()).to_owned();
        let is_ordinary = |plain: &&str| {
            name == **plain || name.strip_prefix(*plain).is_some_and(|rest| rest.starts_with('.'))
        };
        if !ORDINARY.iter().any(is_ordinary) {
            self.add(Kind::NamedSection, &holder, format!("in section {name}"), None);
        }
    }

    /// An object that has a second symbol may be used by that as another type.
    fn other_names(&mut self, variable: &Variable, (section, start): Place, bytes: u64) {
        let Some(holder) = self.old.facts.record_of(variable.of).map(|record| record.name.clone()) else {
            return;
        };
        if !self.pair.holders.contains(&holder) {
            return;
        }
        let within = start..start.saturating_add(bytes.max(1));
        let is_here = |symbol: &&crate::dwarf::DataSymbol| {
            symbol.is_data && symbol.section == section && within.contains(&symbol.offset)
        };
        let count = self.new.symbols.iter().filter(is_here).count();
        if count > 1 {
            self.add(Kind::TwoTypes, &holder, format!("{count} symbols name it or parts of it"), None);
        }
    }

    fn holds(&self, id: TypeId) -> bool {
        self.old.facts.record_of(id).is_some_and(|record| self.pair.holders.contains(&record.name))
    }

    fn value(
        &mut self,
        of: (TypeId, TypeId),
        at: (Place, Place),
        bytes: (u64, u64),
        depth: usize,
    ) -> Result<()> {
        if !self.holds(of.0) || depth == 0 {
            return match bytes.0 == bytes.1 {
                true => self.bytes(of.0, at, bytes.0),
                false => Err(self.differs(format!("{} bytes", bytes.0), format!("{} bytes", bytes.1))),
            };
        }
        match (self.old.facts.bare(of.0).cloned(), self.new.facts.bare(of.1).cloned()) {
            (Some(Type::Array { of: one, .. }), Some(Type::Array { of: two, .. })) => {
                let strides = (self.old.facts.bytes(one).max(1), self.new.facts.bytes(two).max(1));
                let count = bytes.0 / strides.0;
                if bytes.1 / strides.1 != count {
                    return Err(self
                        .differs(format!("{count} elements"), format!("{} elements", bytes.1 / strides.1)));
                }
                for index in 0..count {
                    let next = ((at.0.0, at.0.1 + index * strides.0), (at.1.0, at.1.1 + index * strides.1));
                    self.value((one, two), next, strides, depth - 1)?;
                }
                Ok(())
            }
            (Some(Type::Record(one)), Some(Type::Record(two))) => {
                let records = (&self.old.facts.records[one], &self.new.facts.records[two]);
                self.record((records.0.clone(), records.1.clone()), at, bytes, depth - 1)
            }
            _ => Err(self.differs("one type", "another type")),
        }
    }

    fn record(
        &mut self,
        (old, new): (Record, Record),
        at: (Place, Place),
        bytes: (u64, u64),
        depth: usize,
    ) -> Result<()> {
        if old.is_union {
            let is_zero = |object: &Object, (section, start): Place, bytes: u64| {
                let section = object.sections.get(&section);
                let range = start as usize..(start + bytes) as usize;
                section
                    .and_then(|section| section.bytes.get(range))
                    .is_none_or(|bytes| bytes.iter().all(|byte| *byte == 0))
                    && section
                        .is_none_or(|section| section.references.range(start..start + bytes).next().is_none())
            };
            if is_zero(self.old, at.0, old.bytes) && is_zero(self.new, at.1, new.bytes) {
                return Ok(());
            }
            return Err(self.differs(
                "a union with values holds a changed type",
                "which of its members they are of is not known",
            ));
        }
        let map = TypeMap::between((&old, &self.old.facts), (&new, &self.new.facts))
            .map_err(|what| self.differs(what, ""))?;
        self.findings.explained += u64::from(!map.is_identity());
        for (moved, member) in map.members.iter().zip(&old.members) {
            let other =
                new.members.iter().find(|other| other.at_bits == moved.after && other.name == member.name);
            let Some(other) = other else { return Err(self.differs(moved.name.clone(), "")) };
            if member.is_bit_field {
                let values = (
                    bits(self.old, at.0, moved.before, moved.bits),
                    bits(self.new, at.1, moved.after, moved.bits),
                );
                if values.0 != values.1 {
                    return Err(
                        self.differs(format!("{} = {:?}", moved.name, values.0), format!("{:?}", values.1))
                    );
                }
                continue;
            }
            let starts = ((at.0.0, at.0.1 + moved.before / 8), (at.1.0, at.1.1 + moved.after / 8));
            // An array at the end reaches to the end of the object.
            let is_open =
                matches!(self.old.facts.bare(member.of), Some(Type::Array { count: None | Some(0), .. }));
            let sizes = match is_open {
                true => (bytes.0.saturating_sub(moved.before / 8), bytes.1.saturating_sub(moved.after / 8)),
                false => (moved.bits / 8, moved.bits / 8),
            };
            let sizes = match is_open {
                false if self.holds(member.of) => {
                    (self.old.facts.bytes(member.of), self.new.facts.bytes(other.of))
                }
                _ => sizes,
            };
            self.value((member.of, other.of), starts, sizes, depth)?;
        }
        Ok(())
    }

    /// Compares bytes of which the map moves none, and what their pointers refer to.
    fn bytes(&mut self, of: TypeId, at: (Place, Place), count: u64) -> Result<()> {
        let (Some(one), Some(two)) = (self.old.sections.get(&at.0.0), self.new.sections.get(&at.1.0)) else {
            return Err(self.differs("a section without data", ""));
        };
        let slice = |bytes: &[u8], start: u64| {
            bytes.get(start as usize..start.saturating_add(count) as usize).map(<[u8]>::to_vec)
        };
        let (Some(before), Some(after)) = (slice(&one.bytes, at.0.1), slice(&two.bytes, at.1.1)) else {
            return Err(self.differs("data outside of its section", ""));
        };
        let within = |section: &crate::dwarf::Section, start: u64| -> Vec<(u64, Reference)> {
            let range = section.references.range(start..start.saturating_add(count));
            range.map(|(offset, reference)| (offset - start, reference.clone())).collect()
        };
        let (pointers, others) = (within(one, at.0.1), within(two, at.1.1));
        if pointers.len() != others.len() {
            return Err(
                self.differs(format!("{} pointers", pointers.len()), format!("{} pointers", others.len()))
            );
        }
        for ((offset, reference), (other_offset, other)) in pointers.iter().zip(&others) {
            if offset != other_offset {
                return Err(
                    self.differs(format!("a pointer at {offset}"), format!("a pointer at {other_offset}"))
                );
            }
            self.reference(reference, other, (of, *offset))?;
        }
        if before == after {
            return Ok(());
        }
        self.numbers(&before, &after)
    }

    /// The type of the pointer at this distance.
    fn pointer(&self, of: TypeId, offset: u64) -> Option<TypeId> {
        let facts = &self.old.facts;
        let (mut of, mut offset) = (of, offset);
        for _ in 0..DEPTH {
            match facts.bare(of)? {
                Type::Array { of: element, .. } => {
                    offset %= facts.bytes(*element).max(1);
                    of = *element;
                }
                Type::Record(record) => {
                    let inside = |member: &&crate::facts::Member| {
                        member.at_bits <= offset * 8 && offset * 8 < member.at_bits + member.bits
                    };
                    let member = facts.records[*record].members.iter().find(inside)?;
                    offset -= member.at_bits / 8;
                    of = member.of;
                }
                Type::Pointer(_) => return Some(of),
                _ => return None,
            }
        }
        None
    }

    /// Numbers in data that the compiler computed from the layout.
    fn numbers(&mut self, before: &[u8], after: &[u8]) -> Result<()> {
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0_i128, |sum, byte| sum << 8 | i128::from(*byte));
        let mut at = 0;
        while at < before.len() {
            if before[at] == after[at] {
                at += 1;
                continue;
            }
            let explained = [8, 4, 2, 1].into_iter().find_map(|width| {
                let start = at - at % width;
                let range = start..start + width;
                let values = (number(before.get(range.clone())?), number(after.get(range)?));
                Some((start + width, values, self.pair.explains(values.0, values.1)?))
            });
            let Some((end, values, record)) = explained else {
                return Err(
                    self.differs(format!("byte {at} is {}", before[at]), format!("it is {}", after[at]))
                );
            };
            self.findings.explained += 1;
            self.add(Kind::Constant, &record, format!("{} becomes {}", values.0, values.1), None);
            at = end;
        }
        Ok(())
    }

    /// Compares what two pointers refer to.
    fn reference(&mut self, old: &Reference, new: &Reference, of: (TypeId, u64)) -> Result<()> {
        let (before, after) = (resolved(self.old, old), resolved(self.new, new));
        if before.name != after.name {
            return Err(self.differs(before.to_text(), after.to_text()));
        }
        let pointer = self.pointer(of.0, of.1).map(|of| self.old.facts.short(of));
        let is_of_object = pointer
            .as_ref()
            .is_some_and(|short| short.is_pointer_to_object() && self.pair.holders.contains(&short.base));
        let own = self.old.facts.function(&before.name).unwrap_or_default();
        let said = pointer.filter(|pointer| pointer.base == "function").unwrap_or_default();
        if let Some(about) = self.pair.misfit(&own, &said) {
            self.add(Kind::ToOtherType, &about, format!("&{} by another type", after.name), None);
        }
        if before.is_code {
            return Ok(());
        }
        let variable = self.old.facts.variables.iter().find(|variable| {
            variable.symbol.as_ref().unwrap_or(&variable.name) == before.name.split('.').next().unwrap_or("")
        });
        let holder = variable.and_then(|variable| self.old.facts.record_of(variable.of));
        let holder = holder
            .filter(|record| self.pair.holders.contains(&record.name))
            .map(|record| record.name.clone());
        let Some(holder) = holder else {
            return match before.offset == after.offset {
                true => Ok(()),
                false => Err(self.differs(before.to_text(), after.to_text())),
            };
        };
        let sizes = (self.old.facts.record(&holder), self.new.facts.record(&holder));
        let sizes = (
            sizes.0.map_or(1, |record| record.bytes.max(1)),
            sizes.1.map_or(1, |record| record.bytes.max(1)),
        );
        let (Ok(one), Ok(two)) = (u64::try_from(before.offset), u64::try_from(after.offset)) else {
            return Err(self.differs(before.to_text(), after.to_text()));
        };
        let rest = one % sizes.0;
        let expected = self.pair.moved(&holder, rest).map(|moved| one / sizes.0 * sizes.1 + moved);
        let is_whole = rest == 0 && two == one / sizes.0 * sizes.1;
        if !is_whole && expected != Some(two) {
            return Err(self.differs(before.to_text(), after.to_text()));
        }
        if !is_whole || !is_of_object && expected != Some(two) {
            self.findings.explained += 1;
            self.add(Kind::MemberAddress, &holder, format!("&{} + {}", after.name, after.offset), None);
        }
        Ok(())
    }

    /// Objects whose types the debug information does not give, such as those that the compiler makes.
    fn unnamed_types(&mut self) -> Result<()> {
        let list = |object: &Object| -> Vec<(String, Place, u64)> {
            let symbols = object.symbols.iter().filter(|symbol| {
                symbol.is_data
                    && !is_of_coverage(&symbol.name)
                    && object.sections.contains_key(&symbol.section)
                    && object.variable_at(symbol.section, symbol.offset).is_none()
            });
            let stem =
                |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').to_owned();
            symbols
                .map(|symbol| (stem(&symbol.name), (symbol.section, symbol.offset), symbol.bytes))
                .collect()
        };
        let (before, after) = (list(self.old), list(self.new));
        let names =
            |list: &[(String, Place, u64)]| list.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>();
        if names(&before) != names(&after) {
            self.variable = "objects of the compiler".into();
            return Err(self.differs(names(&before).join(" "), names(&after).join(" ")));
        }
        for ((name, one, bytes), (_, two, others)) in before.into_iter().zip(after) {
            self.variable = name;
            if bytes != others {
                return Err(self.differs(format!("{bytes} bytes"), format!("{others} bytes")));
            }
            self.bytes(u64::MAX, (one, two), bytes)?;
        }
        Ok(())
    }
}

fn bits(object: &Object, (section, start): Place, at: u64, count: u64) -> Option<u64> {
    let bytes = &object.sections.get(&section)?.bytes;
    (0..count.min(64)).try_fold(0, |value, index| {
        let bit = start * 8 + at + index;
        let byte = bytes.get(usize::try_from(bit / 8).ok()?)?;
        Some(value | u64::from(byte >> (bit % 8) & 1) << index)
    })
}

/// The target of a pointer, in names that both variants share.
struct Resolved {
    name: String,
    offset: i64,
    is_code: bool,
}

impl Resolved {
    fn to_text(&self) -> String {
        format!("&{} + {}", self.name, self.offset)
    }
}

fn resolved(object: &Object, reference: &Reference) -> Resolved {
    let of_symbol = |name: &str, offset| Resolved { name: name.into(), offset, is_code: false };
    let section = match &reference.target {
        Target::Symbol(name) => {
            let is_code = object.symbols.iter().any(|symbol| symbol.name == *name && !symbol.is_data);
            return Resolved { is_code, ..of_symbol(name, reference.addend) };
        }
        Target::Section(section) => *section,
    };
    let offset = u64::try_from(reference.addend).unwrap_or(0);
    let known = object.sections.get(&section);
    if let Some(text) = known.filter(|section| section.name.contains(".str")) {
        let rest = text.bytes.get(offset as usize..).unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        return of_symbol(&format!("\"{}\"", String::from_utf8_lossy(&rest[..end])), 0);
    }
    match object.symbol_at(section, offset) {
        Some(symbol) => {
            let offset = reference.addend - i64::try_from(symbol.offset).unwrap_or(0);
            // A place within a function moves with its code: the dump compares labels.
            let offset = if symbol.is_data { offset } else { 0 };
            let stem = symbol.name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('.');
            Resolved { is_code: !symbol.is_data, ..of_symbol(stem, offset) }
        }
        None => of_symbol(&format!("section {section}"), reference.addend),
    }
}
