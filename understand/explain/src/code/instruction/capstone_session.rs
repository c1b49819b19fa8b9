//! Decoding of Arm code with Capstone: sessions and the walk over bytes.

use super::effects::Instruction;
use crate::error::ExplainError;
use capstone::{Capstone, Insn, InsnDetail, prelude::ArchDetail};

/// One decoded instruction as Capstone sees it.
pub(super) struct Decoded<'a> {
    pub(super) address: u64,
    pub(super) length: usize,
    /// The base mnemonic, without condition and width suffix.
    pub(super) name: String,
    /// The whole text of the operands.
    pub(super) operand_text: &'a str,
    pub(super) detail: ArchDetail<'a>,
}

/// Translates every instruction in `bytes`; after bytes that are no instruction, continues `step` bytes later.
pub(super) fn translate_all(
    session: &Capstone,
    address: u64,
    bytes: &[u8],
    step: usize,
    translate: impl Fn(&Decoded<'_>) -> Instruction,
) -> Result<Vec<Instruction>, ExplainError> {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| rest.len() >= step) {
        let found = session.disasm_all(rest, address + at as u64).map_err(failure)?;
        for instruction in found.iter() {
            let detail = session.insn_detail(instruction).map_err(failure)?;
            out.push(translate(&view(session, instruction, &detail)));
            at += instruction.len();
        }
        at += if bytes.len().saturating_sub(at) > 0 { step } else { 0 };
        if at >= bytes.len() {
            break;
        }
    }
    Ok(out)
}

fn view<'a>(session: &Capstone, instruction: &'a Insn<'_>, detail: &'a InsnDetail<'_>) -> Decoded<'a> {
    Decoded {
        address: instruction.address(),
        length: instruction.len(),
        name: session.insn_name(instruction.id()).unwrap_or_default(),
        operand_text: instruction.op_str().unwrap_or_default(),
        detail: detail.arch_detail(),
    }
}

pub(super) fn failure(error: capstone::Error) -> ExplainError {
    ExplainError::Disassembler(error.to_string())
}
