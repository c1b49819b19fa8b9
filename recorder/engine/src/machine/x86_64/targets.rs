//! Code for the entries of the table of [`crate::cache::targets`]. It lies in the lowest 2 GB, so that it is named
//! without a register.

use super::assembly::{Address, Code, JRCXZ, RCX, RDX};
use super::general_registers::LOG;
use crate::machine::Mark;
use crate::machine::x86_64::slot_registers::SlotRegisters;
use crate::threads::slots::{at, reason};

/// Continues at `inner` when `rcx` is the target, else at `next`.
pub(crate) fn node(slots: i32, target: u64, at: u64, inner: u64, next: u64) -> (Vec<u8>, Vec<Mark>) {
    let mut code = Code::default();
    let mut marks = vec![Mark { offset: 0, pc: None, held: SlotRegisters::Target(0) }];
    let add = |code: &mut Code, value: u64| {
        code.move_wide(RDX, value);
        let sum = Address { base: Some(RCX), index: Some((RDX, 1)), distance: 0 };
        code.lea(RCX, sum);
    };
    add(&mut code, target.wrapping_neg());
    marks.push(Mark { offset: code.here(), pc: None, held: SlotRegisters::Target(target.cast_signed()) });
    let hit = code.jump_short(JRCXZ);
    add(&mut code, target);
    marks.push(Mark { offset: code.here(), pc: None, held: SlotRegisters::Target(0) });
    let miss = code.jump_always_to_side();
    code.land_short(hit);
    // From here on `rcx` is the program's, or about to be.
    marks.push(Mark { offset: code.here(), pc: Some(target), held: SlotRegisters::Target(0) });
    code.load_slot(RCX, slots + at!(counter));
    code.load_slot(RDX, slots + at!(second));
    let jump = code.jump_always_to_side();
    for (hole, to) in [(miss, next), (jump, inner)] {
        let distance = to.wrapping_sub(at + hole as u64 + 4) as u32;
        code.bytes[hole..hole + 4].copy_from_slice(&distance.to_le_bytes());
    }
    (code.bytes, marks)
}

/// Hands over to the engine, which looks for the target.
pub(crate) fn last(slots: i32) -> (Vec<u8>, Vec<Mark>) {
    let mut code = Code::default();
    let mut marks = vec![Mark { offset: 0, pc: None, held: SlotRegisters::Target(0) }];
    code.store_slot(slots + at!(pc), RCX);
    code.load_slot(RCX, slots + at!(counter));
    marks.push(Mark { offset: code.here(), pc: None, held: SlotRegisters::Missed });
    code.load_slot(RDX, slots + at!(second));
    code.store_slot(slots + at!(log), LOG);
    code.load_slot(LOG, slots + at!(own.logged));
    marks.push(Mark { offset: code.here(), pc: None, held: SlotRegisters::Nothing });
    code.store_slot_value(slots + at!(link), 0);
    code.store_slot_value(slots + at!(reason), reason::GO);
    code.jump_to_slot(slots + at!(gate));
    (code.bytes, marks)
}
