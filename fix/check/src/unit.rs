//! Whole programs: their units, compared one by one.

use crate::dwarf::Object;
use crate::error::{Error, Result};
use crate::facts::{Facts, UNNAMED};
use crate::gimple::equal::{Explained, Numbered, compare};
use crate::gimple::program::{Program, Unit};
use crate::gimple::{Function, Types, functions, uses};
use crate::map::{Map, Pair};
use crate::obligation::{Findings, Kind, Obligation};
use crate::{data, llvm};
use std::collections::{BTreeMap, HashMap};

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
    findings.obligations.extend(two_types(&pairs));
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

/// Symbols that are of a changed type in one unit and of another type elsewhere.
fn two_types(pairs: &BTreeMap<&str, Pair<'_>>) -> Vec<Obligation> {
    let mut types: HashMap<&str, Vec<(&str, String, bool)>> = HashMap::new();
    for (unit, pair) in pairs {
        for variable in pair.new.variables.iter().filter(|variable| variable.function.is_none()) {
            let symbol = variable.symbol.as_deref().unwrap_or(&variable.name);
            let short = pair.new.short(variable.of);
            let is_changed = short.is_record && pair.holders.contains(&short.base);
            // Units number their types without a name by themselves.
            let base = match short.base.starts_with(UNNAMED) {
                true => UNNAMED.into(),
                false => short.base,
            };
            types.entry(symbol).or_default().push((unit, base, is_changed));
        }
    }
    let mut found = Vec::new();
    for (symbol, uses) in types {
        let changed = uses.iter().find(|(.., is_changed)| *is_changed);
        let Some((_, base, _)) = changed else { continue };
        for (unit, other, _) in uses.iter().filter(|(_, other, _)| other != base) {
            found.push(Obligation {
                unit: (*unit).into(),
                function: symbol.into(),
                place: String::new(),
                kind: Kind::TwoTypes,
                about: base.clone(),
                statement: format!("{symbol} is {other} here"),
                rule: None,
            });
        }
    }
    found
}
