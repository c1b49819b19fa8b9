//! Files whose types, functions and variables are described by BTF and a table of symbols instead of DWARF: kernels
//! as they are distributed.

use crate::Section;
use crate::btf::{Btf, BtfFunction};
use lineup_model::abi::Machine;
use lineup_model::program::{Function, Location, Symbol, SymbolKind, ValueLocation, Variable};
use lineup_model::types::{Language, TypeId, Types};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;

/// The facts from BTF and symbols.
#[derive(Debug)]
pub(crate) struct Described {
    pub(crate) types: Types,
    /// By entry.
    functions: BTreeMap<u64, Function>,
    /// By address.
    pub(crate) globals: Vec<Variable>,
}

impl Described {
    /// The facts about a file with these symbols and sections.
    pub(crate) fn new(btf: Btf, symbols: &[Symbol], sections: &[Section], machine: Machine) -> Described {
        let functions = functions(symbols, &btf, machine);
        let globals = globals(sections, &btf);
        Described { types: btf.types, functions, globals }
    }

    /// The functions that cover any of the link addresses, by entry.
    pub(crate) fn functions_covering(&self, pcs: &mut dyn Iterator<Item = u64>) -> Vec<Function> {
        let covering = |pc: u64| {
            let (entry, function) = self.functions.range(..=pc).next_back()?;
            function.contains(pc).then_some(*entry)
        };
        let entries: BTreeSet<u64> = pcs.filter_map(covering).collect();
        entries.iter().filter_map(|entry| self.functions.get(entry)).cloned().collect()
    }
}

/// Every function symbol; functions with a prototype have parameters.
fn functions(symbols: &[Symbol], btf: &Btf, machine: Machine) -> BTreeMap<u64, Function> {
    let prototypes = unambiguous(symbols, btf);
    let registers = machine.description().argument_registers;
    let code = symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Function && symbol.size_bytes > 0);
    code.filter_map(|symbol| {
        let prototype = prototypes.get(symbol.name.as_str());
        let range = symbol.address..symbol.address.checked_add(symbol.size_bytes)?;
        let parameters = prototype.map(|function| parameters(function, &btf.types, registers, range.start));
        let function = Function {
            name: symbol.name.clone(),
            linkage_name: None,
            language: Language::C,
            ranges: vec![range],
            frame_base: None,
            returns: prototype.and_then(|function| function.returns),
            parameters: parameters.unwrap_or_default(),
            variables: Vec::new(),
            inlined: Vec::new(),
            declared_at: None,
        };
        Some((symbol.address, function))
    })
    .collect()
}

/// Prototypes by name, without names that several functions or several symbols share: nothing assigns those.
fn unambiguous<'b>(symbols: &[Symbol], btf: &'b Btf) -> HashMap<&'b str, &'b BtfFunction> {
    let mut symbols_of: HashMap<&str, u32> = HashMap::new();
    for symbol in symbols.iter().filter(|symbol| symbol.kind == SymbolKind::Function) {
        *symbols_of.entry(&symbol.name).or_default() += 1;
    }
    let mut prototypes: HashMap<&str, Option<&BtfFunction>> = HashMap::new();
    for function in &btf.functions {
        let known = prototypes.entry(&function.name).or_insert(Some(function));
        if known.is_some_and(|known| known != function) {
            *known = None;
        }
    }
    let is_one = |name: &str| symbols_of.get(name) == Some(&1);
    prototypes
        .into_iter()
        .filter(|(name, _)| is_one(name))
        .filter_map(|(name, one)| Some((name, one?)))
        .collect()
}

/// The parameters as far as each one takes one integer register.
fn parameters(function: &BtfFunction, types: &Types, registers: &[u16], entry: u64) -> Vec<Variable> {
    let word = if registers.len() > 4 { 8 } else { 4 };
    let in_one =
        |ty: &Option<TypeId>| ty.and_then(|ty| types.size_bytes(ty)).is_some_and(|size| size <= word);
    let simple = function.parameters.iter().take_while(|(_, ty)| in_one(ty));
    simple
        .zip(registers)
        .map(|((name, ty), register)| Variable {
            name: name.as_deref().map(str::to_owned),
            ty: *ty,
            declared_at: None,
            is_external: false,
            places: vec![place(Some(entry..entry + 1), Location::Register(*register))],
        })
        .collect()
}

fn place(range: Option<Range<u64>>, at: Location) -> ValueLocation {
    ValueLocation { range, at }
}

/// Variables that BTF places: those in the per-CPU section.
fn globals(sections: &[Section], btf: &Btf) -> Vec<Variable> {
    let start_of = |name: &str| {
        sections.iter().find(|section| section.name == name).map(|section| section.addresses.start)
    };
    let placed = btf.variables.iter().filter_map(|variable| {
        let address = start_of(variable.section.as_deref()?)?.checked_add(variable.offset)?;
        Some((address, variable))
    });
    let mut placed: Vec<_> = placed.collect();
    placed.sort_by_key(|(address, _)| *address);
    placed
        .into_iter()
        .map(|(address, variable)| Variable {
            name: Some(variable.name.to_string()),
            ty: Some(variable.ty),
            declared_at: None,
            is_external: true,
            places: vec![place(None, Location::Address(address))],
        })
        .collect()
}
