//! The functions, inlined copies and fixed variables of a unit: one pass, names and ranges only.

use crate::dwarf::extent::{has_modules, language, own_language, ranges};
use crate::dwarf::reference::Die;
use crate::dwarf::store::View;
use crate::dwarf::{Dwarf, DwarfEntry, MAX_CHAIN, Unit, Value};
use gimli::constants as dw;
use lineup_model::types::Language;
use std::ops::Range;

/// A function with code of its own.
#[derive(Debug)]
pub(crate) struct FunctionEntry {
    pub(crate) offset: u32,
    pub(crate) ranges: Vec<Range<u64>>,
}

/// A copy of a function inlined into another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlinedEntry {
    /// The entry of the function that was inlined.
    pub(crate) origin: Die,
    /// Index in [`Catalog::functions`] of the function that it was inlined into.
    pub(crate) caller: u32,
}

/// A variable that may have a fixed address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableEntry {
    pub(crate) offset: u32,
    /// Offset of the function that declares it, when it is a local one.
    pub(crate) function: Option<u32>,
}

/// A variable whose description gives neither its place nor its value.
#[derive(Debug)]
pub(crate) struct UnplacedEntry {
    pub(crate) at: VariableEntry,
    /// The name of a variable inside a function.
    pub(crate) own_name: Option<Box<str>>,
}

/// The name that an entry carries itself.
#[derive(Debug)]
struct NameEntry {
    offset: u32,
    /// With namespaces and classes.
    name: Option<Box<str>>,
    linkage: Option<Box<str>>,
    /// The entry with the remaining attributes: abstract origin or specification.
    origin: Option<Die>,
}

/// The functions and fixed variables of one unit.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) language: Language,
    pub(crate) functions: Vec<FunctionEntry>,
    pub(crate) inlined: Vec<InlinedEntry>,
    pub(crate) variables: Vec<VariableEntry>,
    /// Empty unless asked for.
    pub(crate) unplaced: Vec<UnplacedEntry>,
    /// By offset.
    names: Vec<NameEntry>,
}

/// The names of a function or variable.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Named {
    pub(crate) name: Option<String>,
    pub(crate) linkage: Option<String>,
}

impl Catalog {
    /// Reads unit number `index`, variables without a place too if `keeps_unplaced`.
    pub(crate) fn read(view: &View<'_>, index: u32, keeps_unplaced: bool) -> Catalog {
        let (Some(dwarf), Ok(unit)) = (view.dwarf(index), view.unit(index)) else {
            return Catalog::default();
        };
        let language = language(&unit);
        let has_modules = has_modules(&unit) || own_language(&unit) == Some(dw::DW_LANG_D);
        let out = Catalog { language, ..Catalog::default() };
        let mut reader =
            Reader { view, dwarf, unit: &unit, index, keeps_unplaced, has_modules, stack: Vec::new(), out };
        // A damaged unit keeps the entries read before the damage; the type table counts it.
        let _ = reader.run();
        reader.out
    }

    /// The name of an entry. `catalog` gives other units' catalogs.
    pub(crate) fn name<'c>(die: Die, catalog: &impl Fn(u32) -> Option<&'c Catalog>) -> Named {
        let mut named = Named::default();
        let mut next = Some(die);
        for _ in 0..MAX_CHAIN {
            let Some(die) = next else { break };
            let Some(names) = catalog(die.unit).map(|catalog| &catalog.names) else { break };
            let Ok(at) = names.binary_search_by_key(&die.offset, |entry| entry.offset) else { break };
            let Some(entry) = names.get(at) else { break };
            named.name = named.name.or_else(|| entry.name.as_deref().map(str::to_owned));
            named.linkage = named.linkage.or_else(|| entry.linkage.as_deref().map(str::to_owned));
            next = entry.origin;
        }
        named
    }
}

/// An open entry.
struct Frame {
    depth: isize,
    /// Qualified name of the enclosing namespace or type, empty outside of any.
    scope: Option<Box<str>>,
    /// Offset of the enclosing function.
    function: Option<u32>,
    /// Index of the enclosing function that has code.
    caller: Option<u32>,
}

struct Reader<'r, 'a> {
    view: &'r View<'a>,
    dwarf: &'r Dwarf<'a>,
    unit: &'r Unit<'a>,
    index: u32,
    keeps_unplaced: bool,
    /// Its modules are namespaces.
    has_modules: bool,
    stack: Vec<Frame>,
    out: Catalog,
}

