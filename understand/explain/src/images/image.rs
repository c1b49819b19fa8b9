//! The known facts about one file of the program.

use crate::code::instruction::InstructionSet;
use lineup_debuginfo::{DebugInfo, FileKind, Mapping, Section};
use lineup_model::abi::Abi;
use lineup_model::image::LoadedImage;
use lineup_model::program::{Function, Symbol, SymbolKind, Variable};
use lineup_model::types::Types;
use std::ops::Range;
use std::sync::LazyLock;

/// One file of the program: its mapping and its debug info.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    /// Its mapping.
    pub loaded: LoadedImage,
    /// Its symbols and debug info, when the file could be read.
    pub debug: Option<&'a DebugInfo>,
    /// The functions that cover the recorded program counters, by entry.
    pub functions: Vec<Function>,
}

/// A file at one more place: another process had it mapped there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Position of the file among the images.
    pub image: usize,
    /// Its mapping.
    pub loaded: LoadedImage,
}

/// The image that code of an image means by a link address: itself. The target of a kernel module's reference may lie
/// in the kernel or another module, all of which have their addresses in common.
pub(crate) fn meant(images: &[Image<'_>], own: usize, link: u64) -> usize {
    let module = images.get(own).filter(|own| own.is_module() && own.section_at(link).is_none());
    let other = module.and_then(|_| images.iter().position(|image| image.section_at(link).is_some()));
    other.unwrap_or(own)
}

static NO_TYPES: LazyLock<Types> = LazyLock::new(Types::new);

impl<'a> Image<'a> {
    /// An image whose functions are those that cover `pcs` (runtime addresses; those of other images
    /// are passed over).
    pub fn new(
        loaded: LoadedImage,
        debug: Option<&'a DebugInfo>,
        pcs: &mut dyn Iterator<Item = u64>,
    ) -> Self {
        let mut own = pcs.filter(|pc| loaded.contains(*pc)).map(|pc| loaded.to_link(pc));
        let functions = debug.map(|debug| debug.functions_covering(&mut own)).unwrap_or_default();
        Image { loaded, debug, functions }
    }

    /// True for a shared library, by the name of its file: `libc.so.6`.
    pub fn is_shared_library(&self) -> bool {
        self.loaded.is_shared_library()
    }

    /// True for a kernel's module.
    pub fn is_module(&self) -> bool {
        self.debug.is_some_and(|debug| debug.kind() == FileKind::Relocatable)
    }

    /// Its machine and data model.
    pub fn abi(&self) -> Option<Abi> {
        self.debug.map(DebugInfo::abi)
    }

    /// Its types.
    pub fn types(&self) -> &'a Types {
        self.debug.map_or(&NO_TYPES, DebugInfo::types)
    }

    /// Its global and static variables.
    pub fn globals(&self) -> &'a [Variable] {
        self.debug.map(DebugInfo::globals).unwrap_or_default()
    }

    /// Its symbols, by address.
    pub fn symbols(&self) -> &'a [Symbol] {
        self.debug.map(DebugInfo::symbols).unwrap_or_default()
    }

    /// The section that holds a link address.
    pub fn section_at(&self, link: u64) -> Option<&'a Section> {
        self.debug?.section_at(link)
    }

    /// The section of a name.
    pub fn section_named(&self, name: &str) -> Option<&'a Section> {
        self.debug?.sections().iter().find(|section| section.name == name)
    }

    /// The symbol that covers a link address.
    pub fn symbol_at(&self, link: u64) -> Option<&'a Symbol> {
        self.debug?.symbol_at(link)
    }

    /// The index of one of [`Image::symbols`].
    pub fn symbol_index(&self, symbol: &Symbol) -> Option<u32> {
        let symbols = self.symbols();
        let first = symbols.partition_point(|before| before.address < symbol.address);
        let after = symbols.get(first..)?.iter().position(|one| std::ptr::eq(one, symbol))?;
        u32::try_from(first + after).ok()
    }

    /// The data symbols that lie at least partly between two link addresses, with their indices. A symbol that begins
    /// before another and reaches over it is found from at most 64 symbols away.
    pub fn data_symbols(&self, start: u64, end: u64) -> Vec<(u32, &'a Symbol)> {
        let symbols = self.symbols();
        let first = symbols.partition_point(|symbol| symbol.address < start).saturating_sub(64);
        let candidates = symbols.iter().zip(0u32..).skip(first).take_while(|(one, _)| one.address < end);
        let inside = candidates.filter(|(one, _)| {
            one.kind == SymbolKind::Data && one.address.saturating_add(one.size_bytes) > start
        });
        inside.filter(|(one, _)| one.size_bytes > 0).map(|(one, index)| (index, one)).collect()
    }

    /// The name of the function that a call to a link address runs: through the procedure linkage table, or a symbol
    /// that starts there.
    pub fn callee_name(&self, link: u64) -> Option<&'a str> {
        let debug = self.debug?;
        debug.plt_name(link).or_else(|| {
            let after = debug.symbols().partition_point(|symbol| symbol.address < link);
            debug
                .symbols()
                .get(after)
                .filter(|symbol| symbol.address == link)
                .map(|symbol| symbol.name.as_str())
        })
    }

    /// Bytes of the file at link addresses.
    pub fn bytes(&self, range: &Range<u64>) -> Option<&'a [u8]> {
        self.debug?.code(range.clone())
    }

    /// Runtime addresses from the first byte mapped to the last byte of any section: data that starts as zero lies
    /// behind the file's bytes.
    pub fn runtime_range(&self) -> Range<u64> {
        let sections = self.debug.map(DebugInfo::sections).unwrap_or_default();
        let end = sections.iter().map(|section| self.loaded.to_runtime(section.addresses.end)).max();
        self.loaded.start..self.loaded.end.max(end.unwrap_or(0))
    }

    /// Splits a range of code at mapping symbols and leaves out data.
    pub fn code_runs(&self, range: &Range<u64>) -> Vec<(Range<u64>, InstructionSet)> {
        let code = self.abi().and_then(|abi| abi.machine.description().code);
        let Some(usual) = code.map(InstructionSet::usual) else { return Vec::new() };
        let marks = self.debug.map(DebugInfo::mapping_symbols).unwrap_or_default();
        let first = marks.partition_point(|mark| mark.address <= range.start);
        let set = |mapping: Mapping| match mapping {
            Mapping::A32 => Some(InstructionSet::A32),
            Mapping::Thumb => Some(InstructionSet::Thumb),
            Mapping::A64 => Some(InstructionSet::AArch64),
            Mapping::Data => None,
        };
        let before = first.checked_sub(1).and_then(|index| marks.get(index));
        let mut current = before.map_or(Some(usual), |mark| set(mark.mapping));
        let mut runs = Vec::new();
        let mut start = range.start;
        let inside =
            marks.get(first..).unwrap_or_default().iter().take_while(|mark| mark.address < range.end);
        for (address, next) in inside.map(|mark| (mark.address, set(mark.mapping))).chain([(range.end, None)])
        {
            if let Some(set) = current
                && start < address
            {
                runs.push((start..address, set));
            }
            (start, current) = (address, next);
        }
        runs
    }
}
