//! The one entry point: everything known about one program.

use crate::btf::Btf;
use crate::described::Described;
use crate::dwarf::{Store, TypeTable};
use crate::elf::{Elf, Symbols};
use crate::lazy_facts::LazyFacts;
use crate::{
    Bytes, Companion, Companions, Error, FileKind, MappingSymbol, Placement, Section, Segment,
    ThreadLocalSegment, ThreadSlot,
};
use lineup_model::abi::Abi;
use lineup_model::program::Symbol;
use lineup_model::types::{TypeId, Types};
use std::ops::Range;
use std::sync::OnceLock;

/// The debug information of one program, library or object file, with that of its companions.
///
/// Made quickly: symbols, types, variables and functions are read when first asked for, then kept.
#[derive(Debug)]
pub struct DebugInfo {
    pub(crate) elf: Elf,
    /// The separate debug file.
    separate: Option<Box<Elf>>,
    /// Symbols of the file and of its separate debug file.
    symbols: OnceLock<Symbols>,
    pub(crate) store: Store,
    pub(crate) lazy: LazyFacts,
    missing: Vec<Companion>,
    types: OnceLock<TypeTable>,
    /// The description of the file that replaces DWARF.
    pub(crate) described: Option<Box<Described>>,
}

impl DebugInfo {
    /// Reads a file. Debug sections are taken from the file itself or else from the separate debug
    /// file that `companions` finds for it.
    ///
    /// # Errors
    /// When the bytes are not an ELF file for a machine that Lineup knows, or contradict themselves. A
    /// file without debug information is no error here: see [`Self::has_debug_info`].
    pub fn parse(bytes: impl Into<Bytes>, companions: &mut dyn Companions) -> Result<DebugInfo, Error> {
        DebugInfo::of_elf(Elf::parse(bytes.into())?, companions, &Ok)
    }

    /// Reads a kernel's module with its sections where the kernel has put them, so that all its addresses are its run
    /// addresses. A separate debug file with other sections than the module is passed over.
    ///
    /// # Errors
    /// As for [`Self::parse`].
    pub fn placed(
        bytes: impl Into<Bytes>,
        companions: &mut dyn Companions,
        placement: &Placement<'_>,
    ) -> Result<DebugInfo, Error> {
        let alone = Elf::parse(bytes.into())?;
        let sections = alone.sections.clone();
        let same_place = |separate: Elf| match separate.sections == sections {
            true => separate.place(placement),
            false => Err(Error::damaged("debug file", "its sections are not those of the module")),
        };
        DebugInfo::of_elf(alone.place(placement)?, companions, &same_place)
    }

    /// Reads an ELF file without DWARF whose symbols and types come from elsewhere: from a kernel's own tables.
    /// Parameters are known at the first instruction of each function, in the registers of the calling convention.
    ///
    /// # Errors
    /// As for [`DebugInfo::parse`].
    pub fn with_btf(bytes: impl Into<Bytes>, symbols: Vec<Symbol>, btf: Btf) -> Result<DebugInfo, Error> {
        let mut info = DebugInfo::parse(bytes, &mut crate::NoCompanions)?;
        info.add_symbols(symbols);
        Ok(info.described_by(btf))
    }

    /// The same file, with the types, parameters and variables from its BTF in place of its own.
    pub fn described_by(mut self, btf: Btf) -> DebugInfo {
        let described = Described::new(btf, self.symbols(), self.sections(), self.abi().machine);
        self.described = Some(Box::new(described));
        self
    }

    /// The contents of a file. `place` adjusts its separate debug file.
    fn of_elf(
        elf: Elf,
        companions: &mut dyn Companions,
        place: &dyn Fn(Elf) -> Result<Elf, Error>,
    ) -> Result<DebugInfo, Error> {
        let mut separate = None;
        let mut missing = Vec::new();
        let mut store = Store::load(&elf, companions)?;
        if store.is_empty()
            && let Some(found) = find_separate(&elf, companions, &mut missing)
            && let Ok(found) = place(found)
        {
            store = Store::load(&found, companions)?;
            separate = Some(Box::new(found));
        }
        missing.extend(store.missing.iter().cloned());
        let lazy = LazyFacts::new(store.units.len());
        Ok(DebugInfo {
            elf,
            separate,
            symbols: OnceLock::new(),
            store,
            lazy,
            missing,
            types: OnceLock::new(),
            described: None,
        })
    }

    /// The machine and data model.
    pub fn abi(&self) -> Abi {
        self.elf.abi
    }

