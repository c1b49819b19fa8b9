//! The possible targets of a jump that looks its target up in a table.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeSet;
use std::ops::Range;

/// Entries of a table that are read at most.
const MOST_ENTRIES: u64 = 4096;

/// The places in `range` that some table of the function names to which `jump` can lead: those of its own table when it
/// names that, else those of every table whose address the function takes. Empty without a table. `data` gives the
/// file's bytes at link addresses.
pub(crate) fn targets<'d>(
    jump: &Instruction,
    function: &[Instruction],
    range: &Range<u64>,
    data: &dyn Fn(Range<u64>) -> Option<&'d [u8]>,
) -> BTreeSet<u64> {
    let read = Tables { range, data };
    if jump.op0_kind() == OpKind::Memory && jump.memory_base() == Register::None {
        return read.addresses(jump.memory_displacement64());
    }
    let is_lea = |one: &&Instruction| one.mnemonic() == Mnemonic::Lea && one.is_ip_rel_memory_operand();
    let relative = function.iter().filter(is_lea).map(Instruction::ip_rel_memory_address);
    // The address of a table may also be a constant, or part of an operand that loads from it.
    let loaded = function.iter().filter(|one| {
        one.flow_control() == FlowControl::Next
            && one.op1_kind() == OpKind::Memory
            && one.memory_base() == Register::None
    });
    let loaded = loaded.map(Instruction::memory_displacement64);
    let distances = relative.clone().flat_map(|table| read.distances(table));
    let addresses = relative.chain(loaded).flat_map(|table| read.addresses(table));
    distances.chain(addresses).collect()
}

struct Tables<'a, 'd> {
    range: &'a Range<u64>,
    data: &'a dyn Fn(Range<u64>) -> Option<&'d [u8]>,
}

impl Tables<'_, '_> {
    /// A table of addresses.
    fn addresses(&self, table: u64) -> BTreeSet<u64> {
        let entry = |number: u64| {
            let at = table.checked_add(8 * number)?;
            let bytes = (self.data)(at..at.checked_add(8)?)?;
            Some(u64::from_le_bytes(bytes.try_into().ok()?))
        };
        self.places(entry)
    }

    /// A table of distances from its beginning.
    fn distances(&self, table: u64) -> BTreeSet<u64> {
        let entry = |number: u64| {
            let at = table.checked_add(4 * number)?;
            let bytes = (self.data)(at..at.checked_add(4)?)?;
            let distance = i32::from_le_bytes(bytes.try_into().ok()?);
            Some(table.wrapping_add_signed(i64::from(distance)))
        };
        self.places(entry)
    }

    /// The entries up to the first that lies elsewhere. It may read on into the next table of the function: too many
    /// places only leave more open.
    fn places(&self, entry: impl Fn(u64) -> Option<u64>) -> BTreeSet<u64> {
        (0..MOST_ENTRIES).map_while(entry).take_while(|place| self.range.contains(place)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn decoded(code: &[u8]) -> Vec<Instruction> {
        Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE).into_iter().collect()
    }

    #[test]
    fn a_table_of_addresses_that_the_jump_names() {
        // jmp [0x2000 + rdx * 8]
        let code = decoded(&[0xff, 0x24, 0xd5, 0x00, 0x20, 0x00, 0x00]);
        let table: Vec<u8> =
            [0x1010u64, 0x1020, 0x1010, 0x9000, 0x1030].iter().flat_map(|at| at.to_le_bytes()).collect();
        let data =
            |at: Range<u64>| table.get(at.start.checked_sub(0x2000)? as usize..(at.end - 0x2000) as usize);
        assert_eq!(targets(&code[0], &code, &(0x1000..0x1100), &data), BTreeSet::from([0x1010, 0x1020]));
    }

    #[test]
    fn a_table_of_distances_that_the_function_takes_the_address_of() {
        // lea rdx, [rip + 0xff9]: 0x2000; jmp rax
        let code = decoded(&[0x48, 0x8d, 0x15, 0xf9, 0x0f, 0x00, 0x00, 0xff, 0xe0]);
        let table: Vec<u8> = [-0xff0i32, -0xfe0, 0].iter().flat_map(|at| at.to_le_bytes()).collect();
        let data =
            |at: Range<u64>| table.get(at.start.checked_sub(0x2000)? as usize..(at.end - 0x2000) as usize);
        assert_eq!(targets(&code[1], &code, &(0x1000..0x1100), &data), BTreeSet::from([0x1010, 0x1020]));
        assert_eq!(targets(&code[1], &code, &(0x1000..0x1100), &|_| None), BTreeSet::new());
    }
}
