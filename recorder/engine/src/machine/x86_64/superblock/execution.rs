//! The effect of an instruction on the known values: it sets a register to a result, or to an unknown value.

use super::register_results::{Operand, RegisterResult};
use crate::machine::x86_64::assembly::{Gpr, RSP};
use crate::machine::x86_64::general_registers::gpr;
use crate::machine::x86_64::superblock::values::Values;
use iced_x86::{Code, Instruction, Mnemonic, OpAccess, OpKind, Register};
use lineup_recording::native::derived::Operation;

impl Values {
    /// An instruction was executed.
    pub(super) fn follow(&mut self, instruction: &Instruction) {
        self.has_turned |= !self.passed.insert(instruction.ip());
        let made = made(self, instruction);
        let pushed = instruction.is_stack_instruction().then(|| {
            let before = self.get(RSP)?;
            Some(before.plus(instruction.stack_pointer_increment().into()))
        });
        let mut written = 0_u16;
        for used in self.factory.info(instruction).used_registers() {
            let is_written = !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead);
            if let Some(register) = gpr(used.register()).filter(|_| is_written) {
                written |= 1 << register.0;
            }
        }
        for register in (0..16).filter(|register| written >> register & 1 != 0) {
            self.set(Gpr(register), None);
        }
        if let Some(stack) = pushed
            && changes_stack_by_constant(instruction)
        {
            self.set(RSP, stack);
        }
        if let Some((register, number)) = made {
            self.all[usize::from(register.0)] = number;
        }
    }
}

/// The register that an instruction sets to a result of registers and constants, and the number of that value.
fn made(values: &mut Values, instruction: &Instruction) -> Option<(Gpr, u32)> {
    if instruction.code() == Code::Cdqe {
        let own = Gpr(0);
        let first = Operand::Number(values.number(own));
        let second = Operand::Constant(32);
        let made = RegisterResult { operation: Operation::ExtendSign, is_half: false, first, second };
        return Some((own, values.make(made)));
    }
    if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
        return None;
    }
    let register = instruction.op0_register();
    let is_half = register.is_gpr32();
    let to = gpr(register).filter(|_| is_half || register.is_gpr64())?;
    let number = match instruction.mnemonic() {
        Mnemonic::Mov => moved(values, instruction, is_half),
        Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd => extended(values, instruction, is_half),
        Mnemonic::Lea => address(values, instruction, is_half),
        _ => computed(values, instruction, is_half, to),
    };
    Some((to, number?))
}

/// The operation on two values, with a result of 32 bits or 64.
fn make(values: &mut Values, operation: Operation, is_half: bool, [first, second]: [Operand; 2]) -> u32 {
    values.make(RegisterResult { operation, is_half, first, second })
}

/// The lower half of a value alone, when only that is kept.
fn cut(values: &mut Values, number: u32, is_half: bool) -> u32 {
    if !is_half || values.is_half(number) {
        return number;
    }
    let operands = [values.operand(number), Operand::Constant(0)];
    make(values, Operation::Add, true, operands)
}

fn moved(values: &mut Values, instruction: &Instruction, is_half: bool) -> Option<u32> {
    match instruction.op1_kind() {
        OpKind::Register => {
            let from = gpr(instruction.op1_register())?;
            let number = values.number(from);
            Some(cut(values, number, is_half))
        }
        _ => constant(instruction).map(|constant| values.constant(constant)),
    }
}

/// The constant that a move sets a register to, as a whole.
fn constant(instruction: &Instruction) -> Option<i64> {
    match instruction.code() {
        Code::Mov_r32_imm32 => Some(i64::from(instruction.immediate32())),
        Code::Mov_r64_imm64 | Code::Mov_rm64_imm32 => Some(instruction.immediate(1).cast_signed()),
        _ => None,
    }
}

/// A register's low bits, with zeros or their sign above.
fn extended(values: &mut Values, instruction: &Instruction, is_half: bool) -> Option<u32> {
    let from = instruction.op1_register();
    let is_high = matches!(from, Register::AH | Register::BH | Register::CH | Register::DH);
    let own = gpr(from).filter(|_| instruction.op1_kind() == OpKind::Register && !is_high)?;
    let number = values.operand(values.number(own));
    let bits = 8 * from.size() as i64;
    let (operation, second) = match instruction.mnemonic() {
        Mnemonic::Movzx => (Operation::And, (1 << bits) - 1),
        _ => (Operation::ExtendSign, bits),
    };
    Some(make(values, operation, is_half, [number, Operand::Constant(second)]))
}

