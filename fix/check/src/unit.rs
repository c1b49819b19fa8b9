//! Whole programs: their units, compared one by one.

use crate::dwarf::Object;
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::gimple::equal::{Explained, Numbered, compare};
use crate::gimple::program::{Program, Unit};
use crate::gimple::{Function, Types, functions, uses};
use crate::map::{Map, Pair};
use crate::obligation::{Findings, Kind, Obligation};
use crate::{data, llvm, two_types};
use std::collections::BTreeMap;

/// Both variants of a unit, as the compiler wrote them.
#[derive(Debug)]
pub enum Forms {
    /// GCC: the dump and the object file, before and after.
    Gimple {
        /// The dumps.
        dumps: (String, String),
        /// The object files.
        objects: (Vec<u8>, Vec<u8>),
    },
    /// LLVM's IR, before and after.
    Llvm(String, String),
}

/// Both variants of a unit, with the SHA-256 of each file.
#[derive(Debug)]
pub struct Variant {
    /// The forms.
    pub forms: Forms,
    /// Hashes before.
    pub before: Vec<String>,
    /// Hashes after.
    pub after: Vec<String>,
}

/// Both variants of a program by unit.
pub type Variants = BTreeMap<String, Variant>;

/// Types of both variants of a unit, with the data of a GIMPLE unit.
enum Read {
    Gimple(Box<(Object, Object)>),
    Llvm(Box<(Facts, Facts)>),
}

impl Read {
    fn facts(&self) -> (&Facts, &Facts) {
        match self {
            Self::Gimple(objects) => (&objects.0.facts, &objects.1.facts),
            Self::Llvm(facts) => (&facts.0, &facts.1),
        }
    }
}

fn read(variants: &Variants) -> Result<BTreeMap<&str, Read>> {
    let of = |(name, both): (&'_ String, &Variant)| match &both.forms {
        Forms::Gimple { objects, .. } => {
            Ok(Read::Gimple(Box::new((Object::read(name, &objects.0)?, Object::read(name, &objects.1)?))))
        }
        Forms::Llvm(old, new) => {
            Ok(Read::Llvm(Box::new((llvm::metadata::facts(old), llvm::metadata::facts(new)))))
        }
    };
    variants.iter().map(|entry| Ok((entry.0.as_str(), of(entry)?))).collect()
}

/// The map that the debug information of all units shows.
pub fn map_of(variants: &Variants) -> Result<Map> {
    let mut map = Map::default();
    for (name, unit) in read(variants)? {
        let (old, new) = unit.facts();
        map.learn(name, old, new)?;
    }
    Ok(map)
}

/// Shows that both variants are equal up to the map, and lists what remains.
pub fn check(variants: &Variants, map: &Map) -> Result<Findings> {
    let read = read(variants)?;
    let mut pairs = BTreeMap::new();
    for (name, unit) in &read {
        let (old, new) = unit.facts();
        let mut changed = map.verify(name, old, new)?;
        // Where a unit does not know a type, functions of others may still hand it an address.
        changed.extend(map.names().into_iter().filter(|known| old.record(known).is_none()));
        pairs.insert(*name, Pair::new(old, new, changed));
    }
    if let Some(unused) = map.types.iter().find(|of| {
        !pairs.values().any(|pair| pair.changed.contains(&of.name) && pair.old.record(&of.name).is_some())
    }) {
        let what = "no unit has such a type that changes".into();
        return Err(Error::Map { unit: "the program".into(), record: unused.name.clone(), what });
    }
    let mut findings = Findings::default();
    let mut units = Vec::new();
    let mut explained: Vec<(&str, Vec<Vec<Explained>>)> = Vec::new();
    let mut llvm_units = Vec::new();
    for (name, Variant { forms, .. }) in variants {
        let pair = &pairs[name.as_str()];
        match (forms, &read[name.as_str()]) {
            (Forms::Gimple { dumps, .. }, Read::Gimple(objects)) => {
                let (old, new) = (functions(name, &dumps.0)?, functions(name, &dumps.1)?);
                explained.push((name, equal(name, &old, &new, pair)?));
                findings.obligations.extend(unread_code(name, &new, &objects.1, pair));
                units.push(Unit::new(name, new, Types::new(&objects.1.facts)));
                findings.add(data::compare(name, &objects.0, &objects.1, pair)?);
            }
            (Forms::Llvm(old, new), _) => llvm_units.push(llvm::Unit::read(name, old, new, pair)?),
            (Forms::Gimple { .. }, Read::Llvm(_)) => {}
        }
    }
    let program = Program::new(units);
    for (number, (name, explained)) in explained.iter().enumerate() {
        findings.add(uses::look(&program, number, &pairs[name], explained));
    }
    findings.add(llvm::check(&llvm_units));
    findings.obligations.extend(two_types::symbols(&pairs));
    findings.obligations.extend(two_types::records(&pairs));
    open_stepped(&mut findings, &pairs);
    findings.obligations.sort();
    findings.obligations.dedup();
    Ok(findings)
}

fn equal<'a>(
    unit: &str,
    old: &[Function<'a>],
    new: &[Function<'a>],
    pair: &Pair<'_>,
) -> Result<Vec<Vec<Explained>>> {
    let mut numbered = Numbered::default();
    let names =
        |functions: &[Function<'a>]| functions.iter().map(|function| function.name).collect::<Vec<_>>();
    if names(old) != names(new) {
        return Err(Error::Unreadable {
            unit: unit.into(),
            what: "the variants have different functions".into(),
        });
    }
    old.iter().zip(new).map(|functions| compare(unit, functions, &mut numbered, pair)).collect()
}

/// A pointer to a record within a changed type that reaches the next one may leave its member.
fn open_stepped(findings: &mut Findings, pairs: &BTreeMap<&str, Pair<'_>>) {
    let is_loose = |obligation: &Obligation| {
        let facts = pairs.get(obligation.unit.as_str())?.new;
        let (record, member) = obligation.about.rsplit_once('.')?;
        let (member, _) = facts.member(facts.record(record)?, member)?;
        let short = facts.short(member.of);
        Some(short.dimensions == 0 && findings.stepped.contains(&short.base))
    };
    let is_loose = |obligation: &Obligation| {
        obligation.rule == Some("struct-member") && is_loose(obligation).unwrap_or(true)
    };
    let loose: Vec<usize> =
        (0..findings.obligations.len()).filter(|index| is_loose(&findings.obligations[*index])).collect();
    for index in loose {
        findings.obligations[index].rule = None;
    }
}

/// Code of an object file that its dump does not show: assembler outside of functions.
fn unread_code(
    unit: &str,
    functions: &[Function<'_>],
    object: &Object,
    pair: &Pair<'_>,
) -> Option<Obligation> {
    let is_shown = |name: &str| {
        let stem = name.split('.').next().unwrap_or(name);
        functions.iter().any(|function| function.name == name || function.name == stem)
    };
    let label = object.labels.iter().find(|label| !is_shown(label))?;
    (!pair.changed.is_empty()).then(|| Obligation {
        unit: unit.into(),
        function: label.clone(),
        place: String::new(),
        kind: Kind::Assembler,
        about: String::new(),
        statement: format!("{label} names code that no function of the unit is"),
        rule: None,
    })
}
