//! Accesses that an instruction makes at every execution, and the distances of their addresses from those of other
//! instructions of its block. Only x86-64 is analysed; uncertain accesses are [`Accesses::Unknown`].

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};
use lineup_model::machine::CodeMachine;

/// The accesses of an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Accesses {
    /// None.
    Nothing,
    /// These, in their order, each once; a load comes before a store.
    Certain(Vec<Access>),
    /// Accesses that are known only afterwards.
    Unknown,
}

/// One access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// The origin that its address is measured from.
    pub origin: Origin,
    /// From the origin to the address.
    pub distance: i64,
    /// It stores.
    pub is_store: bool,
    /// The size is two to this power.
    pub size_shift: u8,
}

/// The origin of distances: values of registers, which need not be known. Equal origins within a block mean the same
/// place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    base: Option<u32>,
    /// A value and its factor.
    index: Option<(u32, u32)>,
    segment: Register,
}

/// A register's content: an unknown value by its number, and a distance from it.
#[derive(Clone, Copy)]
struct Value {
    number: u32,
    distance: i64,
}

/// Knowledge of registers within a block.
pub struct Follower {
    manner: Manner,
    registers: [Value; 16],
    next_number: u32,
    factory: InstructionInfoFactory,
}

/// The accesses that are certain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Manner {
    /// None: the machine is unknown.
    Unknown,
    /// Accesses that the emulator makes as one whole.
    Emulated,
    /// Accesses that an instruction makes always.
    Native,
}

impl Follower {
    /// At the beginning of a block that an emulator executes.
    pub fn new(machine: CodeMachine) -> Self {
        Self::of(if machine == CodeMachine::X86_64 { Manner::Emulated } else { Manner::Unknown })
    }

    /// At the beginning of a block that an x86-64 processor executes: there, vectors are accessed as a whole.
    pub fn native() -> Self {
        Self::of(Manner::Native)
    }

    fn of(manner: Manner) -> Self {
        Follower {
            registers: std::array::from_fn(|number| Value { number: number as u32, distance: 0 }),
            next_number: 16,
            factory: InstructionInfoFactory::new(),
            manner,
        }
    }

    /// The accesses of the block's next instruction, by its bytes.
    pub fn step(&mut self, pc: u64, bytes: &[u8]) -> Accesses {
        self.follow(&Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode())
    }

    /// The accesses of the block's next instruction.
    pub fn follow(&mut self, insn: &Instruction) -> Accesses {
        if self.manner == Manner::Unknown {
            return Accesses::Unknown;
        }
        let memory: Vec<UsedMemory> = {
            let info = self.factory.info(insn);
            let is_access = |memory: &&UsedMemory| memory.access() != OpAccess::NoMemAccess;
            info.used_memory().iter().filter(is_access).copied().collect()
        };
        let accesses = match memory.is_empty() {
            true => Accesses::Nothing,
            false if self.is_certain(insn) => {
                self.places(&memory).map_or(Accesses::Unknown, Accesses::Certain)
            }
            false => Accesses::Unknown,
        };
        self.take_in(insn);
        accesses
    }

    /// The accesses of a plain instruction; `None` when one has no certain place or is more than one to the emulator.
    fn places(&self, memory: &[UsedMemory]) -> Option<Vec<Access>> {
        let mut accesses = Vec::with_capacity(2);
        for memory in memory {
            let access = self.place(memory)?;
            match memory.access() {
                OpAccess::Read => accesses.push(access),
                OpAccess::Write => accesses.push(Access { is_store: true, ..access }),
                OpAccess::ReadWrite => accesses.extend([access, Access { is_store: true, ..access }]),
                _ => return None,
            }
        }
        accesses.sort_by_key(|access| access.is_store);
        let is_told_apart = accesses.windows(2).all(|pair| pair[0].is_store != pair[1].is_store);
        is_told_apart.then_some(accesses)
    }

    /// Whether an instruction accesses each of its operands exactly once, as one whole.
    fn is_certain(&self, insn: &Instruction) -> bool {
        match self.manner {
            Manner::Unknown => false,
            Manner::Emulated => is_plain(insn),
            Manner::Native => !insn.is_string_instruction() && !insn.has_op_mask() && !pops_to_memory(insn),
        }
    }

