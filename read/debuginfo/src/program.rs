//! Functions, variables and lines of a [`DebugInfo`].

use crate::DebugInfo;
use crate::dwarf::{Catalog, Details, Die, Lines, Named, compiler};
use crate::names::{demangle, is_meant, nearest, spelled};
use lineup_model::program::{CodeLine, Function, Location, Symbol, SymbolKind, Variable};
use lineup_model::types::SourceLocation;
use rayon::prelude::*;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

/// The functions found under a name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FoundFunctions {
    /// These have code of their own. Several when the name is overloaded, static in several files, or
    /// specialised by the compiler.
    OutOfLine(Vec<FoundFunction>),
    /// No code of its own: every call was inlined.
    InlinedEverywhere {
        /// The full name.
        name: String,
        /// Full names of the functions that it was inlined into, sorted.
        callers: Vec<String>,
    },
    /// No such function.
    Unknown {
        /// Similar names, best first.
        near: Vec<String>,
    },
}

/// A function with code of its own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundFunction {
    /// Full name.
    pub name: String,
    /// Mangled name, when known and different.
    pub linkage_name: Option<String>,
    /// Link address of the first instruction.
    pub entry: u64,
    /// Code ranges, the one with the entry first.
    pub ranges: Vec<Range<u64>>,
    /// Full names of functions that hold inlined copies of it besides, sorted.
    pub inlined_into: Vec<String>,
}

impl DebugInfo {
    pub(crate) fn catalog(&self, unit: u32) -> Option<&Catalog> {
        let slot = self.lazy.catalogs.get(unit as usize)?;
        Some(slot.get_or_init(|| Catalog::read(&self.store.view(), unit, self.keeps_unplaced())))
    }

    /// Reads the catalogs of all units, in parallel.
    pub(crate) fn all_catalogs(&self) -> impl Iterator<Item = (u32, &Catalog)> {
        let (view, keeps_unplaced) = (self.store.view(), self.keeps_unplaced());
        (0..self.lazy.catalogs.len()).into_par_iter().for_each(|unit| {
            if let Some(slot) = self.lazy.catalogs.get(unit) {
                slot.get_or_init(|| Catalog::read(&view, unit as u32, keeps_unplaced));
            }
        });
        (0..self.lazy.catalogs.len() as u32).filter_map(|unit| Some((unit, self.catalog(unit)?)))
    }

    /// The units whose code covers a link address.
    fn units_at(&self, pc: u64) -> impl Iterator<Item = u32> {
        let all = self.lazy.code_ranges.get_or_init(|| self.store.view().code_ranges());
        let after = all.partition_point(|(range, _)| range.start <= pc);
        let before = all.get(..after).unwrap_or_default();
        // Ranges of different units do not nest in practice; look past a few that ended early.
        before.iter().rev().take(8).filter(move |(range, _)| range.contains(&pc)).map(|&(_, unit)| unit)
    }

    fn name_of(&self, die: Die) -> Named {
        Catalog::name(die, &|unit| self.catalog(unit))
    }

    pub(crate) fn full_name(&self, die: Die) -> Option<String> {
        let named = self.name_of(die);
        named.name.or_else(|| named.linkage.map(|linkage| spelled(&linkage)))
    }

    /// True when the unit whose code covers a link address describes any type: a unit compiled with `-g1` describes
    /// functions and lines only. `None` where no unit covers the address.
    pub fn has_types_at(&self, pc: u64) -> Option<bool> {
        if self.described.is_some() {
            return Some(true);
        }
        let has_types = |unit: u32| {
            let slot = self.lazy.has_types.get(unit as usize)?;
            *slot.get_or_init(|| self.store.view().has_types(unit))
        };
        self.units_at(pc).filter_map(has_types).reduce(|any, one| any || one)
    }

