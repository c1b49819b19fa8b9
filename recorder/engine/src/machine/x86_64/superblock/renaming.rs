//! Instructions that use the register that holds the log: they get another register, or the slot with its value.

use crate::machine::x86_64::assembly::Gpr;
use crate::machine::x86_64::general_registers::FULL_REGISTERS;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

/// Another register of the same part.
fn renamed(register: Register, to: Gpr) -> Register {
    if register.full_register() != Register::R15 || !register.is_gpr() {
        return register;
    }
    let first = match register.size() {
        8 => return FULL_REGISTERS[usize::from(to.0)],
        4 => Register::EAX,
        2 => Register::AX,
        _ => {
            // The second half of these numbers stands for the high halves of words.
            const BYTES: [Register; 16] = [
                Register::AL,
                Register::CL,
                Register::DL,
                Register::BL,
                Register::SPL,
                Register::BPL,
                Register::SIL,
                Register::DIL,
                Register::R8L,
                Register::R9L,
                Register::R10L,
                Register::R11L,
                Register::R12L,
                Register::R13L,
                Register::R14L,
                Register::R15L,
            ];
            return BYTES[usize::from(to.0)];
        }
    };
    Register::try_from(first as usize + usize::from(to.0)).unwrap_or(register)
}

/// The instruction with another register in the log's place.
pub(super) fn with_register(instruction: &Instruction, to: Gpr) -> Instruction {
    let mut own = *instruction;
    for number in 0..own.op_count() {
        if own.op_kind(number) == OpKind::Register {
            own.set_op_register(number, renamed(own.op_register(number), to));
        }
    }
    own.set_memory_base(renamed(own.memory_base(), to));
    own.set_memory_index(renamed(own.memory_index(), to));
    own
}

/// The same with its operands in the other order in its code.
fn turned(code: Code) -> Option<Code> {
    Some(match code {
        Code::Mov_rm64_r64 => Code::Mov_r64_rm64,
        Code::Mov_r64_rm64 => Code::Mov_rm64_r64,
        Code::Add_rm64_r64 => Code::Add_r64_rm64,
        Code::Add_r64_rm64 => Code::Add_rm64_r64,
        Code::Sub_rm64_r64 => Code::Sub_r64_rm64,
        Code::Sub_r64_rm64 => Code::Sub_rm64_r64,
        Code::And_rm64_r64 => Code::And_r64_rm64,
        Code::And_r64_rm64 => Code::And_rm64_r64,
        Code::Or_rm64_r64 => Code::Or_r64_rm64,
        Code::Or_r64_rm64 => Code::Or_rm64_r64,
        Code::Xor_rm64_r64 => Code::Xor_r64_rm64,
        Code::Xor_r64_rm64 => Code::Xor_rm64_r64,
        Code::Cmp_rm64_r64 => Code::Cmp_r64_rm64,
        Code::Cmp_r64_rm64 => Code::Cmp_rm64_r64,
        _ => return None,
    })
}

/// The codes of such an instruction whose operand of this number may be memory of 64 bits.
fn takes_memory(code: Code, operand: u32) -> bool {
    use Code::{
        Add_r64_rm64, Add_rm64_imm8, Add_rm64_imm32, Add_rm64_r64, And_r64_rm64, And_rm64_imm8,
        And_rm64_imm32, And_rm64_r64, Cmp_r64_rm64, Cmp_rm64_imm8, Cmp_rm64_imm32, Cmp_rm64_r64, Dec_rm64,
        Imul_r64_rm64, Inc_rm64, Mov_r64_rm64, Mov_rm64_imm32, Mov_rm64_r64, Neg_rm64, Or_r64_rm64,
        Or_rm64_imm8, Or_rm64_imm32, Or_rm64_r64, Pop_rm64, Push_rm64, Sar_rm64_imm8, Shl_rm64_imm8,
        Shr_rm64_imm8, Sub_r64_rm64, Sub_rm64_imm8, Sub_rm64_imm32, Sub_rm64_r64, Test_rm64_imm32,
        Test_rm64_r64, Xor_r64_rm64, Xor_rm64_imm8, Xor_rm64_imm32, Xor_rm64_r64,
    };
    let is_second = matches!(
        code,
        Mov_r64_rm64
            | Add_r64_rm64
            | Sub_r64_rm64
            | And_r64_rm64
            | Or_r64_rm64
            | Xor_r64_rm64
            | Cmp_r64_rm64
            | Imul_r64_rm64
    );
    let is_first = matches!(
        code,
        Mov_rm64_r64
            | Mov_rm64_imm32
            | Add_rm64_r64
            | Add_rm64_imm8
            | Add_rm64_imm32
            | Sub_rm64_r64
            | Sub_rm64_imm8
            | Sub_rm64_imm32
            | And_rm64_r64
            | And_rm64_imm8
            | And_rm64_imm32
            | Or_rm64_r64
            | Or_rm64_imm8
            | Or_rm64_imm32
            | Xor_rm64_r64
            | Xor_rm64_imm8
            | Xor_rm64_imm32
            | Cmp_rm64_r64
            | Cmp_rm64_imm8
            | Cmp_rm64_imm32
            | Test_rm64_r64
            | Test_rm64_imm32
            | Inc_rm64
            | Dec_rm64
            | Neg_rm64
            | Shl_rm64_imm8
            | Shr_rm64_imm8
            | Sar_rm64_imm8
            | Push_rm64
            | Pop_rm64
    );
    match operand {
        0 => is_first,
        1 => is_second,
        _ => false,
    }
}

/// The instruction with the slot in the log's register's place; `None` when it cannot be.
pub(super) fn with_slot(instruction: &Instruction, slot: i32) -> Option<Instruction> {
    let mut own = *instruction;
    match own.code() {
        Code::Push_r64 => own.set_code(Code::Push_rm64),
        Code::Pop_r64 => own.set_code(Code::Pop_rm64),
        _ => {}
    }
    let is_register = |number: u32| own.op_kind(number) == OpKind::Register;
    let is_own =
        |number: u32| is_register(number) && own.op_register(number).full_register() == Register::R15;
    let has_memory = (0..own.op_count()).any(|number| own.op_kind(number) == OpKind::Memory);
    let mut all = (0..own.op_count()).filter(|number| is_own(*number));
    let (Some(mut number), None) = (all.next(), all.next()) else { return None };
    if has_memory || own.op_register(number) != Register::R15 {
        return None;
    }
    if !takes_memory(own.code(), number) {
        let code = turned(own.code())?;
        own.set_code(code);
        if !takes_memory(code, number) {
            return None;
        }
    }
    if own.mnemonic() == Mnemonic::Pop {
        // It computes its address with its final stack pointer, which is not in the register.
        number = 0;
    }
    own.set_op_kind(number, OpKind::Memory);
    own.set_memory_base(Register::None);
    own.set_memory_index(Register::None);
    own.set_segment_prefix(Register::FS);
    own.set_memory_displacement64(i64::from(slot).cast_unsigned());
    own.set_memory_displ_size(8);
    Some(own)
}