    /// The kind of file.
    pub fn kind(&self) -> FileKind {
        self.elf.kind
    }

    /// True for a position-independent executable.
    pub fn is_pie(&self) -> bool {
        self.elf.is_pie
    }

    /// The build id, when the linker made one.
    pub fn build_id(&self) -> Option<&[u8]> {
        self.elf.build_id.as_deref()
    }

    /// True when a linked file kept the relocations of its code, as `ld --emit-relocs` leaves them: moving code needs
    /// them.
    pub fn keeps_relocations(&self) -> bool {
        self.elf.keeps_relocations
    }

    /// The places where the kernel puts the code of a module, in the order of its sections; empty for linked files.
    pub fn module_parts(&self) -> &[crate::ModulePart] {
        &self.elf.module_parts
    }

    /// The link address where the program starts; 0 for libraries.
    pub fn entry(&self) -> u64 {
        self.elf.entry
    }

    /// The loadable segments.
    pub fn segments(&self) -> &[Segment] {
        &self.elf.segments
    }

    /// The initial thread-local data, of which every thread gets a copy, when the file has any.
    pub fn thread_local_segment(&self) -> Option<&ThreadLocalSegment> {
        self.elf.thread_local.as_ref()
    }

    /// The words that the loader fills in so that code finds thread-local variables of this file.
    pub fn thread_slots(&self) -> Vec<ThreadSlot> {
        self.elf.thread_slots()
    }

    /// The link address of the first loadable segment.
    pub fn first_load_address(&self) -> Option<u64> {
        self.elf.segments.iter().map(|segment| segment.addresses.start).min()
    }

    /// The first executable loadable segment.
    pub fn first_executable_segment(&self) -> Option<&Segment> {
        let executable = self.elf.segments.iter().filter(|segment| segment.is_executable);
        executable.min_by_key(|segment| segment.addresses.start)
    }

    /// The sections that occupy memory when the program runs.
    pub fn sections(&self) -> &[Section] {
        &self.elf.sections
    }

    /// The section that holds a link address.
    pub fn section_at(&self, address: u64) -> Option<&Section> {
        self.elf.section_at(address)
    }

    /// All symbols, by address: of the symbol table and of the dynamic one, of the file and of its
    /// separate debug file.
    pub fn symbols(&self) -> &[Symbol] {
        &self.all_symbols().all
    }

    fn all_symbols(&self) -> &Symbols {
        self.symbols.get_or_init(|| {
            let mut symbols = self.elf.symbols();
            if let Some(separate) = &self.separate {
                symbols.all.extend(separate.symbols().all);
                crate::elf::tidy(&mut symbols.all);
            }
            symbols
        })
    }

    /// Adds symbols that the file itself does not list.
    fn add_symbols(&mut self, symbols: Vec<Symbol>) {
        self.all_symbols();
        if let Some(known) = self.symbols.get_mut() {
            known.all.extend(symbols);
            crate::elf::tidy(&mut known.all);
        }
    }

    /// The symbol that covers a link address, functions and data before others.
    pub fn symbol_at(&self, address: u64) -> Option<&Symbol> {
        let after = self.symbols().partition_point(|symbol| symbol.address <= address);
        let before = self.symbols().get(..after)?;
        let covers =
            |symbol: &&Symbol| symbol.address == address || address - symbol.address < symbol.size_bytes;
        // Symbols of size 0 and nested ones may stand between an address and the symbol that covers it.
        let near = before.iter().rev().take(64);
        near.filter(covers)
            .min_by_key(|symbol| (symbol.size_bytes == 0, symbol.kind, address - symbol.address))
    }

    /// The symbols at which instruction sets and data alternate (Arm), by address.
    pub fn mapping_symbols(&self) -> &[MappingSymbol] {
        &self.all_symbols().mapping
    }

    /// The mapping symbol in force at a link address.
    pub fn mapping_at(&self, address: u64) -> Option<MappingSymbol> {
        let mapping = self.mapping_symbols();
        let after = mapping.partition_point(|symbol| symbol.address <= address);
        mapping.get(after.checked_sub(1)?).copied()
    }

    /// The name of the function that a stub of the procedure linkage table jumps to, for a link
    /// address inside the stub.
    pub fn plt_name(&self, address: u64) -> Option<&str> {
        let stubs = &self.elf.plt;
        let after = stubs.partition_point(|(range, _)| range.start <= address);
        let (range, name) = stubs.get(after.checked_sub(1)?)?;
        range.contains(&address).then_some(name)
    }

