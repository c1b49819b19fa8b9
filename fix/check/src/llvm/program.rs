//! All units of a program: the uses of changed types, and objects of two types.

use super::ir_module::Function;
use super::types::{Definitions, record_name};
use super::unit::Unit;
use super::uses;
use crate::obligation::{Findings, Kind, Obligation};
use std::collections::{HashMap, HashSet};

/// Looks at all units of a program; what they share is the names of functions.
pub fn check(units: &[Unit<'_>]) -> Findings {
    let defined: HashMap<&str, &Function<'_>> = units
        .iter()
        .flat_map(|unit| &unit.module.functions)
        .map(|function| (function.name, function))
        .collect();
    let mut mentioned = HashSet::new();
    for unit in units {
        for function in &unit.module.functions {
            let names = function.lines.iter().flat_map(|line| &line.words);
            mentioned.extend(names.filter(|word| word.starts_with('@') && **word != function.name).copied());
        }
        mentioned.extend(unit.module.globals.iter().flat_map(|line| line.words.iter().skip(1)).copied());
    }
    let mut findings = Findings::default();
    findings.obligations.extend(two_types(units));
    findings.obligations.extend(two_definitions(units));
    for unit in units {
        findings.add(unit.findings.clone());
        findings.add(uses::look(unit, &defined, &mentioned));
    }
    findings
}

/// Structs of one name that have other elements in two units, where those of one have to do with a changed type.
fn two_definitions(units: &[Unit<'_>]) -> Vec<Obligation> {
    let mut types: HashMap<&str, Vec<(&Unit<'_>, &[&str])>> = HashMap::new();
    for unit in units {
        for (name, words) in &unit.module.definitions.named {
            if words.first() != Some(&"opaque") {
                types.entry(name).or_default().push((unit, words));
            }
        }
    }
    let mut found = Vec::new();
    for (name, uses) in types {
        let changed = uses.iter().find_map(|(unit, words)| {
            let mut records = words.iter().filter_map(|word| record_name(word));
            Some((records.find(|record| unit.pair.holders.contains(*record))?, words))
        });
        let Some((about, words)) = changed else { continue };
        for (unit, _) in uses.iter().filter(|(_, others)| others != words) {
            found.push(Obligation {
                unit: unit.name.into(),
                function: name.into(),
                place: String::new(),
                kind: Kind::TwoTypes,
                about: about.into(),
                statement: format!("{name} has other elements here"),
                rule: None,
            });
        }
    }
    found
}

/// Objects that are of a changed type in one unit and of another type in another.
fn two_types(units: &[Unit<'_>]) -> Vec<Obligation> {
    let mut types: HashMap<&str, Vec<(&Unit<'_>, Vec<&str>)>> = HashMap::new();
    for unit in units {
        for line in &unit.module.globals {
            let is_own = line.words.iter().any(|word| matches!(*word, "internal" | "private"));
            let start = line.words.iter().position(|word| matches!(*word, "global" | "constant"));
            let (Some(start), false) = (start, is_own) else { continue };
            let rest = &line.words[start + 1..];
            let of = &rest[..Definitions::length(rest).unwrap_or(0).min(rest.len())];
            let records = of.iter().filter_map(|word| record_name(word)).collect();
            types.entry(line.words[0]).or_default().push((unit, records));
        }
    }
    let mut found = Vec::new();
    for (name, uses) in types {
        let changed = uses.iter().find_map(|(unit, records)| {
            records
                .iter()
                .find(|record| unit.pair.holders.contains(**record))
                .map(|record| (*record, records))
        });
        let Some((changed, records)) = changed else { continue };
        for (unit, others) in uses.iter().filter(|(_, others)| others != records) {
            found.push(Obligation {
                unit: unit.name.into(),
                function: name.trim_start_matches('@').into(),
                place: String::new(),
                kind: Kind::TwoTypes,
                about: changed.into(),
                statement: format!("{name} is {} here", others.join(" ")),
                rule: None,
            });
        }
    }
    found
}
