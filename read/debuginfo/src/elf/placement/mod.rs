//! A kernel's module where the kernel has put it: its sections at their addresses, and its code as it runs there.

mod aarch64;

use super::Elf;
use crate::Error;
use lineup_model::abi::Machine;
use object::read::elf::ElfFile;
use object::{
    Object, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationKind, RelocationTarget,
    SectionFlags,
};
use std::collections::BTreeMap;

/// The addresses of a module's sections, and of the symbols in the kernel and other modules that its code refers to.
pub struct Placement<'a> {
    /// By the address that a section has when the file is read by itself, where its first byte lies.
    pub sections: BTreeMap<u64, u64>,
    /// The address of a symbol that the module does not define itself.
    pub symbol: &'a dyn Fn(&str) -> Option<u64>,
}

impl Elf {
    /// The same file with its sections where a kernel has put them; sections outside the placement keep their
    /// addresses. Relocations of x86-64 and 64-bit Arm are applied to the sections in memory. For other machines, code
    /// stays as in the file.
    pub(crate) fn place(mut self, placement: &Placement<'_>) -> Result<Elf, Error> {
        let placed = |address: u64| placement.sections.get(&address).copied().unwrap_or(address);
        self.bases.iter_mut().for_each(|base| *base = placed(*base));
        for section in &mut self.sections {
            let size = section.addresses.end - section.addresses.start;
            let start = placed(section.addresses.start);
            section.addresses = start..start.saturating_add(size);
        }
        if matches!(self.abi.machine, Machine::X86_64 | Machine::AArch64) {
            let bytes = self.bytes.clone();
            let data: &[u8] = &bytes;
            let elf = ElfFile::<object::elf::FileHeader64<object::LittleEndian>>::parse(data)
                .map_err(|error| Error::damaged("ELF", error))?;
            self.relocated = self.relocated(&elf, placement);
        }
        Ok(self)
    }

    /// The bytes of each section that relocations change.
    fn relocated<'data>(&self, elf: &impl Object<'data>, placement: &Placement<'_>) -> Vec<Option<Vec<u8>>> {
        let in_memory = elf.sections().filter(|section| match section.flags() {
            SectionFlags::Elf { sh_flags, .. } => sh_flags.contains(object::elf::SHF_ALLOC),
            _ => false,
        });
        let sections = in_memory.zip(&self.sections);
        let relocated = sections.map(|(section, placed)| {
            let mut data = section.data().ok().filter(|data| !data.is_empty())?.to_vec();
            let mut changed = false;
            for (offset, relocation) in section.relocations() {
                let Some(target) = self.target(elf, &relocation, placement) else { continue };
                let place = placed.addresses.start.wrapping_add(offset);
                changed |= self.write(&mut data, offset, &relocation, (target, place)).is_some();
            }
            changed.then_some(data)
        });
        relocated.collect()
    }

    /// The address that a relocation refers to; `None` when it is unknown.
    fn target<'data>(
        &self,
        elf: &impl Object<'data>,
        relocation: &Relocation,
        placement: &Placement<'_>,
    ) -> Option<u64> {
        let base = |index: object::SectionIndex| self.bases.get(index.0).copied();
        match relocation.target() {
            RelocationTarget::Symbol(index) => {
                let symbol = elf.symbol_by_index(index).ok()?;
                match symbol.section_index() {
                    Some(section) => Some(symbol.address().wrapping_add(base(section)?)),
                    None if symbol.is_undefined() => (placement.symbol)(symbol.name().ok()?),
                    None => Some(symbol.address()),
                }
            }
            RelocationTarget::Section(index) => base(index),
            _ => None,
        }
    }

    /// Writes the value of a relocation at its offset; `None` for a kind that is not known, and for a place outside.
    fn write(
        &self,
        data: &mut [u8],
        offset: u64,
        relocation: &Relocation,
        (target, place): (u64, u64),
    ) -> Option<()> {
        let target = target.wrapping_add(relocation.addend().cast_unsigned());
        let bytes = data.get_mut(usize::try_from(offset).ok()?..)?;
        match (self.abi.machine, relocation.flags()) {
            (Machine::AArch64, RelocationFlags::Elf { r_type }) => {
                aarch64::write(bytes, r_type, (target, place))
            }
            _ => write_x86_64(bytes, relocation, (target, place)),
        }
    }
}

