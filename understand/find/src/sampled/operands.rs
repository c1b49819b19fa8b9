//! The memory an instruction accesses, in the registers that perf samples.

use lineup_debuginfo::DebugInfo;
use lineup_explain::instruction::{InstructionSet, Register, decode};
use lineup_model::access::AccessKind;
use lineup_model::machine::CodeMachine;
use lineup_samples::data_source::Operation;
use lineup_samples::operand::Operand;

/// No instruction is longer.
const LONGEST_BYTES: u64 = 15;
/// Perf's numbers of the registers of x86-64, by those of DWARF.
const X86_64: [u32; 16] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23];
/// Registers of AArch64 up to the stack pointer have the same numbers in both.
const AARCH64: u16 = 32;

/// The one operand in memory of the instruction at a link address. `None` without such an operand, with several, or
/// when the machine's registers are not known.
pub fn operand_at(debug: &DebugInfo, at: u64) -> Option<Operand> {
    let machine = debug.abi().machine.description().code?;
    if !matches!(machine, CodeMachine::X86_64 | CodeMachine::AArch64) {
        return None;
    }
    // Less at the end of a section.
    let bytes = (1..=LONGEST_BYTES).rev().find_map(|size| debug.code(at..at.checked_add(size)?))?;
    let decoded = decode(InstructionSet::usual(machine), at, bytes).ok()?;
    let instruction = decoded.first().filter(|first| first.address == at)?;
    let first = instruction.touches.first()?;
    if first.at.is_thread_local || instruction.touches.iter().any(|touch| touch.at != first.at) {
        return None;
    }
    let number = |register: Register| match machine {
        CodeMachine::X86_64 => X86_64.get(usize::from(register.0)).copied(),
        _ => (register.0 < AARCH64).then_some(u32::from(register.0)),
    };
    let base = match first.at.base {
        Some(base) => Some(number(base)?),
        None => None,
    };
    let index = match first.at.index {
        Some((index, factor)) => Some((number(index)?, factor)),
        None => None,
    };
    let uses = |register: Register| {
        first.at.base == Some(register) || first.at.index.is_some_and(|(index, _)| index == register)
    };
    let does = |kind: AccessKind| instruction.touches.iter().any(|touch| touch.kind == kind);
    Some(Operand {
        base,
        index,
        displacement: first.at.displacement,
        is_overwritten: instruction.sets.iter().any(|(register, _)| uses(*register)),
        operation: match (does(AccessKind::Load), does(AccessKind::Store)) {
            (true, true) => Operation::Both,
            (false, true) => Operation::Store,
            _ => Operation::Load,
        },
    })
}
