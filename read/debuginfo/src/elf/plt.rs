//! The symbol that each stub of the procedure linkage table jumps to.
//!
//! A stub loads its target from a slot that a dynamic relocation fills; the relocation names the symbol. So the reader
//! searches each stub for the one instruction that holds the slot's address.

use lineup_model::abi::Abi;
use lineup_model::machine::CodeMachine;
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use std::collections::HashMap;
use std::ops::Range;

/// All stubs whose target is known, sorted by address.
pub(super) fn stubs<'data>(elf: &impl Object<'data>, abi: Abi) -> Vec<(Range<u64>, String)> {
    let slots = slots(elf);
    let got =
        elf.section_by_name(".got.plt").or_else(|| elf.section_by_name(".got")).map(|got| got.address());
    let mut stubs = Vec::new();
    let Some(machine) = abi.machine.description().code else { return stubs };
    for section in elf.sections() {
        let name = section.name_bytes().unwrap_or_default();
        if !(name.starts_with(b".plt") || name == b".iplt") {
            continue;
        }
        let Ok(data) = section.data() else { continue };
        let code = Code { data, address: section.address(), got: got.unwrap_or(0) };
        for (range, slot) in code.jumps(machine) {
            if let Some(name) = slots.get(&slot) {
                stubs.push((range, name.clone()));
            }
        }
    }
    stubs.sort_by_key(|(range, _)| range.start);
    stubs
}

/// Slot address to symbol name, from the dynamic relocations.
fn slots<'data>(elf: &impl Object<'data>) -> HashMap<u64, String> {
    let (Some(relocations), Some(table)) = (elf.dynamic_relocations(), elf.dynamic_symbol_table()) else {
        return HashMap::new();
    };
    relocations
        .filter_map(|(slot, relocation)| {
            let RelocationTarget::Symbol(index) = relocation.target() else { return None };
            let name = table.symbol_by_index(index).ok()?.name_bytes().ok()?.to_vec();
            (!name.is_empty()).then(|| (slot, String::from_utf8_lossy(&name).into_owned()))
        })
        .collect()
}

struct Code<'data> {
    data: &'data [u8],
    address: u64,
    got: u64,
}

impl Code<'_> {
    /// Each stub's addresses with the address of the slot that it jumps through.
    fn jumps(&self, machine: CodeMachine) -> Vec<(Range<u64>, u64)> {
        match machine {
            CodeMachine::X86_64 => self.x86(|code, offset| {
                let displacement = code.word(offset + 2)?.cast_signed();
                Some(code.at(offset).wrapping_add(6).wrapping_add_signed(i64::from(displacement)))
            }),
            CodeMachine::I386 => self.x86(|code, offset| match code.data.get(offset + 1)? {
                0x25 => code.word(offset + 2).map(u64::from),
                _ => Some(code.got.wrapping_add(u64::from(code.word(offset + 2)?)) & 0xffff_ffff),
            }),
            CodeMachine::AArch64 => self.aarch64(),
            CodeMachine::Arm => self.arm(),
        }
    }

    /// The link address of a byte. A section may claim to lie where addresses end.
    fn at(&self, offset: usize) -> u64 {
        self.address.wrapping_add(offset as u64)
    }

    fn word(&self, offset: usize) -> Option<u32> {
        let bytes = self.data.get(offset..offset.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// Stubs of 16 bytes (8 in sections that declare that size), with one indirect jump `ff 25` or `ff a3` behind an
    /// optional landing pad and prefix.
    fn x86(&self, slot: impl Fn(&Self, usize) -> Option<u64>) -> Vec<(Range<u64>, u64)> {
        let mut found = Vec::new();
        for start in (0..self.data.len()).step_by(8) {
            for lead in [0, 1, 4, 5] {
                let at = start + lead;
                let is_lead = match lead {
                    0 => true,
                    1 => self.data.get(start) == Some(&0xf2),
                    4 => self.word(start).is_some_and(|word| word & 0x00ff_ffff == 0x001e_0ff3),
                    _ => {
                        self.word(start).is_some_and(|word| word & 0x00ff_ffff == 0x001e_0ff3)
                            && self.data.get(start + 4) == Some(&0xf2)
                    }
                };
                let is_jump = matches!(self.data.get(at..at + 2), Some([0xff, 0x25] | [0xff, 0xa3]));
                if is_lead
                    && is_jump
                    && let Some(slot) = slot(self, at)
                {
                    let address = self.at(start);
                    found.push((address..address.saturating_add(16), slot));
                }
            }
        }
        for index in 1..found.len() {
            let next = found[index].0.start;
            found[index - 1].0.end = found[index - 1].0.end.min(next);
        }
        found
    }

    /// `adrp x16, page; ldr x17, [x16, #offset]`.
    fn aarch64(&self) -> Vec<(Range<u64>, u64)> {
        let mut found = Vec::new();
        for offset in (0..self.data.len().saturating_sub(7)).step_by(4) {
            let (Some(adrp), Some(ldr)) = (self.word(offset), self.word(offset + 4)) else { break };
            if adrp & 0x9f00_001f != 0x9000_0010 || ldr & 0xffc0_03ff != 0xf940_0211 {
                continue;
            }
            let pages = i64::from((adrp >> 29) & 3 | ((adrp >> 5) & 0x7_ffff) << 2);
            let pages = (pages << 43) >> 43;
            let address = self.at(offset);
            let page = (address & !0xfff).wrapping_add_signed(pages << 12);
            found.push((
                address..address.saturating_add(16),
                page.wrapping_add(u64::from((ldr >> 10) & 0xfff) * 8),
            ));
        }
        found
    }

    /// `add ip, pc, #a; add ip, ip, #b; ldr pc, [ip, #c]!`.
    fn arm(&self) -> Vec<(Range<u64>, u64)> {
        let immediate = |word: u32| (word & 0xff).rotate_right((word >> 8 & 0xf) * 2);
        let mut found = Vec::new();
        for offset in (0..self.data.len().saturating_sub(11)).step_by(4) {
            let (Some(first), Some(second), Some(load)) =
                (self.word(offset), self.word(offset + 4), self.word(offset + 8))
            else {
                break;
            };
            if first & 0xffff_f000 != 0xe28f_c000
                || second & 0xffff_f000 != 0xe28c_c000
                || load & 0xffff_f000 != 0xe5bc_f000
            {
                continue;
            }
            let address = self.at(offset);
            let slot = (address as u32)
                .wrapping_add(8)
                .wrapping_add(immediate(first))
                .wrapping_add(immediate(second))
                .wrapping_add(load & 0xfff);
            found.push((address..address.saturating_add(12), u64::from(slot)));
        }
        found
    }
}