    /// The functions whose code covers any of the link addresses, in full detail, by entry. Addresses
    /// that no described function covers are passed over.
    pub fn functions_covering(&self, pcs: &mut dyn Iterator<Item = u64>) -> Vec<Function> {
        if let Some(described) = &self.described {
            return described.functions_covering(pcs);
        }
        let pcs: BTreeSet<u64> = pcs.collect();
        let mut dies: BTreeSet<Die> = BTreeSet::new();
        let units: BTreeSet<u32> = pcs.iter().flat_map(|&pc| self.units_at(pc)).collect();
        for unit in units {
            let Some(catalog) = self.catalog(unit) else { continue };
            for function in &catalog.functions {
                let covers = |range: &Range<u64>| pcs.range(range.clone()).next().is_some();
                if function.ranges.iter().any(covers) {
                    dies.insert(Die { unit, offset: function.offset });
                }
            }
        }
        let view = self.store.view();
        let details = Details::new(&view, self.table(), |unit| self.catalog(unit));
        let mut functions: Vec<Function> = dies.into_iter().filter_map(|die| details.function(die)).collect();
        for function in &mut functions {
            let linkage = function.linkage_name.clone();
            self.entry_first(&mut function.ranges, linkage.as_deref().unwrap_or(&function.name));
        }
        functions.sort_by_key(|function| function.entry());
        functions
    }

    /// Puts the range that starts at a symbol of the function's name first. The compiler may list the
    /// cold part of a divided function before the part with the entry.
    fn entry_first(&self, ranges: &mut [Range<u64>], name: &str) {
        if ranges.len() < 2 {
            return;
        }
        let starts = |range: &Range<u64>| {
            let from = self.symbols().partition_point(|symbol| symbol.address < range.start);
            let here = self.symbols().iter().skip(from).take_while(|symbol| symbol.address == range.start);
            let is_entry = |symbol: &Symbol| {
                symbol.kind == SymbolKind::Function
                    && symbol.name.strip_prefix(name).is_some_and(|rest| !rest.contains(".cold"))
            };
            here.into_iter().any(is_entry)
        };
        if let Some(at) = ranges.iter().position(starts) {
            ranges.swap(0, at);
        }
    }

    /// Looks a function up by name: as the source spells it, with or without namespaces, parameters
    /// and template arguments, or mangled.
    pub fn find_functions(&self, name: &str) -> FoundFunctions {
        let mut found: Vec<(Die, FoundFunction)> = Vec::new();
        for (unit, catalog) in self.all_catalogs() {
            for function in &catalog.functions {
                let die = Die { unit, offset: function.offset };
                let named = self.name_of(die);
                let Some(entry) = self.found(named, &function.ranges, name) else { continue };
                found.push((die, entry));
            }
        }
        let callers = self.inlined_into(name);
        if found.is_empty() {
            found = self.found_symbols(name);
        }
        if found.is_empty() {
            let mut callers = callers.into_iter();
            return match callers.next() {
                Some((name, callers)) => {
                    FoundFunctions::InlinedEverywhere { name, callers: callers.into_iter().collect() }
                }
                None => FoundFunctions::Unknown { near: self.near_functions(name) },
            };
        }
        let mut found: Vec<FoundFunction> = found.into_iter().map(|(_, function)| function).collect();
        for function in &mut found {
            if let Some(callers) = callers.get(&function.name) {
                function.inlined_into = callers.iter().cloned().collect();
            }
        }
        found.sort_by_key(|function| function.entry);
        found.dedup_by(|a, b| a.entry == b.entry);
        FoundFunctions::OutOfLine(found)
    }

    fn found(&self, named: Named, ranges: &[Range<u64>], wanted: &str) -> Option<FoundFunction> {
        if !is_wanted(&named, wanted) {
            return None;
        }
        let mut ranges = ranges.to_vec();
        let linkage = named.linkage.clone();
        let name = named.name.or_else(|| linkage.clone())?;
        self.entry_first(&mut ranges, linkage.as_deref().unwrap_or(&name));
        let entry = ranges.first()?.start;
        Some(FoundFunction { name, linkage_name: linkage, entry, ranges, inlined_into: Vec::new() })
    }