/// Writes a relocation of x86-64 into the bytes that begin where it does; `None` for a kind that is not known.
fn write_x86_64(bytes: &mut [u8], relocation: &Relocation, (target, place): (u64, u64)) -> Option<()> {
    let value = match relocation.kind() {
        RelocationKind::Absolute => target,
        RelocationKind::Relative | RelocationKind::PltRelative => target.wrapping_sub(place),
        _ => return None,
    };
    let bytes = bytes.get_mut(..usize::from(relocation.size() / 8).min(8))?;
    bytes.iter_mut().zip(value.to_le_bytes()).for_each(|(byte, new)| *byte = new);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DebugInfo, NoCompanions};
    use object::write::{
        Object as NewObject, Relocation as NewRelocation, StandardSection, Symbol, SymbolSection,
    };
    use object::{Architecture, BinaryFormat, Endianness, RelocationFlags, SymbolFlags, SymbolScope};

    const TEXT: u64 = 0xffff_ffff_c000_0000;
    const DATA: u64 = 0xffff_ffff_c010_0000;
    const KERNEL: u64 = 0xffff_ffff_8100_1234;

    /// `call kfree; mov table(%rip), %eax` and a variable `table`.
    fn module() -> Vec<u8> {
        let mut file = NewObject::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let text = file.section_id(StandardSection::Text);
        let data = file.section_id(StandardSection::Data);
        file.append_section_data(text, &[0xe8, 0, 0, 0, 0, 0x8b, 0x05, 0, 0, 0, 0], 16);
        file.append_section_data(data, &[0; 64], 32);
        let mut symbol = |name: &str, section, value, size, kind| {
            file.add_symbol(Symbol {
                name: name.into(),
                value,
                size,
                kind,
                scope: SymbolScope::Dynamic,
                weak: false,
                section,
                flags: SymbolFlags::None,
            })
        };
        let kfree = symbol("kfree", SymbolSection::Undefined, 0, 0, object::SymbolKind::Text);
        symbol("enter", SymbolSection::Section(text), 0, 11, object::SymbolKind::Text);
        let table = symbol("table", SymbolSection::Section(data), 32, 8, object::SymbolKind::Data);
        let relative = |offset, symbol, r_type| NewRelocation {
            offset,
            symbol,
            addend: -4,
            flags: RelocationFlags::Elf { r_type },
        };
        file.add_relocation(text, relative(1, kfree, object::elf::R_X86_64_PLT32)).unwrap();
        file.add_relocation(text, relative(7, table, object::elf::R_X86_64_PC32)).unwrap();
        file.write().unwrap()
    }

    fn placed(bytes: Vec<u8>, symbol: &dyn Fn(&str) -> Option<u64>) -> DebugInfo {
        let alone = DebugInfo::parse(bytes.clone(), &mut NoCompanions).unwrap();
        let at = |name: &str| {
            let section = alone.sections().iter().find(|section| section.name == name);
            section.unwrap().addresses.start
        };
        let sections = BTreeMap::from([(at(".text"), TEXT), (at(".data"), DATA)]);
        DebugInfo::placed(bytes, &mut NoCompanions, &Placement { sections, symbol }).unwrap()
    }

    #[test]
    fn a_placed_module_has_its_symbols_and_its_code_as_the_kernel_runs_it() {
        let info = placed(module(), &|name| (name == "kfree").then_some(KERNEL));
        assert_eq!(info.symbol_at(TEXT + 3).unwrap().name, "enter");
        assert_eq!(info.symbol_at(DATA + 32).unwrap().name, "table");
        let code = info.code(TEXT..TEXT + 11).unwrap();
        let distance = |at: usize| i32::from_le_bytes(code[at..at + 4].try_into().unwrap());
        assert_eq!(TEXT.wrapping_add(5).wrapping_add_signed(i64::from(distance(1))), KERNEL);
        assert_eq!(TEXT.wrapping_add(11).wrapping_add_signed(i64::from(distance(7))), DATA + 32);
    }

    #[test]
    fn what_nobody_defines_stays_as_in_the_file() {
        let info = placed(module(), &|_| None);
        assert_eq!(info.code(TEXT..TEXT + 5), Some(&[0xe8, 0, 0, 0, 0][..]));
    }
}
