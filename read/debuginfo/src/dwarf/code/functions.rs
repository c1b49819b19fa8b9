//! Everything about single functions and fixed variables: parameters, locals, inlined copies.

use super::catalog::Catalog;
use super::location;
use crate::dwarf::extent::ranges;
use crate::dwarf::files::Files;
use crate::dwarf::reference::Die;
use crate::dwarf::store::View;
use crate::dwarf::{Dwarf, DwarfEntry, MAX_CHAIN, TypeTable, Unit, Value, constant};
use gimli::{DwAt, UnitOffset, constants as dw};
use lineup_model::program::{Function, Inlined, Location, ValueLocation, Variable};
use lineup_model::types::SourceLocation;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

/// Reads functions and variables in detail.
pub(crate) struct Details<'d, 'a, C> {
    view: &'d View<'a>,
    table: &'d TypeTable,
    catalog: C,
    units: RefCell<HashMap<u32, Option<Rc<Unit<'a>>>>>,
}

impl<'d, 'a, 'c, C: Fn(u32) -> Option<&'c Catalog>> Details<'d, 'a, C> {
    /// `catalog` gives the catalog of a unit.
    pub(crate) fn new(view: &'d View<'a>, table: &'d TypeTable, catalog: C) -> Self {
        Details { view, table, catalog, units: RefCell::default() }
    }

    fn unit(&self, index: u32) -> Option<Rc<Unit<'a>>> {
        let mut units = self.units.borrow_mut();
        units.entry(index).or_insert_with(|| self.view.unit(index).ok().map(Rc::new)).clone()
    }

    /// An entry and the entries that complete it: itself, its abstract origin, its specification.
    fn chain(&self, die: Die) -> Vec<(Die, Rc<Unit<'a>>, DwarfEntry<'a>)> {
        let mut chain = Vec::new();
        let mut next = Some(die);
        while let Some(die) = next.filter(|_| chain.len() < MAX_CHAIN) {
            let Some(unit) = self.unit(die.unit) else { break };
            let Ok(entry) = unit.entry(UnitOffset(die.offset as usize)) else { break };
            next = entry
                .attr_value(dw::DW_AT_abstract_origin)
                .or_else(|| entry.attr_value(dw::DW_AT_specification))
                .and_then(|value| self.view.die_of(die.unit, value));
            chain.push((die, unit, entry));
        }
        chain
    }

    /// The function that an entry describes.
    pub(crate) fn function(&self, die: Die) -> Option<Function> {
        let chain = self.chain(die);
        let (_, unit, entry) = chain.first()?;
        let dwarf = self.view.dwarf(die.unit)?;
        let named = Catalog::name(die, &self.catalog);
        let mut function = Function {
            name: named.name.or_else(|| named.linkage.clone())?,
            linkage_name: named.linkage,
            language: (self.catalog)(die.unit).map(|catalog| catalog.language).unwrap_or_default(),
            ranges: ranges(dwarf, unit, entry),
            frame_base: match entry.attr_value(dw::DW_AT_frame_base) {
                Some(Value::Exprloc(expression)) => location::frame_base(unit, expression),
                _ => None,
            },
            returns: self.type_of(&chain),
            parameters: Vec::new(),
            variables: Vec::new(),
            inlined: Vec::new(),
            declared_at: self.declared_at(&chain),
        };
        Body { details: self, dwarf, unit, index: die.unit, function: &mut function, stack: Vec::new() }
            .read(die.offset);
        Some(function)
    }

    /// The variable that an entry describes, with the name given.
    pub(crate) fn variable(&self, die: Die, name: Option<String>, scope: &[Range<u64>]) -> Option<Variable> {
        let chain = self.chain(die);
        let (_, unit, entry) = chain.first()?;
        let dwarf = self.view.dwarf(die.unit)?;
        let own_name = || {
            chain.iter().find_map(|(die, unit, entry)| {
                let value = entry.attr_value(dw::DW_AT_name)?;
                Some(crate::dwarf::text(self.view.dwarf(die.unit)?.attr_string(unit, value).ok()?.slice()))
            })
        };
        Some(Variable {
            name: name.or_else(own_name),
            ty: self.type_of(&chain),
            declared_at: self.declared_at(&chain),
            is_external: first(&chain, dw::DW_AT_external) == Some(Value::Flag(true)),
            places: places(dwarf, unit, entry, scope),
        })
    }

    fn type_of(&self, chain: &[(Die, Rc<Unit<'a>>, DwarfEntry<'a>)]) -> Option<lineup_model::types::TypeId> {
        let (die, value) =
            chain.iter().find_map(|(die, _, entry)| Some((die, entry.attr_value(dw::DW_AT_type)?)))?;
        self.table.of_entry(self.view.die_of(die.unit, value)?)
    }

    fn declared_at(&self, chain: &[(Die, Rc<Unit<'a>>, DwarfEntry<'a>)]) -> Option<SourceLocation> {
        chain.iter().find_map(|(die, unit, entry)| {
            self.location(die.unit, unit, entry, dw::DW_AT_decl_file, dw::DW_AT_decl_line)
        })
    }

    fn location(
        &self,
        index: u32,
        unit: &Unit<'a>,
        entry: &DwarfEntry<'a>,
        file: DwAt,
        line: DwAt,
    ) -> Option<SourceLocation> {
        let file = constant(entry.attr_value(file)?)?;
        let line = u32::try_from(constant(entry.attr_value(line)?)?).ok()?;
        let path = Files::new(self.view.file_names_of(index)?, unit).path(file)?;
        Some(SourceLocation { file: path.into(), line })
    }
}

