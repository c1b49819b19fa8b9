//! Counts by function and source line, as Clang's `-fprofile-sample-use` reads them.
//!
//! The format is the text form of LLVM's sample profiles. A function's line has its name, the sum of its counts and the
//! number of its entries; below it stand lines with the distance from the function's first line, a discriminator that
//! distinguishes blocks of one line, and the count. Copies that were inlined are nested where their call stands. As in
//! LLVM's own tools, a line's count is the largest of its instructions'.
//!
//! Only the compiler that wrote a discriminator can interpret it, so the profile holds only code that Clang compiled.

use super::discriminator;
use super::samples::{LineLocation, Samples};
use crate::code::Code;
use crate::error::CodeError;
use crate::flow::block_graph::decoded;
use crate::flow::function::Arc;
use lineup_debuginfo::DebugInfo;
use lineup_model::program::{Function as Described, Inlined};
use lineup_model::types::SourceLocation;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Copies nested deeper than this are skipped.
const MOST_NESTED: usize = 64;

/// Counts by function and line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampleProfile {
    /// The profile that Clang reads.
    pub text: String,
    /// Functions in it.
    pub functions: usize,
    /// Functions that were executed and that Clang did not compile, or that have no debug lines.
    pub not_by_clang: usize,
    /// Names that several executed functions have. Clang could not distinguish them: none of them is in the profile.
    pub ambiguous: Vec<String>,
}

/// The sample profile of a file's functions.
///
/// # Errors
/// When no function that was executed was compiled by Clang with debug lines.
pub fn sample_profile(code: &Code<'_>) -> Result<SampleProfile, CodeError> {
    let mut starts = code.functions.iter().map(|function| function.addresses.start);
    let described = code.debug.functions_covering(&mut starts);
    let names: BTreeMap<u64, &str> =
        described.iter().filter_map(|function| Some((function.entry()?, linker_name(function)))).collect();
    let counted = Counted::of(code, &names);
    let mut all: BTreeMap<&str, (&SourceLocation, Samples)> = BTreeMap::new();
    let mut ambiguous: BTreeSet<&str> = BTreeSet::new();
    let mut told: BTreeSet<u64> = BTreeSet::new();
    for function in &described {
        let Some(declared_at) = function.declared_at.as_ref().filter(|_| is_by_clang(code.debug, function))
        else {
            continue;
        };
        let name = linker_name(function);
        let (known, samples) = all.entry(name).or_insert_with(|| (declared_at, Samples::default()));
        if *known != declared_at {
            ambiguous.insert(name);
        }
        counted.add(function, declared_at, samples);
        told.extend(function.ranges.iter().map(|range| range.start));
    }
    all.retain(|name, (_, samples)| samples.total() > 0 && !ambiguous.contains(name));
    if all.is_empty() && ambiguous.is_empty() {
        return Err(CodeError::NotByClang);
    }
    let not_by_clang = code.functions.iter().filter(|function| !told.contains(&function.addresses.start));
    Ok(SampleProfile {
        functions: all.len(),
        not_by_clang: not_by_clang.count(),
        ambiguous: ambiguous.into_iter().map(str::to_owned).collect(),
        text: all.into_iter().map(|(name, (_, samples))| samples.text(name)).collect(),
    })
}

fn linker_name(function: &Described) -> &str {
    function.linkage_name.as_deref().unwrap_or(&function.name)
}

fn is_by_clang(debug: &DebugInfo, function: &Described) -> bool {
    let compiler = function.entry().and_then(|entry| debug.compiler_of(entry));
    compiler.is_some_and(|name| name.contains("clang version"))
}

/// Lookup tables for assigning counts to lines.
struct Counted<'c, 'd> {
    code: &'c Code<'d>,
    /// Entries of functions, by their first address.
    entries: BTreeMap<u64, u64>,
    /// Calls by the address of their instruction, with the name of the called function.
    calls: BTreeMap<u64, (String, u64)>,
}

impl<'c, 'd> Counted<'c, 'd> {
    fn of(code: &'c Code<'d>, names: &BTreeMap<u64, &str>) -> Self {
        let name = |arc: &Arc| {
            let name = names.get(&arc.target).copied().or_else(|| code.debug.plt_name(arc.target))?;
            Some((arc.from, (name.to_owned(), arc.times)))
        };
        let functions = || code.functions.iter();
        Counted {
            code,
            entries: functions().map(|function| (function.addresses.start, function.entries)).collect(),
            calls: functions().flat_map(|function| &function.calls).filter_map(name).collect(),
        }
    }

    /// Adds a function's counts.
    fn add(&self, function: &Described, declared_at: &SourceLocation, to: &mut Samples) {
        let entries = function.entry().and_then(|entry| self.entries.get(&entry));
        to.entered(entries.copied().unwrap_or(0));
        for range in &function.ranges {
            self.add_range(function, declared_at, range, to);
        }
    }

    fn add_range(
        &self,
        function: &Described,
        declared_at: &SourceLocation,
        range: &Range<u64>,
        to: &mut Samples,
    ) {
        let Some(bytes) = self.code.debug.code(range.clone()) else { return };
        let Some((instructions, counts)) = decoded(range, bytes, &self.code.executed) else { return };
        for (instruction, times) in instructions.iter().zip(counts) {
            let at = instruction.ip();
            let Some(row) = self.code.debug.code_line_of(at) else { continue };
            let copies: Vec<&Inlined> = function
                .inlined
                .iter()
                .filter(|copy| copy.ranges.iter().any(|own| own.contains(&at)))
                .collect();
            if copies.len() > MOST_NESTED {
                continue;
            }
            let Some((samples, first)) = innermost(to, declared_at, &copies) else { continue };
            let times = times.saturating_mul(discriminator::copies(row.discriminator));
            let place = LineLocation::new(row.at.line, first, row.discriminator);
            samples.executed(place, times);
            if let Some((callee, times)) = self.calls.get(&at) {
                samples.called(place, callee, *times);
            }
        }
    }
}

/// The counts of the innermost of nested copies, outermost first, and the line that its function begins at. `None` when
/// debug information does not say where one of them was called.
fn innermost<'s>(
    outermost: &'s mut Samples,
    declared_at: &SourceLocation,
    copies: &[&Inlined],
) -> Option<(&'s mut Samples, u32)> {
    let (mut samples, mut first) = (outermost, declared_at.line);
    for copy in copies {
        let place = LineLocation::new(copy.called_at.as_ref()?.line, first, copy.call_discriminator);
        let name = copy.linkage_name.as_deref().unwrap_or(&copy.name);
        samples = samples.copy(place, name);
        first = copy.declared_at.as_ref()?.line;
    }
    Some((samples, first))
}
