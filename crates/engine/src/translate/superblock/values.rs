//! What is known of registers within a superblock: from which word of the record a value follows.

use crate::assembly::{Gpr, RSP};
use crate::translate::gpr;
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};
use lineup_recording::native::superblock::STACK;

/// A value: a word of the record, 0 for none, and what is added to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub(super) word: u8,
    pub(super) distance: i64,
}

/// Of all registers, by number.
pub(super) struct Values {
    /// The numbers of their values: those that are the same have the same.
    all: [u32; 16],
    /// What is known of values, by number.
    known: Vec<Option<Value>>,
    /// Values that follow from others alone: by what instruction, and from which.
    made: Vec<(Code, [u64; 2], u32)>,
    factory: InstructionInfoFactory,
}

impl Values {
    /// Nothing is known but where the stack pointer is.
    pub(super) fn new() -> Values {
        let mut known = vec![None; 16];
        known[usize::from(RSP.0)] = Some(Value { word: STACK, distance: 0 });
        let all = std::array::from_fn(|number| number as u32);
        Values { all, known, made: Vec::new(), factory: InstructionInfoFactory::new() }
    }

    pub(super) fn get(&self, register: Gpr) -> Option<Value> {
        self.known[self.number(register) as usize]
    }

    /// The register's value is a word of the record.
    pub(super) fn set_word(&mut self, register: Gpr, word: u8) {
        let number = self.number(register) as usize;
        self.known[number] = Some(Value { word, distance: 0 });
    }

    fn number(&self, register: Gpr) -> u32 {
        self.all[usize::from(register.0)]
    }

    /// The register has another value.
    fn set(&mut self, register: Gpr, value: Option<Value>) {
        self.all[usize::from(register.0)] = self.known.len() as u32;
        self.known.push(value);
    }

    /// The number of the value that an instruction makes of others alone: the same if it was made before.
    fn made(&mut self, instruction: &Instruction) -> Option<(Gpr, u32)> {
        let to = gpr(instruction.op0_register()).filter(|_| instruction.op0_kind() == OpKind::Register)?;
        let from = gpr(instruction.op1_register()).filter(|_| instruction.op1_kind() == OpKind::Register);
        let code = instruction.code();
        let from = match code {
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => return Some((to, self.number(from?))),
            Code::Movsxd_r64_rm32 | Code::Mov_r32_rm32 | Code::Mov_rm32_r32 => [self.number(from?).into(), 0],
            Code::Add_r64_rm64 | Code::Add_rm64_r64 => [self.number(to), self.number(from?)].map(u64::from),
            Code::And_rm32_imm32 | Code::And_EAX_imm32 => {
                [self.number(to).into(), instruction.immediate32().into()]
            }
            Code::Shl_rm64_imm8 => [self.number(to).into(), instruction.immediate8().into()],
            _ => return None,
        };
        let same = self.made.iter().find(|(own, of, _)| *own == code && *of == from);
        let number = same.map_or(self.known.len() as u32, |(_, _, number)| *number);
        if number as usize == self.known.len() {
            self.known.push(None);
            self.made.push((code, from, number));
        }
        Some((to, number))
    }

    /// An instruction was executed.
    pub(super) fn follow(&mut self, instruction: &Instruction) {
        let told = self.told(instruction);
        let made = self.made(instruction);
        let pushed = instruction.is_stack_instruction().then(|| {
            let before = self.get(RSP)?;
            let distance = before.distance.wrapping_add(instruction.stack_pointer_increment().into());
            Some(Value { distance, ..before })
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
        match (told, made) {
            (_, Some((register, number))) => self.all[usize::from(register.0)] = number,
            (Some((register, value)), None) => self.set(register, value),
            (None, None) => {}
        }
    }

    /// The register that an instruction sets to what is known, and to what.
    fn told(&self, instruction: &Instruction) -> Option<(Gpr, Option<Value>)> {
        if instruction.op_count() == 0 || instruction.op0_kind() != OpKind::Register {
            return None;
        }
        let to = gpr(instruction.op0_register())?;
        let is_whole = instruction.op0_register().is_gpr64();
        let own = self.get(to);
        let plus = |value: Option<Value>, distance: i64| {
            value.map(|value| Value { distance: value.distance.wrapping_add(distance), ..value })
        };
        let value = match instruction.mnemonic() {
            Mnemonic::Lea if is_whole => self.address(instruction),
            Mnemonic::Mov => constant(instruction).map(|distance| Value { word: 0, distance }),
            Mnemonic::Add if is_whole => plus(own, immediate(instruction)?),
            Mnemonic::Sub if is_whole => plus(own, immediate(instruction)?.wrapping_neg()),
            Mnemonic::Inc if is_whole => plus(own, 1),
            Mnemonic::Dec if is_whole => plus(own, -1),
            _ => return None,
        };
        Some((to, value))
    }

    /// What `lea` computes, of one register at most.
    fn address(&self, instruction: &Instruction) -> Option<Value> {
        let distance = instruction.memory_displacement64().cast_signed();
        match (instruction.memory_base(), instruction.memory_index()) {
            (Register::RIP, Register::None) | (Register::None, Register::None) => {
                Some(Value { word: 0, distance })
            }
            (base, Register::None) if base.is_gpr64() => {
                let value = self.get(gpr(base)?)?;
                Some(Value { distance: value.distance.wrapping_add(distance), ..value })
            }
            _ => None,
        }
    }
}

/// What a constant move sets a register to, as a whole.
fn constant(instruction: &Instruction) -> Option<i64> {
    match instruction.code() {
        Code::Mov_r32_imm32 => Some(i64::from(instruction.immediate32())),
        Code::Mov_r64_imm64 | Code::Mov_rm64_imm32 => Some(instruction.immediate(1).cast_signed()),
        _ => None,
    }
}

fn immediate(instruction: &Instruction) -> Option<i64> {
    let is_immediate = matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64 | OpKind::Immediate64
    );
    is_immediate.then(|| instruction.immediate(1).cast_signed())
}

/// Whether nothing but a constant is added to the stack pointer.
fn changes_stack_by_constant(instruction: &Instruction) -> bool {
    use Mnemonic::{Call, Pop, Popfq, Push, Pushfq, Ret};
    let pops_stack_pointer =
        instruction.mnemonic() == Mnemonic::Pop && instruction.op0_register() == Register::RSP;
    matches!(instruction.mnemonic(), Call | Pop | Popfq | Push | Pushfq | Ret) && !pops_stack_pointer
}
