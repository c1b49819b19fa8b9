//! x86-64.
//!
//! Values of 1, 2 and 4 bytes and branches: one instruction inside one aligned 8-byte word, so every change,
//! the first included, is one aligned store. Values of 8 bytes: `movabs` with its immediate aligned to 8; later
//! changes are one aligned store, the first needs the trap protocol because its opcode is in the word before.

use super::{Encoding, Form, Kind, SITE_BYTES_MAX, Site, Store};

/// `int3`.
pub(in crate::imv) const TRAP: &[u8] = &[0xcc];

const DS_PREFIX: u8 = 0x3e;
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// Reads the dormant form and returns the register it loads, or `None` when the bytes differ from those that the
/// headers emit: such a site keeps reading the variable.
pub(in crate::imv) fn analyse(site: &Site, code: &[u8; SITE_BYTES_MAX]) -> Option<u8> {
    const RIP_RELATIVE: u8 = 0b0000_0101;
    let modrm = match (site.kind, site.size_bytes) {
        (Kind::Branch, _) => return (site.address.is_multiple_of(8) && code[0] == 0xe9).then_some(0),
        (Kind::Value, 1) if code[..3] == [DS_PREFIX, 0x0f, 0xb6] => code[3],
        (Kind::Value, 2) if code[..3] == [DS_PREFIX, 0x0f, 0xb7] => code[3],
        (Kind::Value, 4) if code[..3] == [DS_PREFIX, DS_PREFIX, 0x8b] => code[3],
        (Kind::Value, 8) if code[..3] == [DS_PREFIX; 3] && code[3] == 0x48 && code[4] == 0x8b => code[5],
        _ => return None,
    };
    let aligned = site.address % 8 == if site.size_bytes == 8 { 6 } else { 0 };
    (aligned && modrm & 0b1100_0111 == RIP_RELATIVE).then_some((modrm >> 3) & 7)
}

/// The immediate form of `site` for `value`. `code` is the site's present code.
pub(in crate::imv) fn encode(site: &Site, value: u64, code: &[u8; SITE_BYTES_MAX]) -> Encoding {
    let mut bytes = [0u8; SITE_BYTES_MAX];
    let len = match (site.kind, site.size_bytes) {
        (Kind::Branch, _) => {
            bytes[..5].copy_from_slice(&branch(site, value));
            5
        }
        (Kind::Value, 8) => {
            bytes[..2].copy_from_slice(&[0x48, 0xb8 | site.register]);
            bytes[2..10].copy_from_slice(&value.to_le_bytes());
            10
        }
        (Kind::Value, _) => {
            bytes[..4].copy_from_slice(&[DS_PREFIX, DS_PREFIX, 0xc7, 0xc0 | site.register]);
            bytes[4..8].copy_from_slice(&(value as u32).to_le_bytes());
            8
        }
    };
    let whole_word = |len: usize| {
        let mut word = [0u8; 8];
        word.copy_from_slice(&code[..8]);
        word[..len].copy_from_slice(&bytes[..len]);
        Store { address: site.address, value: u64::from_le_bytes(word), bytes: 8 }
    };
    let direct = match (site.kind, site.size_bytes) {
        (Kind::Value, 8) if site.form == Form::Immediate => {
            Some(Store { address: site.address + 2, value, bytes: 8 })
        }
        (Kind::Value, 8) => None,
        _ => Some(whole_word(len)),
    };
    Encoding { bytes, len, direct: direct.map(|store| ([store; 2], 1)) }
}

fn branch(site: &Site, value: u64) -> [u8; 5] {
    if value == 0 {
        return NOP5;
    }
    let distance = (site.target as i64).wrapping_sub(site.address as i64 + 5) as i32;
    let mut jump = [0xe9, 0, 0, 0, 0];
    jump[1..].copy_from_slice(&distance.to_le_bytes());
    jump
}

/// Nothing to do: instruction fetch is coherent with stores.
pub(in crate::imv) fn flush_code(_address: usize, _len: usize) {}

/// The address of the trap instruction that raised the signal.
pub(in crate::imv) fn trapped_at(context: &libc::ucontext_t) -> usize {
    (context.uc_mcontext.gregs[libc::REG_RIP as usize] as usize).wrapping_sub(1)
}

/// Makes `context` the one after the site's new instruction.
pub(in crate::imv) fn emulate(site: &Site, context: &mut libc::ucontext_t) {
    let registers = &mut context.uc_mcontext.gregs;
    let value = site.cell_value();
    let next = match (site.kind, site.size_bytes) {
        (Kind::Branch, _) if value != 0 => site.target,
        (Kind::Branch, _) => site.address + 5,
        (Kind::Value, 8) => site.address + 10,
        (Kind::Value, _) => site.address + 8,
    };
    if site.kind == Kind::Value {
        const BY_NUMBER: [i32; 8] = [
            libc::REG_RAX,
            libc::REG_RCX,
            libc::REG_RDX,
            libc::REG_RBX,
            libc::REG_RSP,
            libc::REG_RBP,
            libc::REG_RSI,
            libc::REG_RDI,
        ];
        registers[BY_NUMBER[usize::from(site.register & 7)] as usize] = value as i64;
    }
    registers[libc::REG_RIP as usize] = next as i64;
}