    /// The bytes that the file holds for link addresses: instructions or initialised data. `None` when
    /// the file holds none for the whole range.
    pub fn code(&self, addresses: Range<u64>) -> Option<&[u8]> {
        self.elf.memory(addresses)
    }

    /// True when the file or a companion has DWARF.
    pub fn has_debug_info(&self) -> bool {
        !self.store.is_empty()
    }

    /// Fails when debug information is missing; the error explains how to get it.
    ///
    /// # Errors
    /// [`Error::NoDebugInfo`].
    pub fn require_debug_info(&self) -> Result<(), Error> {
        if self.has_debug_info() {
            return Ok(());
        }
        let hint = match (&self.elf.debug_link, &self.elf.build_id) {
            (Some((name, _)), _) => format!("; it names the separate file {name}, which was not found"),
            (None, Some(id)) => {
                format!("; its build id is {}, and no separate debug file was found", hex(id))
            }
            (None, None) if self.elf.is_left_to_linker => {
                "; -flto left them to the linker: give the linked program".to_owned()
            }
            (None, None) => String::new(),
        };
        Err(Error::NoDebugInfo { hint })
    }

    /// The bytes of the `.BTF` section; empty for a file without that section.
    ///
    /// # Errors
    /// When the section cannot be decompressed.
    pub fn btf_section(&self) -> Result<Bytes, Error> {
        self.elf.section(".BTF")
    }

    /// Companion files that were asked for and not found, or were the wrong ones.
    pub fn missing(&self) -> &[Companion] {
        &self.missing
    }

    /// The number of damaged units and lists of units, plus the number of types that hold themselves. Entries before
    /// the damage are used; a type that holds itself is taken for a declaration.
    pub fn damage(&self) -> u64 {
        self.store.damaged + self.table().damaged
    }

    /// All types.
    pub fn types(&self) -> &Types {
        self.described.as_ref().map_or_else(|| &self.table().types, |described| &described.types)
    }

    /// The unit that a type was read from, by its number in this file; `None` when units refer to each other, or to
    /// other files, so that none can be read alone.
    pub fn unit_of_type(&self, id: TypeId) -> Option<u32> {
        let origins = self.table().origins.as_ref().filter(|_| self.store.is_one_file())?;
        origins.get(id.0 as usize).copied().filter(|unit| (*unit as usize) < self.store.units.len())
    }

    /// Reads the types of some units alone, by their numbers and in their order; [`Self::types`] are these from then
    /// on. False when that cannot be, or types were read already.
    pub fn read_only_units(&self, units: &[u32]) -> bool {
        let is_known = |unit: &u32| (*unit as usize) < self.store.units.len();
        if !self.store.is_one_file() || !units.iter().all(is_known) {
            return false;
        }
        let table = TypeTable::of_units(&self.store.view(), units);
        table.is_some_and(|table| self.types.set(table).is_ok())
    }

    /// The units that hold every distinct type of these names, with or without namespaces and template arguments, for
    /// [`Self::read_only_units`]; possibly more units. `None` when only all units would show that.
    pub fn units_of_types(&self, names: &[&str]) -> Option<Vec<u32>> {
        crate::dwarf::units_of_types(&self.store.view(), names)
    }

    /// Reads in advance the parts that an analysis of code needs first: symbols, types, and the places of variables.
    pub fn read_ahead(&self) {
        self.symbols();
        self.globals();
    }

    pub(crate) fn table(&self) -> &TypeTable {
        self.types.get_or_init(|| TypeTable::build(&self.store.view()))
    }
}

/// The separate debug file of a stripped file: by build id, else by name and checksum.
fn find_separate(elf: &Elf, companions: &mut dyn Companions, missing: &mut Vec<Companion>) -> Option<Elf> {
    if let Some(id) = &elf.build_id {
        let wanted = Companion::BuildId(id.clone());
        let found = companions.find(&wanted).and_then(|bytes| Elf::parse(bytes).ok());
        if let Some(separate) = found.filter(|separate| separate.build_id.as_ref() == Some(id)) {
            return Some(separate);
        }
        missing.push(wanted);
    }
    let (name, crc) = elf.debug_link.clone()?;
    let wanted = Companion::DebugLink { name, crc };
    let found = companions.find(&wanted).filter(|bytes| crc32fast::hash(bytes) == crc);
    let separate = found.and_then(|bytes| Elf::parse(bytes).ok());
    if separate.is_some() {
        missing.clear();
    } else {
        missing.push(wanted);
    }
    separate
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
