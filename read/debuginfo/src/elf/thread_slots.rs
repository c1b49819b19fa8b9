//! Words through which code finds thread-local variables: the loader fills them in.

use lineup_model::abi::Machine;
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget};

/// A word of the global offset table that the loader fills in for a thread-local variable of the file itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadSlot {
    /// Link address.
    pub address: u64,
    /// Its value once the program runs.
    pub holds: SlotValue,
}

/// The value that the loader puts into a [`ThreadSlot`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SlotValue {
    /// The distance from the thread's base of the variable at this offset in the file's block.
    Distance {
        /// Offset in the block.
        offset: u64,
    },
    /// The number under which threads' vectors hold the file's block.
    Module,
}

/// The slots of a file. `word` reads the file's word at a link address, where the addend is.
pub(super) fn read<'data>(
    elf: &impl Object<'data>,
    machine: Machine,
    word: impl Fn(u64) -> Option<u64>,
) -> Vec<ThreadSlot> {
    let Some(relocations) = elf.dynamic_relocations() else { return Vec::new() };
    let table = elf.dynamic_symbol_table();
    let mut slots = Vec::new();
    for (place, relocation) in relocations {
        let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
        let Some((is_module, skip)) = meaning(machine, r_type.0) else { continue };
        let symbol = match relocation.target() {
            RelocationTarget::Symbol(index) if index.0 > 0 => {
                let found = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
                found.filter(|symbol| !symbol.is_undefined()).map(|symbol| symbol.address())
            }
            _ => Some(0),
        };
        let (Some(symbol), Some(address)) = (symbol, place.checked_add(skip)) else { continue };
        let added = match relocation.has_implicit_addend() {
            true => word(address).unwrap_or(0),
            false => relocation.addend().cast_unsigned(),
        };
        let offset = symbol.wrapping_add(added);
        let holds = if is_module { SlotValue::Module } else { SlotValue::Distance { offset } };
        slots.push(ThreadSlot { address, holds });
    }
    slots
}

/// True when a relocation asks for the module's number, and the number of bytes it stands before the word. `None` for a
/// relocation that asks for something else.
fn meaning(machine: Machine, kind: u32) -> Option<(bool, u64)> {
    let threads = &machine.description().threads;
    match kind {
        _ if kind == threads.distance_relocation => Some((false, 0)),
        _ if kind == threads.module_relocation => Some((true, 0)),
        _ => threads
            .descriptor_relocation
            .filter(|(known, _)| *known == kind)
            .map(|(_, before)| (false, before)),
    }
}
