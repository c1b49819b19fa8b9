//! Thread-local variables that the compiler describes without a place (GCC for 64-bit Arm): their symbols give it.

use crate::DebugInfo;
use crate::dwarf::{Catalog, Details, Die, VariableEntry};
use crate::names::spelled;
use lineup_model::program::{Location, Symbol, SymbolKind, ValueLocation, Variable};
use std::collections::HashMap;

/// A symbol's facts about the variable it stands for.
#[derive(PartialEq, Eq, Hash, Debug)]
struct SymbolVariable {
    name: String,
    is_in_function: bool,
}

impl SymbolVariable {
    /// `ns::total`; for `f(int)::calls` and `calls.0` only the last part, since the function is spelled in different
    /// ways or missing.
    fn of(symbol: &Symbol) -> Self {
        let full = spelled(&symbol.name);
        if let Some((_, name)) = full.rsplit_once(")::") {
            return SymbolVariable { name: name.to_owned(), is_in_function: true };
        }
        match full.rsplit_once('.') {
            Some((name, digits))
                if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                SymbolVariable { name: name.to_owned(), is_in_function: true }
            }
            _ => SymbolVariable { name: full, is_in_function: false },
        }
    }
}

impl DebugInfo {
    /// True when descriptions without a place are worth keeping.
    pub(crate) fn keeps_unplaced(&self) -> bool {
        self.abi().machine.description().threads.has_variables_without_place
            && self.thread_local_segment().is_some()
    }

    /// The variables that have no place but one symbol of their name and size, with that symbol's. One of several
    /// that the same name could mean is left out.
    pub(crate) fn placed_by_symbol<'c, C: Fn(u32) -> Option<&'c Catalog>>(
        &self,
        details: &Details<'_, '_, C>,
    ) -> Vec<(u64, Variable)> {
        if !self.keeps_unplaced() {
            return Vec::new();
        }
        let mut wanted: HashMap<SymbolVariable, Vec<&Symbol>> = HashMap::new();
        let sized =
            self.symbols().iter().filter(|one| one.kind == SymbolKind::ThreadLocal && one.size_bytes > 0);
        for symbol in sized {
            wanted.entry(SymbolVariable::of(symbol)).or_default().push(symbol);
        }
        let mut found: HashMap<u64, Vec<Variable>> = HashMap::new();
        for (unit, catalog) in self.all_catalogs() {
            for entry in &catalog.unplaced {
                let named = self.unplaced_name(unit, entry.at, entry.own_name.as_deref());
                let Some((name, shown)) = named else { continue };
                let key = SymbolVariable { name, is_in_function: entry.at.function.is_some() };
                let Some(symbols) = wanted.get(&key) else { continue };
                let die = Die { unit, offset: entry.at.offset };
                let Some(variable) = details.variable(die, Some(shown), &[]) else { continue };
                let size = variable.ty.and_then(|ty| self.types().size_bytes(ty));
                let mut fitting = symbols.iter().filter(|symbol| Some(symbol.size_bytes) == size);
                if let (Some(only), None) = (fitting.next(), fitting.next()) {
                    found.entry(only.address).or_default().push(variable);
                }
            }
        }
        found.into_iter().filter_map(|(offset, variables)| Some((offset, only(variables, offset)?))).collect()
    }

    /// The name to look up and the name to show.
    fn unplaced_name(&self, unit: u32, at: VariableEntry, own: Option<&str>) -> Option<(String, String)> {
        match (at.function, own) {
            (Some(function), Some(own)) => {
                let function = self.full_name(Die { unit, offset: function });
                let shown = function.map_or_else(|| own.to_owned(), |function| format!("{function}::{own}"));
                Some((own.to_owned(), shown))
            }
            _ => self.full_name(Die { unit, offset: at.offset }).map(|name| (name.clone(), name)),
        }
    }
}

/// The one variable at an offset. Descriptions of several units that agree count as one.
fn only(variables: Vec<Variable>, offset: u64) -> Option<Variable> {
    let mut all = variables.into_iter();
    let first = all.next()?;
    let agree = all.all(|other| (&other.name, other.ty) == (&first.name, first.ty));
    let places = vec![ValueLocation { range: None, at: Location::ThreadLocal(offset) }];
    agree.then_some(Variable { places, ..first })
}