fn first<'a>(chain: &[(Die, Rc<Unit<'a>>, DwarfEntry<'a>)], name: DwAt) -> Option<Value<'a>> {
    chain.iter().find_map(|(_, _, entry)| entry.attr_value(name))
}

/// The locations of an entry's value, narrowed to the scope's ranges when the scope is smaller than the function:
/// compilers keep describing a variable past its block, where its register may already be another's.
fn places<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    entry: &DwarfEntry<'a>,
    scope: &[Range<u64>],
) -> Vec<ValueLocation> {
    let everywhere = |at: Location| -> Vec<ValueLocation> {
        if scope.is_empty() {
            return vec![ValueLocation { range: None, at }];
        }
        scope.iter().map(|range| ValueLocation { range: Some(range.clone()), at: at.clone() }).collect()
    };
    match entry.attr_value(dw::DW_AT_location) {
        Some(Value::Exprloc(expression)) => everywhere(location::interpret(dwarf, unit, expression)),
        Some(value) => {
            let mut places = Vec::new();
            if let Ok(Some(mut list)) = dwarf.attr_locations(unit, value) {
                while let Ok(Some(piece)) = list.next() {
                    let at = location::interpret(dwarf, unit, piece.data);
                    let within = piece.range.begin..piece.range.end;
                    let whole = scope.is_empty().then(|| within.clone());
                    let parts = scope.iter().map(|own| own.start.max(within.start)..own.end.min(within.end));
                    let parts = whole.into_iter().chain(parts).filter(|range| range.start < range.end);
                    places.extend(parts.map(|range| ValueLocation { range: Some(range), at: at.clone() }));
                }
            }
            places
        }
        None => match entry.attr_value(dw::DW_AT_const_value).and_then(signed_constant) {
            Some(value) => everywhere(Location::Constant(value)),
            None => Vec::new(),
        },
    }
}

fn signed_constant(value: Value<'_>) -> Option<i64> {
    constant(value).map(u64::cast_signed)
}

/// The kind of an open entry inside a function.
enum Open {
    /// The function itself or a block: variables belong to the function.
    Function,
    /// An inlined copy, by index.
    Inlined(usize),
    /// Something whose variables are not the function's: a nested function, a call site, a type.
    Foreign,
}

struct Frame {
    depth: isize,
    open: Open,
    /// Ranges of the innermost block or inlined copy; empty for the whole function.
    scope: Vec<Range<u64>>,
}

/// Reads the inside of one function.
struct Body<'b, 'd, 'a, C> {
    details: &'b Details<'d, 'a, C>,
    dwarf: &'b Dwarf<'a>,
    unit: &'b Unit<'a>,
    index: u32,
    function: &'b mut Function,
    stack: Vec<Frame>,
}

