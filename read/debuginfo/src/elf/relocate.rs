//! Relocatable files: addresses for their sections, and relocations of their debug sections.

use object::{Object, ObjectSection, ObjectSymbol, RelocationKind, RelocationTarget, SectionFlags};
use std::collections::HashMap;
use std::ops::Range;

/// The first address given to a section of a relocatable file. Not zero, so that no symbol looks
/// absent.
const FIRST_ADDRESS: u64 = 0x1_0000;

/// The beginning of the names of debug sections.
pub(super) const DEBUG_PREFIX: &[u8] = b".debug_";

/// The base to add to addresses in each section, by section index. All zero for linked files; in a relocatable file,
/// where every section starts at 0, one section after another. Debug sections of one name follow each other: each type
/// unit has a section of its own there, in a group that linkers keep once.
pub(super) fn section_bases<'data>(elf: &impl Object<'data>, is_relocatable: bool) -> Vec<u64> {
    let mut bases = Vec::new();
    if !is_relocatable {
        return bases;
    }
    let mut next = FIRST_ADDRESS;
    // The lengths so far of the debug sections of each name.
    let mut joined: HashMap<&[u8], u64> = HashMap::new();
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let start = if sh_flags.contains(object::elf::SHF_ALLOC) {
            let align = section.align().clamp(1, 1 << 21).next_power_of_two();
            let start = next.next_multiple_of(align);
            next = start.saturating_add(section.size()).min(1 << 62);
            start
        } else {
            let name = section.name_bytes().unwrap_or_default();
            let Ok(range) = section.compressed_file_range() else { continue };
            if !name.starts_with(DEBUG_PREFIX) {
                continue;
            }
            let len = joined.entry(name).or_default();
            let start = *len;
            *len = start.saturating_add(range.uncompressed_size);
            start
        };
        if start == 0 {
            continue;
        }
        let index = section.index().0;
        if bases.len() <= index {
            bases.resize(index + 1, 0);
        }
        if let Some(base) = bases.get_mut(index) {
            *base = start;
        }
    }
    bases
}

/// A stretch of a kernel module's code as the kernel places it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModulePart {
    /// Bytes from the start of the loaded module.
    pub distance: u64,
    /// The addresses that its section was given here.
    pub addresses: Range<u64>,
}

/// The places where the kernel puts the code of a module: executable sections, in their order, each at the next
/// multiple of its alignment. Sections freed after the start lie elsewhere.
pub(super) fn module_parts<'data>(elf: &impl Object<'data>, bases: &[u64]) -> Vec<ModulePart> {
    let mut parts = Vec::new();
    let mut next = 0u64;
    for section in elf.sections() {
        let SectionFlags::Elf { sh_flags, .. } = section.flags() else { continue };
        let is_code =
            sh_flags.contains(object::elf::SHF_ALLOC) && sh_flags.contains(object::elf::SHF_EXECINSTR);
        let is_freed = section.name_bytes().unwrap_or_default().starts_with(b".init");
        let (true, false, Some(start)) = (is_code, is_freed, bases.get(section.index().0)) else { continue };
        let align = section.align().clamp(1, 1 << 21).next_power_of_two();
        let distance = next.next_multiple_of(align);
        parts.push(ModulePart { distance, addresses: *start..start.saturating_add(section.size()) });
        next = distance.saturating_add(section.size()).min(1 << 62);
    }
    parts
}

/// Applies the absolute relocations of a debug section to its bytes. Others (offsets in thread-local blocks) keep their
/// addend, which is the value that the debug information needs.
pub(super) fn apply<'data, 'file, F: Object<'data>>(
    elf: &'file F,
    section: &F::Section<'file>,
    bases: &[u64],
    data: &mut [u8],
) {
    for (offset, relocation) in section.relocations() {
        if relocation.kind() != RelocationKind::Absolute {
            continue;
        }
        let target = match relocation.target() {
            RelocationTarget::Symbol(index) => elf.symbol_by_index(index).ok().map(|symbol| {
                let base = symbol.section_index().and_then(|index| bases.get(index.0)).copied();
                symbol.address().wrapping_add(base.unwrap_or(0))
            }),
            RelocationTarget::Section(index) => bases.get(index.0).copied(),
            _ => Some(0),
        };
        let width = usize::from(relocation.size() / 8);
        let place =
            usize::try_from(offset).ok().and_then(|start| data.get_mut(start..start.checked_add(width)?));
        if let (Some(target), Some(place)) = (target, place) {
            let mut old = [0; 8];
            if relocation.has_implicit_addend() && width <= 8 {
                old[..width].copy_from_slice(place);
            }
            let value = target
                .wrapping_add(u64::from_le_bytes(old))
                .wrapping_add(relocation.addend().cast_unsigned());
            for (byte, new) in place.iter_mut().zip(value.to_le_bytes()) {
                *byte = new;
            }
        }
    }
}
