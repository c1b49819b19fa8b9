//! A profile for BOLT: how often each way between blocks and each call was taken.
//!
//! The format is that of `llvm-bolt -data` (`llvm/docs` calls it fdata): a line for each way, with `1`, the function
//! and the hexadecimal offset in it where the way begins, the same where it ends, mispredictions and times.
//! Mispredictions are not counted and are 0. `0 [unknown] 0` stands for the callers of functions that nothing names:
//! through pointers, or from other files.

use crate::code::Code;
use crate::flow::function::{Edge, Way};
use crate::orders::cold_order::Fetched;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The profile of a file's functions.
pub fn bolt_profile(code: &Code<'_>) -> String {
    profile(code, None)
}

/// The same, but limited to the fetched code in functions that recorded calls went into: BOLT parts the rest as code
/// that never runs.
pub fn cold_profile(code: &Code<'_>, fetched: &Fetched) -> String {
    profile(code, Some(fetched))
}

fn profile(code: &Code<'_>, fetched: Option<&Fetched>) -> String {
    let names = crate::profiles::bolt_names::bolt_names(code.debug.symbols());
    let mut out = String::new();
    let mut direct: BTreeMap<u64, u64> = BTreeMap::new();
    for function in &code.functions {
        let Some(name) = names.get(&function.addresses.start) else { continue };
        let name = escaped(name);
        let offset = |address: u64| address - function.addresses.start;
        let fetched = fetched.filter(|fetched| fetched.has(function));
        let is_wanted = |places: &[u64]| fetched.is_none_or(|fetched| fetched.has_all(places));
        let edges = function.edges.iter().filter(|edge| is_told(edge) && is_wanted(&[edge.from, edge.to]));
        for edge in edges {
            let (from, to) = (offset(edge.from), offset(edge.to));
            let _ = writeln!(out, "1 {name} {from:x} 1 {name} {to:x} 0 {}", edge.taken.times);
        }
        for call in function.calls.iter().filter(|call| is_wanted(&[call.from])) {
            let Some(target) = target(code, &names, call.target) else { continue };
            *direct.entry(call.target).or_default() += call.times;
            let _ = writeln!(out, "1 {name} {:x} 1 {target} 0 {}", offset(call.from), call.times);
        }
    }
    for function in &code.functions {
        let named = direct.get(&function.addresses.start).copied().unwrap_or(0);
        let unknown = function.entries.saturating_sub(named);
        if let Some(name) = names.get(&function.addresses.start).filter(|_| unknown > 0) {
            let _ = writeln!(out, "0 [unknown] 0 1 {} 0 0 {unknown}", escaped(name));
        }
    }
    out
}

/// False for an estimated edge of an indirect jump, as an interpreter has many. An estimate would join blocks that do
/// not follow each other; BOLT derives the targets' counts from the blocks before them.
fn is_told(edge: &Edge) -> bool {
    edge.way != Way::Anywhere || !edge.taken.is_estimated
}

/// A called place as function and offset.
fn target(code: &Code<'_>, names: &BTreeMap<u64, String>, address: u64) -> Option<String> {
    if let Some(name) = code.debug.plt_name(address) {
        return Some(format!("{}@PLT 0", escaped(name)));
    }
    let (start, name) = names.range(..=address).next_back()?;
    let holds =
        *start == address || code.debug.symbol_at(address).is_some_and(|symbol| symbol.address == *start);
    holds.then(|| format!("{} {:x}", escaped(name), address - start))
}

/// A name as one word: BOLT takes a backslash before characters that would end it.
fn escaped(name: &str) -> String {
    name.replace('\\', "\\\\").replace(' ', "\\ ").replace('\n', "\\\n")
}