    fn place(&self, memory: &UsedMemory) -> Option<Access> {
        let size = memory.memory_size().size();
        let is_whole =
            matches!(size, 1 | 2 | 4 | 8) || (self.manner == Manner::Native && matches!(size, 16 | 32 | 64));
        if !is_whole || memory.vsib_size() != 0 {
            return None;
        }
        let mut origin = Origin { base: None, index: None, segment: Register::None };
        if matches!(memory.segment(), Register::FS | Register::GS) {
            origin.segment = memory.segment();
        }
        let mut distance = memory.displacement() as i64;
        if !matches!(memory.base(), Register::None | Register::RIP) {
            let value = self.value(memory.base())?;
            origin.base = Some(value.number);
            distance = distance.wrapping_add(value.distance);
        }
        if memory.index() != Register::None {
            let value = self.value(memory.index())?;
            origin.index = Some((value.number, memory.scale()));
            distance = distance.wrapping_add(value.distance.wrapping_mul(i64::from(memory.scale())));
        }
        Some(Access { origin, distance, is_store: false, size_shift: size.trailing_zeros() as u8 })
    }

    /// The content of a 64-bit register.
    fn value(&self, register: Register) -> Option<Value> {
        register.is_gpr64().then(|| self.registers[register.number()])
    }

    /// Takes in an instruction's effect on registers.
    fn take_in(&mut self, insn: &Instruction) {
        let moved = self.moved(insn);
        let written: Vec<Register> = {
            let info = self.factory.info(insn);
            let is_written =
                |access: OpAccess| !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead);
            let registers = info.used_registers().iter().filter(|used| is_written(used.access()));
            registers
                .map(|used| used.register().full_register())
                .filter(|register| register.is_gpr64())
                .collect()
        };
        for register in written {
            let number = self.next_number;
            self.next_number += 1;
            self.registers[register.number()] = Value { number, distance: 0 };
        }
        if let Some((register, value)) = moved {
            self.registers[register.number()] = value;
        }
    }

    /// The one register that an instruction sets to a place at a certain distance from a value, and that place.
    fn moved(&self, insn: &Instruction) -> Option<(Register, Value)> {
        let target = insn.op0_register();
        let is_whole = insn.op_count() > 0 && insn.op0_kind() == OpKind::Register && target.is_gpr64();
        let near =
            |value: Value, distance: i64| Value { distance: value.distance.wrapping_add(distance), ..value };
        let here = |distance: i64| Some((target, near(self.value(target)?, distance)));
        let constant = || {
            insn.op_count() == 2 && insn.op1_kind() != OpKind::Register && insn.op1_kind() != OpKind::Memory
        };
        match insn.mnemonic() {
            Mnemonic::Push | Mnemonic::Pop | Mnemonic::Call | Mnemonic::Ret => {
                let is_lost = insn.mnemonic() == Mnemonic::Pop && target == Register::RSP;
                let stack = near(self.value(Register::RSP)?, i64::from(insn.stack_pointer_increment()));
                (!is_lost).then_some((Register::RSP, stack))
            }
            Mnemonic::Leave => Some((Register::RSP, near(self.value(Register::RBP)?, 8))),
            Mnemonic::Add if is_whole && constant() => here(insn.immediate(1) as i64),
            Mnemonic::Sub if is_whole && constant() => here((insn.immediate(1) as i64).wrapping_neg()),
            Mnemonic::Inc if is_whole => here(1),
            Mnemonic::Dec if is_whole => here(-1),
            Mnemonic::Mov if is_whole && insn.op1_kind() == OpKind::Register => {
                Some((target, self.value(insn.op1_register())?))
            }
            Mnemonic::Lea if is_whole && insn.memory_index() == Register::None => {
                let base = self.value(insn.memory_base())?;
                Some((target, near(base, insn.memory_displacement64() as i64)))
            }
            _ => None,
        }
    }
}

/// True for instructions that the emulator lets access each of their operands exactly once, as one whole.
fn is_plain(insn: &Instruction) -> bool {
    use Mnemonic::{
        Adc, Add, Addsd, Addss, And, Call, Cmp, Comisd, Cvtsi2sd, Dec, Divsd, Imul, Inc, Leave, Mov, Movd,
        Movq, Movsd, Movss, Movsx, Movsxd, Movzx, Mulsd, Mulss, Neg, Not, Or, Pop, Push, Ret, Sbb, Sub,
        Subsd, Test, Ucomisd, Xor,
    };
    let is_known = matches!(
        insn.mnemonic(),
        Adc | Add
            | Addsd
            | Addss
            | And
            | Call
            | Cmp
            | Comisd
            | Cvtsi2sd
            | Dec
            | Divsd
            | Imul
            | Inc
            | Leave
            | Mov
            | Movd
            | Movq
            | Movsd
            | Movss
            | Movsx
            | Movsxd
            | Movzx
            | Mulsd
            | Mulss
            | Neg
            | Not
            | Or
            | Push
            | Pop
            | Ret
            | Sbb
            | Sub
            | Subsd
            | Test
            | Ucomisd
            | Xor
    );
    is_known
        && !pops_to_memory(insn)
        && !insn.is_string_instruction()
        && !insn.has_lock_prefix()
        && !insn.has_rep_prefix()
}

