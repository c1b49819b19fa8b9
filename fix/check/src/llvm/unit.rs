//! The two variants of a unit, compared.

use super::equal::{Comparison, Difference};
use super::ir_module::{Module, module};
use super::metadata;
use super::types::record_name;
use crate::error::{Error, Result};
use crate::map::Pair;
use crate::obligation::Findings;
use std::collections::HashMap;

/// A unit whose variants are equal.
#[derive(Debug)]
pub struct Unit<'a> {
    pub(super) name: &'a str,
    pub(super) module: Module<'a>,
    pub(super) pair: &'a Pair<'a>,
    pub(super) places: HashMap<u64, String>,
    /// By function: what differs, as the map says.
    pub(super) differences: Vec<Vec<Difference>>,
    /// The same of each global object.
    pub(super) data: Vec<Vec<Difference>>,
    pub(super) findings: Findings,
}

impl<'a> Unit<'a> {
    /// The changed type of a global object that a text of assembler names.
    pub fn named_in_text(&self, text: &str) -> Option<&'a str> {
        let names = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        self.module.globals.iter().find_map(|line| {
            let name = line.words.first()?.trim_start_matches('@');
            let mut records = line.words.iter().filter_map(|word| record_name(word));
            let record = records.find(|record| self.pair.holders.contains(*record))?;
            names.clone().any(|other| other == name).then_some(record)
        })
    }

    /// Compares both variants of a unit.
    pub fn read(name: &'a str, old: &'a str, new: &'a str, pair: &'a Pair<'a>) -> Result<Self> {
        let (before, after) = (module(name, old)?, module(name, new)?);
        let is_opaque = |module: &Module<'_>| {
            let lines = module.functions.iter().flat_map(|function| &function.lines);
            lines.chain(&module.globals).any(|line| line.words.contains(&"ptr"))
        };
        if is_opaque(&after) {
            let what =
                "pointers without types are not covered: use -Xclang -no-opaque-pointers or clang 14".into();
            return Err(Error::Unreadable { unit: name.into(), what });
        }
        let comparison = Comparison::new(name, &before, &after, pair);
        comparison.definitions()?;
        comparison.rest()?;
        let data = comparison.globals()?;
        let differences = comparison.functions()?;
        let count = |of: &[Vec<Difference>]| of.iter().map(Vec::len).sum::<usize>() as u64;
        let findings = Findings {
            functions: differences.len() as u64,
            objects: data.len() as u64,
            explained: count(&differences) + count(&data),
            ..Findings::default()
        };
        let places = metadata::places(new);
        Ok(Self { name, module: after, pair, places, differences, data, findings })
    }
}