    /// Functions known by symbol alone: assembly, and code without debug information. A symbol of code without a type,
    /// as assembly without `.type` leaves it, stands for a function where there is no other: up to the next symbol.
    fn found_symbols(&self, wanted: &str) -> Vec<(Die, FoundFunction)> {
        let typed = self.found_symbols_of(SymbolKind::Function, wanted);
        if typed.is_empty() { self.found_symbols_of(SymbolKind::Other, wanted) } else { typed }
    }

    fn found_symbols_of(&self, kind: SymbolKind, wanted: &str) -> Vec<(Die, FoundFunction)> {
        let is_code =
            |address| self.section_at(address).is_some_and(|section| section.region == crate::Region::Code);
        let functions = self.symbols().iter().enumerate().filter(|(_, symbol)| symbol.kind == kind);
        functions
            .filter(|(_, symbol)| kind == SymbolKind::Function || is_code(symbol.address))
            .filter_map(|(number, symbol)| {
                let spelled = demangle(&symbol.name);
                let is_wanted =
                    symbol.name == wanted || spelled.as_deref().is_some_and(|name| is_meant(name, wanted));
                let len_bytes = match kind {
                    SymbolKind::Function => symbol.size_bytes,
                    _ => self.bytes_to_next_symbol(number),
                };
                let range = symbol.address..symbol.address.checked_add(len_bytes.max(1))?;
                let function = FoundFunction {
                    linkage_name: spelled.is_some().then(|| symbol.name.clone()),
                    name: spelled.unwrap_or_else(|| symbol.name.clone()),
                    entry: symbol.address,
                    ranges: vec![range],
                    inlined_into: Vec::new(),
                };
                is_wanted.then_some((Die { unit: u32::MAX, offset: 0 }, function))
            })
            .collect()
    }

    /// From a symbol, by its number, up to the next one, or to where the section ends.
    fn bytes_to_next_symbol(&self, number: usize) -> u64 {
        let Some(symbol) = self.symbols().get(number) else { return 0 };
        let next =
            self.symbols().iter().skip(number).map(|next| next.address).find(|next| *next > symbol.address);
        let end = self.section_at(symbol.address).map_or(symbol.address, |section| section.addresses.end);
        next.map_or(end, |next| next.min(end)) - symbol.address
    }

    /// Functions of a name that were inlined, each with the functions that hold the copies.
    fn inlined_into(&self, wanted: &str) -> std::collections::BTreeMap<String, BTreeSet<String>> {
        let mut callers: std::collections::BTreeMap<String, BTreeSet<String>> = Default::default();
        let mut names: HashMap<Die, Option<String>> = HashMap::new();
        for (unit, catalog) in self.all_catalogs() {
            for inlined in &catalog.inlined {
                let name = names.entry(inlined.origin).or_insert_with(|| {
                    let named = self.name_of(inlined.origin);
                    is_wanted(&named, wanted).then_some(())?;
                    named.name.or(named.linkage)
                });
                let Some(name) = name else { continue };
                let Some(caller) = catalog.functions.get(inlined.caller as usize) else { continue };
                let into = callers.entry(name.clone()).or_default();
                into.extend(self.full_name(Die { unit, offset: caller.offset }));
            }
        }
        callers
    }