impl<'a> Reader<'_, 'a> {
    fn run(&mut self) -> Result<(), gimli::Error> {
        let unit = self.unit;
        let mut entries = unit.entries_raw(None)?;
        let mut entry = DwarfEntry::null();
        while !entries.is_empty() {
            if !entries.read_entry(&mut entry)? {
                continue;
            }
            let depth = entry.depth();
            while self.stack.last().is_some_and(|frame| frame.depth >= depth) {
                self.stack.pop();
            }
            let Ok(offset) = u32::try_from(entry.offset().0) else { break };
            let mut frame = Frame {
                depth,
                scope: None,
                function: self.stack.last().and_then(|frame| frame.function),
                caller: self.stack.last().and_then(|frame| frame.caller),
            };
            match entry.tag() {
                dw::DW_TAG_subprogram => self.subprogram(&entry, offset, &mut frame),
                dw::DW_TAG_inlined_subroutine => self.inlined(&entry, frame.caller),
                dw::DW_TAG_variable => self.variable(&entry, offset, frame.function),
                dw::DW_TAG_namespace
                | dw::DW_TAG_structure_type
                | dw::DW_TAG_class_type
                | dw::DW_TAG_union_type
                | dw::DW_TAG_enumeration_type => {
                    let own = self.string(&entry, dw::DW_AT_name);
                    if own.is_some() || entry.tag() == dw::DW_TAG_namespace {
                        frame.scope = Some(self.qualify(own.as_deref().unwrap_or("(anonymous namespace)")));
                    }
                }
                dw::DW_TAG_module if self.has_modules => {
                    frame.scope = self.string(&entry, dw::DW_AT_name).map(|own| self.qualify(&own));
                }
                // Every function that names the block has the same variables in it.
                dw::DW_TAG_common_block => {
                    frame.scope = self.string(&entry, dw::DW_AT_name).map(Into::into);
                    frame.function = None;
                }
                _ => {}
            }
            if entry.has_children() {
                self.stack.push(frame);
            }
        }
        Ok(())
    }

    fn string(&self, entry: &DwarfEntry<'a>, name: gimli::DwAt) -> Option<String> {
        let value = entry.attr_value(name)?;
        Some(crate::dwarf::text(self.dwarf.attr_string(self.unit, value).ok()?.slice()))
    }

    fn qualify(&self, name: &str) -> Box<str> {
        let scope = self.stack.iter().rev().find_map(|frame| frame.scope.as_deref());
        match scope {
            Some(scope) if self.out.language != Language::C => format!("{scope}::{name}").into(),
            _ => name.into(),
        }
    }

    fn name(&mut self, entry: &DwarfEntry<'a>, offset: u32) {
        let linkage = self
            .string(entry, dw::DW_AT_linkage_name)
            .or_else(|| self.string(entry, dw::DW_AT_MIPS_linkage_name));
        let origin = entry
            .attr_value(dw::DW_AT_abstract_origin)
            .or_else(|| entry.attr_value(dw::DW_AT_specification))
            .and_then(|value| self.view.die_of(self.index, value));
        let name = self.string(entry, dw::DW_AT_name).map(|name| self.qualify(&name));
        self.out.names.push(NameEntry { offset, name, linkage: linkage.map(Into::into), origin });
    }

    fn subprogram(&mut self, entry: &DwarfEntry<'a>, offset: u32, frame: &mut Frame) {
        self.name(entry, offset);
        let ranges = ranges(self.dwarf, self.unit, entry);
        frame.function = Some(offset);
        frame.caller = None;
        if !ranges.is_empty() {
            frame.caller = Some(self.out.functions.len() as u32);
            self.out.functions.push(FunctionEntry { offset, ranges });
        }
    }

    fn inlined(&mut self, entry: &DwarfEntry<'a>, caller: Option<u32>) {
        let origin = entry.attr_value(dw::DW_AT_abstract_origin);
        let origin = origin.and_then(|value| self.view.die_of(self.index, value));
        if let (Some(origin), Some(caller)) = (origin, caller) {
            self.out.inlined.push(InlinedEntry { origin, caller });
        }
    }

    fn variable(&mut self, entry: &DwarfEntry<'a>, offset: u32, function: Option<u32>) {
        if function.is_none() {
            self.name(entry, offset);
        }
        if let Some(Value::Exprloc(expression)) = entry.attr_value(dw::DW_AT_location) {
            let location = super::location::interpret(self.dwarf, self.unit, expression);
            use lineup_model::program::Location;
            if matches!(location, Location::Address(_) | Location::ThreadLocal(_)) {
                self.out.variables.push(VariableEntry { offset, function });
            }
        } else if self.keeps_unplaced && entry.attr_value(dw::DW_AT_location).is_none() {
            self.unplaced(entry, VariableEntry { offset, function });
        }
    }

    fn unplaced(&mut self, entry: &DwarfEntry<'a>, at: VariableEntry) {
        let places = [dw::DW_AT_const_value, dw::DW_AT_declaration, dw::DW_AT_abstract_origin];
        if places.into_iter().any(|name| entry.attr_value(name).is_some()) {
            return;
        }
        let own_name = at.function.and_then(|_| self.string(entry, dw::DW_AT_name));
        if at.function.is_none() || own_name.is_some() {
            self.out.unplaced.push(UnplacedEntry { at, own_name: own_name.map(Into::into) });
        }
    }
}