/// The result of `lea`.
fn address(values: &mut Values, instruction: &Instruction, is_half: bool) -> Option<u32> {
    let of = |register: Register| match register {
        Register::None | Register::RIP => Some(None),
        register => gpr(register).filter(|_| register.is_gpr64()).map(Some),
    };
    let (base, index) = (of(instruction.memory_base())?, of(instruction.memory_index())?);
    let distance = instruction.memory_displacement64().cast_signed();
    let base = base.map(|base| values.operand(values.number(base)));
    let index = index.map(|index| {
        let own = values.operand(values.number(index));
        match instruction.memory_index_scale().trailing_zeros() {
            0 => own,
            shift => {
                let shift = Operand::Constant(shift.into());
                let scaled = make(values, Operation::ShiftLeft, false, [own, shift]);
                values.operand(scaled)
            }
        }
    });
    let sum = match (base, index) {
        (Some(base), Some(index)) => make(values, Operation::Add, false, [base, index]),
        (Some(own), None) | (None, Some(own)) => {
            let sum = make(values, Operation::Add, false, [own, Operand::Constant(distance)]);
            return Some(cut(values, sum, is_half));
        }
        (None, None) => values.constant(distance),
    };
    let all = match (base, index, distance) {
        (None, _, _) | (_, None, _) | (_, _, 0) => sum,
        _ => {
            let operands = [values.operand(sum), Operand::Constant(distance)];
            make(values, Operation::Add, false, operands)
        }
    };
    Some(cut(values, all, is_half))
}

/// The result computed from a register, and another or a constant.
fn computed(values: &mut Values, instruction: &Instruction, is_half: bool, to: Gpr) -> Option<u32> {
    let own = values.operand(values.number(to));
    let (operation, operands) = match instruction.mnemonic() {
        Mnemonic::Inc => (Operation::Add, [own, Operand::Constant(1)]),
        Mnemonic::Dec => (Operation::Add, [own, Operand::Constant(-1)]),
        Mnemonic::Neg => (Operation::Subtract, [Operand::Constant(0), own]),
        Mnemonic::Not => (Operation::Xor, [own, Operand::Constant(-1)]),
        Mnemonic::Add => (Operation::Add, [own, other(values, instruction, 1)?]),
        Mnemonic::Sub => match other(values, instruction, 1)? {
            Operand::Constant(less) => (Operation::Add, [own, Operand::Constant(less.wrapping_neg())]),
            same if same == own => return Some(values.constant(0)),
            less => (Operation::Subtract, [own, less]),
        },
        Mnemonic::Xor => match other(values, instruction, 1)? {
            same if same == own => return Some(values.constant(0)),
            other => (Operation::Xor, [own, other]),
        },
        Mnemonic::And => (Operation::And, [own, other(values, instruction, 1)?]),
        Mnemonic::Or => (Operation::Or, [own, other(values, instruction, 1)?]),
        Mnemonic::Shl | Mnemonic::Sal => (Operation::ShiftLeft, [own, shift(instruction)?]),
        Mnemonic::Shr => (Operation::ShiftRight, [own, shift(instruction)?]),
        Mnemonic::Sar => (Operation::ShiftSignRight, [own, shift(instruction)?]),
        Mnemonic::Imul if instruction.op_count() == 2 => {
            (Operation::Multiply, [own, other(values, instruction, 1)?])
        }
        Mnemonic::Imul if instruction.op_count() == 3 => {
            let [first, second] = [other(values, instruction, 1)?, other(values, instruction, 2)?];
            (Operation::Multiply, [first, second])
        }
        _ => return None,
    };
    Some(make(values, operation, is_half, operands))
}

/// An operand that is a register or a constant.
fn other(values: &Values, instruction: &Instruction, number: u32) -> Option<Operand> {
    match instruction.op_kind(number) {
        OpKind::Register => {
            let register = gpr(instruction.op_register(number))?;
            Some(values.operand(values.number(register)))
        }
        OpKind::Immediate8to32 | OpKind::Immediate8to64 | OpKind::Immediate32 | OpKind::Immediate32to64 => {
            Some(Operand::Constant(instruction.immediate(number).cast_signed()))
        }
        _ => None,
    }
}

/// By how many bits a constant shifts.
fn shift(instruction: &Instruction) -> Option<Operand> {
    let is_constant = instruction.op1_kind() == OpKind::Immediate8;
    is_constant.then(|| Operand::Constant(i64::from(instruction.immediate8())))
}

/// Whether the instruction changes the stack pointer only by adding a constant.
fn changes_stack_by_constant(instruction: &Instruction) -> bool {
    use Mnemonic::{Call, Pop, Popfq, Push, Pushfq, Ret};
    let pops_stack_pointer =
        instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RSP;
    matches!(instruction.mnemonic(), Call | Pop | Popfq | Push | Pushfq | Ret) && !pops_stack_pointer
}