impl<'a, 'c, C: Fn(u32) -> Option<&'c Catalog>> Body<'_, '_, 'a, C> {
    fn read(mut self, offset: u32) {
        let Ok(mut entries) = self.unit.entries_raw(Some(UnitOffset(offset as usize))) else { return };
        let mut entry = DwarfEntry::null();
        let mut is_root = true;
        while !entries.is_empty() {
            match entries.read_entry(&mut entry) {
                Ok(true) => {}
                Ok(false) if entries.next_depth() <= 0 => return,
                Ok(false) => continue,
                Err(_) => return,
            }
            let depth = entry.depth();
            if is_root {
                is_root = false;
                if !entry.has_children() {
                    return;
                }
                self.stack.push(Frame { depth, open: Open::Function, scope: Vec::new() });
                continue;
            }
            while self.stack.len() > 1 && self.stack.last().is_some_and(|frame| frame.depth >= depth) {
                self.stack.pop();
            }
            self.entry(&entry, depth);
        }
    }

    fn entry(&mut self, entry: &DwarfEntry<'a>, depth: isize) {
        let Some(frame) = self.stack.last() else { return };
        let scope = frame.scope.clone();
        let (is_foreign, inlined) = match frame.open {
            Open::Function => (false, None),
            Open::Inlined(index) => (false, Some(index)),
            Open::Foreign => (true, None),
        };
        let mut open = inlined.map_or(Open::Function, Open::Inlined);
        let mut inner_scope = scope.clone();
        match entry.tag() {
            _ if is_foreign => open = Open::Foreign,
            dw::DW_TAG_formal_parameter | dw::DW_TAG_variable => self.variable(entry, inlined, &scope),
            dw::DW_TAG_lexical_block => {
                let own = ranges(self.dwarf, self.unit, entry);
                if !own.is_empty() {
                    inner_scope = own;
                }
            }
            dw::DW_TAG_inlined_subroutine => match self.inlined(entry) {
                Some((index, own)) => {
                    open = Open::Inlined(index);
                    inner_scope = own;
                }
                None => open = Open::Foreign,
            },
            _ => open = Open::Foreign,
        }
        if entry.has_children() {
            self.stack.push(Frame { depth, open, scope: inner_scope });
        }
    }

    fn variable(&mut self, entry: &DwarfEntry<'a>, inlined: Option<usize>, scope: &[Range<u64>]) {
        let Ok(offset) = u32::try_from(entry.offset().0) else { return };
        let die = Die { unit: self.index, offset };
        let Some(variable) = self.details.variable(die, None, scope) else { return };
        let list = match inlined {
            Some(index) => self.function.inlined.get_mut(index).map(|inlined| &mut inlined.variables),
            None if entry.tag() == dw::DW_TAG_formal_parameter && scope.is_empty() => {
                Some(&mut self.function.parameters)
            }
            None => Some(&mut self.function.variables),
        };
        if let Some(list) = list {
            list.push(variable);
        }
    }

    fn inlined(&mut self, entry: &DwarfEntry<'a>) -> Option<(usize, Vec<Range<u64>>)> {
        let origin = self.details.view.die_of(self.index, entry.attr_value(dw::DW_AT_abstract_origin)?)?;
        let named = Catalog::name(origin, &self.details.catalog);
        let own = ranges(self.dwarf, self.unit, entry);
        let discriminator = entry.attr_value(dw::DW_AT_GNU_discriminator).and_then(constant);
        self.function.inlined.push(Inlined {
            name: named.name.or_else(|| named.linkage.clone())?,
            linkage_name: named.linkage,
            declared_at: self.details.declared_at(&self.details.chain(origin)),
            ranges: own.clone(),
            variables: Vec::new(),
            called_at: self.details.location(
                self.index,
                self.unit,
                entry,
                dw::DW_AT_call_file,
                dw::DW_AT_call_line,
            ),
            call_discriminator: discriminator.and_then(|value| u32::try_from(value).ok()).unwrap_or(0),
        });
        Some((self.function.inlined.len() - 1, own))
    }
}
