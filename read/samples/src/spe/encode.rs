//! Writes records as a processor does: for tests and benches.

use super::record::{Access, Kind, TraceRecord, WITHOUT_TOP};

/// The alignment of records in bytes.
const ALIGNED_TO: usize = 64;
/// The bit of an address of code that was not executed in the secure world.
const NOT_SECURE: u64 = 1 << 63;

impl TraceRecord {
    /// Its bytes, at the end of others. Padding stands before the next record.
    pub fn encode(&self, into: &mut Vec<u8>) {
        let code = |address: u64| {
            address & WITHOUT_TOP | u64::from(self.level.unwrap_or_default()) << 61 | NOT_SECURE
        };
        let addresses = [
            (0xb0, self.instruction.map(code)),
            (0xb1, self.branch_target.map(code)),
            (0xb2, self.address),
            (0xb3, self.physical_address.map(|address| address | NOT_SECURE)),
            (0xb4, self.branch_before.map(code)),
        ];
        for (head, address) in addresses {
            put(into, head, address.map(u64::to_le_bytes));
        }
        put(into, 0x65, self.context.map(u32::to_le_bytes));
        let operation = match self.kind {
            Kind::Unsaid => None,
            Kind::Other => Some((0x48, 0)),
            Kind::Access(access) => Some((0x49, detail(access))),
            Kind::Branch { is_conditional, is_indirect } => {
                Some((0x4a, u8::from(is_conditional) | u8::from(is_indirect) << 1))
            }
        };
        if let Some((head, detail)) = operation {
            put(into, head, Some([detail]));
        }
        put(into, 0x62, Some((self.events as u32).to_le_bytes()));
        put(into, 0x43, self.source.filter(|source| *source < 256).map(|source| [source as u8]));
        put(into, 0x53, self.source.filter(|source| *source >= 256).map(u16::to_le_bytes));
        put(into, 0x98, self.total_cycles.map(u16::to_le_bytes));
        put(into, 0x99, self.issue_cycles.map(u16::to_le_bytes));
        put(into, 0x9a, self.translation_cycles.map(u16::to_le_bytes));
        match self.ticks {
            Some(ticks) => put(into, 0x71, Some(ticks.to_le_bytes())),
            None => into.push(1),
        }
        into.resize(into.len().next_multiple_of(ALIGNED_TO), 0);
    }
}

fn put<const N: usize>(into: &mut Vec<u8>, head: u8, value: Option<[u8; N]>) {
    if let Some(value) = value {
        into.push(head);
        into.extend_from_slice(&value);
    }
}

fn detail(access: Access) -> u8 {
    let is_extended = access.is_atomic || access.is_exclusive || access.is_ordered;
    let bits = [
        access.is_store,
        is_extended,
        access.is_atomic || access.is_vector,
        access.is_exclusive,
        access.is_ordered,
    ];
    bits.into_iter().rev().fold(0, |all, bit| all << 1 | u8::from(bit))
}