    fn near_functions(&self, wanted: &str) -> Vec<String> {
        let mut names: HashSet<String> = HashSet::new();
        for (unit, catalog) in self.all_catalogs() {
            let described = catalog.functions.iter().map(|function| Die { unit, offset: function.offset });
            let inlined = catalog.inlined.iter().map(|inlined| inlined.origin);
            names.extend(described.chain(inlined).filter_map(|die| self.full_name(die)));
        }
        let functions = self.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function);
        names.extend(functions.map(|symbol| spelled(&symbol.name)));
        nearest(wanted, names.iter().map(String::as_str), 5)
    }

    /// All variables with a fixed address or a fixed place in thread-local storage, by address. The
    /// name of a function's static variable is qualified with the function's: `function::variable`.
    pub fn globals(&self) -> &[Variable] {
        match &self.described {
            Some(described) => &described.globals,
            None => self.lazy.globals.get_or_init(|| self.read_globals()),
        }
    }

    fn read_globals(&self) -> Vec<Variable> {
        let view = self.store.view();
        let details = Details::new(&view, self.table(), |unit| self.catalog(unit));
        let at_zero: BTreeSet<&str> = self
            .symbols()
            .iter()
            .filter(|symbol| symbol.address == 0)
            .map(|symbol| symbol.name.as_str())
            .collect();
        let mut globals: Vec<(u64, Variable)> = Vec::new();
        for (unit, catalog) in self.all_catalogs() {
            for entry in &catalog.variables {
                let die = Die { unit, offset: entry.offset };
                let function = entry.function.and_then(|offset| self.full_name(Die { unit, offset }));
                let name = if entry.function.is_none() { self.full_name(die) } else { None };
                let Some(mut variable) = details.variable(die, name, &[]) else { continue };
                if let (Some(function), Some(name)) = (function, &variable.name) {
                    variable.name = Some(format!("{function}::{name}"));
                }
                let key = match variable.places.first().map(|place| &place.at) {
                    // The linker sets addresses in sections that it drops to 0, where a kernel has a section of its
                    // own.
                    Some(&Location::Address(0))
                        if !variable.name.as_deref().is_some_and(|name| at_zero.contains(name)) =>
                    {
                        continue;
                    }
                    Some(&Location::Address(address)) if self.section_at(address).is_some() => address,
                    Some(&Location::ThreadLocal(offset)) => offset,
                    _ => continue,
                };
                globals.push((key, variable));
            }
        }
        globals.extend(self.placed_by_symbol(&details));
        globals.sort_by(|(a, x), (b, y)| (a, &x.name).cmp(&(b, &y.name)));
        // A static variable of an inlined function is described in every copy.
        globals.dedup_by(|(_, a), (_, b)| a.places == b.places && a.name == b.name);
        globals.into_iter().map(|(_, variable)| variable).collect()
    }

    /// The files that the units were compiled from, without repetition: absolute where the compiler recorded where it
    /// ran.
    pub fn unit_files(&self) -> BTreeSet<PathBuf> {
        let files = self.store.view().unit_files().into_iter();
        files.map(|(folder, name)| Path::new(&folder).join(name)).collect()
    }

    /// The source line of a link address.
    pub fn line_of(&self, pc: u64) -> Option<SourceLocation> {
        self.code_line_of(pc).map(|line| line.at)
    }

    /// The row of the line table that holds for a link address.
    pub fn code_line_of(&self, pc: u64) -> Option<CodeLine> {
        self.units_at(pc).find_map(|unit| self.lines(unit)?.at(pc))
    }

    /// The compiler of the code at a link address, by its own name.
    pub fn compiler_of(&self, pc: u64) -> Option<String> {
        let view = self.store.view();
        self.units_at(pc).find_map(|unit| compiler(view.dwarf(unit)?, &view.unit(unit).ok()?))
    }

    /// Link addresses where code of some lines of a file begins, sorted. `file` may be the last
    /// components of the path only.
    pub fn addresses_of_lines(&self, file: &str, lines: RangeInclusive<u32>) -> Vec<u64> {
        let units = 0..self.lazy.lines.len() as u32;
        let mut found: Vec<u64> = units
            .filter_map(|unit| self.lines(unit))
            .flat_map(|table| table.addresses(file, &lines))
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    fn lines(&self, unit: u32) -> Option<&Lines> {
        let slot = self.lazy.lines.get(unit as usize)?;
        Some(slot.get_or_init(|| Lines::read(&self.store.view(), unit)))
    }
}

/// D writes a dot behind a module.
fn is_meant_with_dots(name: &str, wanted: &str) -> bool {
    wanted.contains('.') && name.contains("::") && is_meant(name, &wanted.replace('.', "::"))
}

/// True when the user means a function with these names.
fn is_wanted(named: &Named, wanted: &str) -> bool {
    named.linkage.as_deref() == Some(wanted)
        || named
            .name
            .as_deref()
            .is_some_and(|name| is_meant(name, wanted) || is_meant_with_dots(name, wanted))
        || wanted.contains('(')
            && named.linkage.as_deref().and_then(demangle).is_some_and(|name| is_meant(&name, wanted))
}
