//! AArch64.
//!
//! Every site is one aligned 4-byte instruction. Values of 1 and 2 bytes become `movz`. Wider values need more than one
//! instruction, and a thread stopped between two of them would join an old half to a new one; so they become a load
//! from a literal that lies on the site's own 16 bytes. It fetches no line that the code does not need already, but the
//! load goes through the data cache. Branches change between `b` and `nop`, which the architecture allows while other
//! cores execute them; `movz` is not on that list, so its direct change rests on the barrier and on measurement, as on
//! x86-64.

use super::{Encoding, Form, Kind, SITE_BYTES_MAX, Site, Store};
use std::arch::asm;

/// `brk #0x4c49`.
pub(in crate::imv) const TRAP: &[u8] = &(0xd420_0000u32 | 0x4c49 << 5).to_le_bytes();

const NOP: u32 = 0xd503_201f;
/// Bytes from the site to its literal.
const LITERAL_OFFSET: usize = 8;
/// Bytes from the start of the out-of-line dormant form to its load.
const DORMANT_LOAD_OFFSET: usize = 4;

/// Reads the dormant form and returns the register it loads, or `None` when the bytes differ from those that the
/// headers emit: such a site keeps reading the variable.
pub(in crate::imv) fn analyse(site: &Site, code: &[u8; SITE_BYTES_MAX]) -> Option<u8> {
    let is_branch = word(code, 0) >> 26 == 0b000101;
    let aligned = site.address % if site.size_bytes >= 4 && site.kind == Kind::Value { 16 } else { 4 } == 0;
    if !is_branch || !aligned {
        return None;
    }
    match site.kind {
        Kind::Branch => Some(0),
        Kind::Value => {
            // SAFETY: `target` is the out-of-line dormant form that the header emitted with the site, in the same
            // section of the same image: two instructions or more.
            let load = unsafe { ((site.target + DORMANT_LOAD_OFFSET) as *const u32).read_volatile() };
            let opcode = load & 0xffc0_0000;
            let expected = match site.size_bytes {
                1 => 0x3940_0000,
                2 => 0x7940_0000,
                4 => 0xb940_0000,
                _ => 0xf940_0000,
            };
            (opcode == expected).then_some((load & 31) as u8)
        }
    }
}

fn word(code: &[u8; SITE_BYTES_MAX], at: usize) -> u32 {
    u32::from_le_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]])
}

/// The immediate form of `site` for `value`. `code` is the site's present code.
pub(in crate::imv) fn encode(site: &Site, value: u64, code: &[u8; SITE_BYTES_MAX]) -> Encoding {
    let mut bytes = *code;
    let register = u32::from(site.register);
    let literal_words = (LITERAL_OFFSET as u32 / 4) << 5;
    let (instruction, len) = match (site.kind, site.size_bytes) {
        (Kind::Branch, _) if value == 0 => (NOP, 4),
        (Kind::Branch, _) => (branch(site), 4),
        (Kind::Value, 1 | 2) => (0x5280_0000 | (value as u32 & 0xffff) << 5 | register, 4),
        (Kind::Value, 4) => (0x1800_0000 | literal_words | register, 16),
        (Kind::Value, _) => (0x5800_0000 | literal_words | register, 16),
    };
    bytes[..4].copy_from_slice(&instruction.to_le_bytes());
    let code_store = Store { address: site.address, value: u64::from(instruction), bytes: 4 };
    let direct = if len == 16 {
        bytes[LITERAL_OFFSET..].copy_from_slice(&value.to_le_bytes());
        let literal = Store { address: site.address + LITERAL_OFFSET, value, bytes: 8 };
        ([literal, code_store], if site.form == Form::Immediate { 1 } else { 2 })
    } else {
        ([code_store; 2], 1)
    };
    Encoding { bytes, len, direct: Some(direct) }
}

fn branch(site: &Site) -> u32 {
    let words = (site.target as i64).wrapping_sub(site.address as i64) / 4;
    0x1400_0000 | (words as u32 & 0x03ff_ffff)
}

/// Makes stores to code visible to instruction fetch, on every core.
pub(in crate::imv) fn flush_code(address: usize, len: usize) {
    // The smallest line size that the architecture allows, in bytes: correct on every core, if not the fastest.
    const SMALLEST_LINE_BYTES: usize = 16;
    let first = address & !(SMALLEST_LINE_BYTES - 1);
    let lines = || (first..address + len).step_by(SMALLEST_LINE_BYTES);
    // SAFETY: cache maintenance by address on mapped pages changes no architectural state; Linux lets user code
    // execute these.
    unsafe {
        for line in lines() {
            asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        asm!("dsb ish", options(nostack, preserves_flags));
        for line in lines() {
            asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags));
        }
        asm!("dsb ish", "isb", options(nostack, preserves_flags));
    }
}

/// The address of the trap instruction that raised the signal.
pub(in crate::imv) fn trapped_at(context: &libc::ucontext_t) -> usize {
    context.uc_mcontext.pc as usize
}

/// Makes `context` the one after the site's new instruction.
pub(in crate::imv) fn emulate(site: &Site, context: &mut libc::ucontext_t) {
    let value = site.cell_value();
    if site.kind == Kind::Value {
        context.uc_mcontext.regs[usize::from(site.register)] = value;
    }
    let taken = site.kind == Kind::Branch && value != 0;
    context.uc_mcontext.pc = if taken { site.target } else { site.address + 4 } as u64;
}
