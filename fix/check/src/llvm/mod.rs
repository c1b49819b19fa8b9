//! Programs as LLVM's IR before any pass, with typed pointers.

pub mod equal;
pub mod lexer;
pub mod metadata;
pub mod types;
pub mod uses;

use crate::error::{Error, Result};
use crate::map::Pair;
use crate::obligation::{Findings, Kind, Obligation};
use equal::{Comparison, Difference};
use lexer::words;
use std::collections::{HashMap, HashSet};
use types::{Definitions, record_name};

/// An instruction or another line.
#[derive(Debug)]
pub struct Line<'a> {
    /// Its text.
    pub text: &'a str,
    /// Its words, metadata left out.
    pub words: Vec<&'a str>,
    /// Number of its place.
    pub place: Option<u64>,
}

/// A function.
#[derive(Debug)]
pub struct Function<'a> {
    /// Its name with `@`.
    pub name: &'a str,
    /// The line with its parameters.
    pub head: Line<'a>,
    /// Its instructions.
    pub lines: Vec<Line<'a>>,
}

/// A module's parts.
#[derive(Debug, Default)]
pub struct Module<'a> {
    /// Its functions.
    pub functions: Vec<Function<'a>>,
    /// Its global objects.
    pub globals: Vec<Line<'a>>,
    /// Everything else that must be equal.
    pub rest: Vec<Line<'a>>,
    /// Named types.
    pub definitions: Definitions<'a>,
}

fn line(text: &str) -> Line<'_> {
    let mut words = words(text);
    let place =
        words.windows(2).find(|two| two[0] == "!dbg").and_then(|two| two[1].strip_prefix('!')?.parse().ok());
    // Attachments stand at the end: `, !dbg !57, !tbaa !12`, at a function's head without a comma.
    let attached = words.windows(2).position(|two| {
        two[0] == "," && two[1].starts_with('!') || two[0].starts_with("!dbg") && two[1].starts_with('!')
    });
    if let Some(at) = attached {
        let has_brace = words.last() == Some(&"{");
        words.truncate(at);
        words.extend(has_brace.then_some("{"));
    }
    Line { text, words, place }
}

/// Reads a module.
pub fn module<'a>(unit: &str, text: &'a str) -> Result<Module<'a>> {
    let unreadable = |what: &str| Error::Unreadable { unit: unit.into(), what: what.into() };
    let mut module = Module { definitions: Definitions::read(text), ..Module::default() };
    let mut is_open = false;
    for text in text.lines() {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.starts_with([';', '!']) || text.starts_with("source_filename") {
            continue;
        }
        if is_open {
            if text == "}" {
                is_open = false;
            } else if !trimmed.contains("@llvm.dbg.")
                && let Some(function) = module.functions.last_mut()
            {
                let next = line(trimmed);
                // Long switches and calls go on in the next line.
                let goes_on = function.lines.last().is_some_and(|last| {
                    lexer::group(&last.words[last.words.iter().position(|word| *word == "[").unwrap_or(0)..])
                        .is_none()
                        && last.words.first() == Some(&"switch")
                });
                match function.lines.last_mut().filter(|_| goes_on) {
                    Some(last) => last.words.extend(next.words),
                    None => function.lines.push(next),
                }
            }
        } else if text.starts_with("define") {
            let head = line(text);
            let name = head.words.iter().find(|word| word.starts_with('@'));
            let name = name.copied().ok_or_else(|| unreadable("a function without a name"))?;
            module.functions.push(Function { name, head, lines: Vec::new() });
            is_open = true;
        } else if text.starts_with('@') {
            module.globals.push(line(text));
        } else if !text.starts_with('%') {
            module.rest.push(line(text));
        }
    }
    match is_open {
        true => Err(unreadable("it ends within a function")),
        false => Ok(module),
    }
}

/// A unit whose variants are equal.
#[derive(Debug)]
pub struct Unit<'a> {
    name: &'a str,
    module: Module<'a>,
    pair: &'a Pair<'a>,
    places: HashMap<u64, String>,
    /// By function: what differs, as the map says.
    differences: Vec<Vec<Difference>>,
    /// The same of each global object.
    data: Vec<Vec<Difference>>,
    findings: Findings,
}

impl<'a> Unit<'a> {
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
    for unit in units {
        findings.add(unit.findings.clone());
        findings.add(uses::look(unit, &defined, &mentioned));
    }
    findings
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