/// Its address follows from the stack pointer that it leaves.
fn pops_to_memory(insn: &Instruction) -> bool {
    insn.mnemonic() == Mnemonic::Pop && insn.op0_kind() == OpKind::Memory
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distances and kinds of the accesses of a block, and which have the same origin as the first; `None` where
    /// unknown.
    fn follow(block: &[&[u8]]) -> Vec<Option<Vec<(i64, bool)>>> {
        let mut follower = Follower::new(CodeMachine::X86_64);
        let mut pc = 0x40_0000;
        block
            .iter()
            .map(|bytes| {
                let accesses = follower.step(pc, bytes);
                pc += bytes.len() as u64;
                match accesses {
                    Accesses::Nothing => Some(Vec::new()),
                    Accesses::Certain(all) => {
                        Some(all.iter().map(|one| (one.distance, one.is_store)).collect())
                    }
                    Accesses::Unknown => None,
                }
            })
            .collect()
    }

    #[test]
    fn the_stack_pointer_is_followed_through_pushes_calls_and_arithmetic() {
        let block: [&[u8]; 7] = [
            &[0x41, 0x57],             // push %r15
            &[0x53],                   // push %rbx
            &[0x48, 0x83, 0xec, 0x18], // sub $0x18, %rsp
            &[0x48, 0x89, 0x3c, 0x24], // mov %rdi, (%rsp)
            &[0x48, 0x83, 0xc4, 0x18], // add $0x18, %rsp
            &[0x5b],                   // pop %rbx
            &[0xe8, 0, 0, 0, 0],       // call
        ];
        let expected = [
            vec![(-8, true)],
            vec![(-16, true)],
            vec![],
            vec![(-40, true)],
            vec![],
            vec![(-16, false)],
            vec![(-16, true)],
        ];
        assert_eq!(follow(&block), expected.map(Some));
    }

    #[test]
    fn a_register_with_a_new_value_is_a_new_origin() {
        let mut follower = Follower::new(CodeMachine::X86_64);
        let mut origin = |bytes: &[u8]| match follower.step(0, bytes) {
            Accesses::Certain(accesses) => (accesses[0].origin, accesses[0].distance),
            other => panic!("{other:?}"),
        };
        let (first, _) = origin(&[0x48, 0x8b, 0x47, 0x08]); // mov 8(%rdi), %rax
        assert_eq!(origin(&[0x48, 0x8b, 0x7f, 0x10]), (first, 16)); // mov 16(%rdi), %rdi
        assert_ne!(origin(&[0x48, 0x8b, 0x47, 0x08]).0, first);
        let (indexed, _) = origin(&[0x8b, 0x04, 0xb2]); // mov (%rdx,%rsi,4), %eax
        assert_eq!(origin(&[0x03, 0x44, 0xb2, 0x04]), (indexed, 4)); // add 4(%rdx,%rsi,4), %eax
        let (thread, _) = origin(&[0x64, 0x8b, 0x07]); // mov %fs:(%rdi), %eax
        assert_ne!(origin(&[0x8b, 0x07]).0, thread);
        assert_eq!(origin(&[0x8b, 0x05, 0, 1, 0, 0]).1, 0x106, "from the next instruction");
    }

    #[test]
    fn an_operand_that_is_read_and_written_is_a_load_and_a_store() {
        let block: [&[u8]; 2] = [&[0x83, 0x07, 0x01], &[0xff, 0x30]]; // addl $1, (%rdi); push (%rax)
        assert_eq!(follow(&block), [Some(vec![(0, false), (0, true)]), Some(vec![(0, false), (-8, true)])]);
    }

    #[test]
    fn what_is_done_in_parts_or_on_conditions_is_unknown() {
        assert_eq!(follow(&[&[0xf3, 0xa4]]), [None]); // rep movsb
        assert_eq!(follow(&[&[0xa4]]), [None]); // movsb
        assert_eq!(follow(&[&[0xf0, 0xff, 0x07]]), [None]); // lock incl (%rdi)
        assert_eq!(follow(&[&[0x0f, 0x10, 0x07]]), [None]); // movups (%rdi), %xmm0: two loads to the emulator
        assert_eq!(follow(&[&[0x8f, 0x00]]), [None]); // pop (%rax)
        assert_eq!(follow(&[&[0x67, 0x8b, 0x07]]), [None]); // mov (%edi), %eax wraps
        assert_eq!(follow(&[&[0x0f, 0x1f, 0x00]]), [Some(vec![])]); // nop (%rax)
        assert_eq!(Follower::new(CodeMachine::AArch64).step(0, &[0; 4]), Accesses::Unknown);
    }
}
