//! x86, 64-bit and 32-bit, through iced-x86.

use super::effects::{Address, CallTarget, Convention, Expression, Flow, Instruction, Register};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction as Iced, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register as Reg, UsedMemory,
};
use lineup_model::access::AccessKind;

pub(super) const CONVENTION_64: Convention = Convention {
    stack_pointer: Register(7),
    frame_above_stack_bytes: 8,
    result: Register(0),
    clobbered: &[0, 1, 2, 4, 5, 8, 9, 10, 11, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32],
    registers: 33,
    pointer_bytes: 8,
    base_holds_itself: true,
};

pub(super) const CONVENTION_32: Convention = Convention {
    stack_pointer: Register(4),
    frame_above_stack_bytes: 4,
    result: Register(0),
    clobbered: &[0, 1, 2, 21, 22, 23, 24, 25, 26, 27, 28],
    registers: 29,
    pointer_bytes: 4,
    base_holds_itself: true,
};

/// The two modes that programs run in: registers have other numbers and widths in each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    Bits64,
    Bits32,
}

use Mode::{Bits32, Bits64};

const THREAD_BASE: Address = Address { base: None, index: None, displacement: 0, is_thread_local: true };

pub(super) fn decode(mode: Mode, address: u64, bytes: &[u8]) -> Vec<Instruction> {
    let bits = if mode == Bits64 { 64 } else { 32 };
    let mut decoder = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE);
    let mut infos = InstructionInfoFactory::new();
    let mut decoded = Vec::new();
    let mut iced = Iced::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut iced);
        if !iced.is_invalid() {
            decoded.push(mode.translate(&iced, &mut infos));
        }
    }
    decoded
}

impl Mode {
    fn translate(self, iced: &Iced, infos: &mut InstructionInfoFactory) -> Instruction {
        let mut out = Instruction::new(iced.ip(), iced.len());
        let info = infos.info(iced);
        for used in info.used_registers() {
            if writes(used.access())
                && let Some(to) = self.dwarf(used.register())
            {
                out.set(to, Expression::Unknown);
            }
        }
        for used in info.used_memory() {
            self.add_touches(&mut out, iced, used);
        }
        if let Some((to, value)) = self.value_set(iced) {
            out.set(to, value);
        }
        self.stack_effects(iced, &mut out);
        out.flow = flow(iced);
        if matches!(out.flow, Flow::Call(_)) {
            out.sets.clear();
        }
        out
    }

    fn convention(self) -> &'static Convention {
        if self == Bits64 { &CONVENTION_64 } else { &CONVENTION_32 }
    }

    /// True for a general register that can hold a pointer.
    fn is_whole(self, register: Reg) -> bool {
        if self == Bits64 { register.is_gpr64() } else { register.is_gpr32() }
    }

    /// A displacement: a link address when it stands alone, else a distance, which may be negative.
    fn displacement(self, raw: u64, is_alone: bool) -> i64 {
        match self {
            Bits64 => raw as i64,
            Bits32 if is_alone => i64::from(raw as u32),
            Bits32 => i64::from(raw as u32 as i32),
        }
    }

    fn add_touches(self, out: &mut Instruction, iced: &Iced, used: &UsedMemory) {
        let mut size = used.memory_size().size() as u32;
        let mut at = self.memory_address(used);
        if size == 0 && (iced.has_rep_prefix() || iced.has_repne_prefix()) {
            size = iced.memory_size().size() as u32;
            // A string instruction steps through memory: the registers say where it starts.
            at.index = Some((Register::OPAQUE, i64::from(size)));
        }
        let access = used.access();
        if reads(access) {
            out.touch(at, size, AccessKind::Load, None);
        }
        if writes(access) {
            let stored = match iced.mnemonic() {
                Mnemonic::Mov | Mnemonic::Movq => iced.op1_register(),
                Mnemonic::Push => iced.op0_register(),
                _ => Reg::None,
            };
            let whole = self.is_whole(stored) || stored.is_xmm();
            out.touch(at, size, AccessKind::Store, if whole { self.dwarf(stored) } else { None });
        }
    }

    fn memory_address(self, used: &UsedMemory) -> Address {
        let index = (used.index() != Reg::None)
            .then(|| (self.dwarf(used.index()).unwrap_or(Register::OPAQUE), i64::from(used.scale())));
        let base = self.base_register(used.base());
        let is_thread_local = matches!(used.segment(), Reg::FS | Reg::GS);
        let is_alone = base.is_none() && index.is_none() && !is_thread_local;
        Address {
            base,
            index,
            displacement: self.displacement(used.displacement(), is_alone),
            is_thread_local,
        }
    }

    fn base_register(self, base: Reg) -> Option<Register> {
        match base {
            Reg::None | Reg::RIP | Reg::EIP => None,
            other => Some(self.dwarf(other).unwrap_or(Register::OPAQUE)),
        }
    }

    /// The address that the memory operand of an instruction denotes.
    fn operand_address(self, iced: &Iced) -> Address {
        let index = (iced.memory_index() != Reg::None).then(|| {
            (
                self.dwarf(iced.memory_index()).unwrap_or(Register::OPAQUE),
                i64::from(iced.memory_index_scale()),
            )
        });
        let base = self.base_register(iced.memory_base());
        let is_thread_local = matches!(iced.memory_segment(), Reg::FS | Reg::GS);
        let is_alone = base.is_none() && index.is_none() && !is_thread_local;
        let displacement = self.displacement(iced.memory_displacement64(), is_alone);
        Address { base, index, displacement, is_thread_local }
    }

    /// The register that an instruction sets and its value, for the instructions that make addresses.
    fn value_set(self, iced: &Iced) -> Option<(Register, Expression)> {
        if iced.op_count() == 0 {
            return (iced.code() == Code::Cdqe)
                .then(|| (Register(0), Expression::Narrow(Address::of(Register(0), 0))));
        }
        if iced.op0_kind() != OpKind::Register {
            return None;
        }
        let target = iced.op0_register();
        let to = self.dwarf(target)?;
        let value = match iced.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movq => self.moved(iced)?,
            Mnemonic::Movsxd | Mnemonic::Movsx | Mnemonic::Movzx => self.extended(iced)?,
            Mnemonic::Lea => {
                Expression::Sum(Address { is_thread_local: false, ..self.operand_address(iced) })
            }
            Mnemonic::Add if self.is_whole(target) && self.adds_memory(iced) => {
                let (at, size_bytes) = (self.operand_address(iced), iced.memory_size().size() as u32);
                Expression::PlusLoaded { register: to, at, size_bytes }
            }
            Mnemonic::Add => Expression::Sum(self.sum(iced, to, 1)),
            Mnemonic::Sub | Mnemonic::Xor if is_same_register(iced) => Expression::Sum(Address::constant(0)),
            Mnemonic::Sub => Expression::Sum(self.sum(iced, to, -1)),
            Mnemonic::Inc => Expression::Sum(Address::of(to, 1)),
            Mnemonic::Dec => Expression::Sum(Address::of(to, -1)),
            Mnemonic::Neg => Expression::Sum(Address::scaled(to, -1)),
            Mnemonic::Shl | Mnemonic::Sal => {
                Expression::Sum(Address::scaled(to, 1 << self.shift_count(iced)?))
            }
            Mnemonic::Imul => self.product(iced, to)?,
            Mnemonic::And => Expression::Masked { register: to, mask: self.immediate(iced, 1)? },
            mnemonic if is_conditional_move(mnemonic) => Expression::Either(to, self.full_register(iced, 1)?),
            _ => return None,
        };
        Some((
            to,
            if self.is_whole(target) || target.is_xmm() { value } else { self.narrowed(value, target) },
        ))
    }

    /// Register results narrower than a pointer cannot hold one.
    fn narrowed(self, value: Expression, target: Reg) -> Expression {
        match value {
            Expression::Sum(address)
                if target.is_gpr32() && address.base.is_none() && address.index.is_none() =>
            {
                Expression::Sum(Address::constant(address.displacement & 0xffff_ffff))
            }
            Expression::Sum(address) | Expression::Narrow(address) if target.is_gpr32() => {
                Expression::Narrow(address)
            }
            Expression::Loaded { at, size_bytes } if target.is_gpr32() => {
                Expression::Loaded { at, size_bytes: size_bytes.min(4) }
            }
            Expression::Product { .. } | Expression::Masked { .. } if target.is_gpr32() => value,
            _ => Expression::Unknown,
        }
    }

    fn moved(self, iced: &Iced) -> Option<Expression> {
        match iced.op1_kind() {
            OpKind::Register => Some(Expression::Sum(Address::of(self.dwarf(iced.op1_register())?, 0))),
            OpKind::Memory => Some(self.loaded(iced)),
            _ => Some(Expression::Sum(Address::constant(self.immediate(iced, 1)?))),
        }
    }

    fn extended(self, iced: &Iced) -> Option<Expression> {
        match iced.op1_kind() {
            OpKind::Memory => Some(self.loaded(iced)),
            OpKind::Register if iced.op1_register().is_gpr32() => {
                Some(Expression::Narrow(Address::of(self.dwarf(iced.op1_register())?, 0)))
            }
            _ => None,
        }
    }

    fn loaded(self, iced: &Iced) -> Expression {
        Expression::Loaded { at: self.operand_address(iced), size_bytes: iced.memory_size().size() as u32 }
    }

    /// True when an addition adds the content of memory, and that is not the thread's base.
    fn adds_memory(self, iced: &Iced) -> bool {
        iced.op1_kind() == OpKind::Memory && self.operand_address(iced) != THREAD_BASE
    }

    fn sum(self, iced: &Iced, to: Register, sign: i64) -> Address {
        match (iced.op1_kind(), self.immediate(iced, 1)) {
            (OpKind::Register, _) => {
                let index = self.dwarf(iced.op1_register()).unwrap_or(Register::OPAQUE);
                Address { index: Some((index, sign)), ..Address::of(to, 0) }
            }
            (_, Some(value)) => Address::of(to, value.wrapping_mul(sign)),
            // Adds the thread's base, which memory at the base holds.
            (OpKind::Memory, _) if sign == 1 && !self.adds_memory(iced) => {
                Address { is_thread_local: true, ..Address::of(to, 0) }
            }
            _ => Address { index: Some((Register::OPAQUE, 1)), ..Address::of(to, 0) },
        }
    }

    fn product(self, iced: &Iced, to: Register) -> Option<Expression> {
        if iced.op_count() == 3 {
            let factor = self.immediate(iced, 2)?;
            let source = if iced.op1_kind() == OpKind::Register {
                self.dwarf(iced.op1_register())?
            } else {
                Register::OPAQUE
            };
            return Some(Expression::Sum(Address::scaled(source, factor)));
        }
        (iced.op_count() == 2 && iced.op1_kind() == OpKind::Register)
            .then(|| self.dwarf(iced.op1_register()))
            .flatten()
            .map(|other| Expression::Product { factors: [to, other], addend: None })
    }

    fn shift_count(self, iced: &Iced) -> Option<u32> {
        self.immediate(iced, 1).and_then(|count| u32::try_from(count).ok()).filter(|count| *count < 32)
    }

    fn full_register(self, iced: &Iced, operand: u32) -> Option<Register> {
        (iced.op_kind(operand) == OpKind::Register).then(|| self.dwarf(iced.op_register(operand))).flatten()
    }

    fn immediate(self, iced: &Iced, operand: u32) -> Option<i64> {
        let value = iced.try_immediate(operand).ok()?;
        Some(self.displacement(value, iced.mnemonic() == Mnemonic::Mov))
    }

    fn stack_effects(self, iced: &Iced, out: &mut Instruction) {
        let convention = self.convention();
        let stack = convention.stack_pointer;
        let frame = Register(if self == Bits64 { 6 } else { 5 });
        let word = i64::from(convention.pointer_bytes);
        let size_bytes = convention.pointer_bytes;
        match iced.mnemonic() {
            Mnemonic::Push | Mnemonic::Pushfq | Mnemonic::Pushfd => {
                out.set(stack, Expression::Sum(Address::of(stack, -word)))
            }
            Mnemonic::Pop | Mnemonic::Popfq | Mnemonic::Popfd => {
                out.set(stack, Expression::Sum(Address::of(stack, word)));
                if iced.op_count() == 1
                    && iced.op0_kind() == OpKind::Register
                    && let Some(to) = self.dwarf(iced.op0_register())
                {
                    out.set(to, Expression::Loaded { at: Address::of(stack, 0), size_bytes });
                }
            }
            Mnemonic::Ret => {
                let arguments = if iced.op_count() == 1 { self.immediate(iced, 0).unwrap_or(0) } else { 0 };
                out.set(stack, Expression::Sum(Address::of(stack, word + arguments)));
            }
            Mnemonic::Leave => {
                out.set(stack, Expression::Sum(Address::of(frame, word)));
                out.set(frame, Expression::Loaded { at: Address::of(frame, 0), size_bytes });
            }
            Mnemonic::Xchg if iced.op0_kind() == OpKind::Register && iced.op1_kind() == OpKind::Register => {
                let both = (iced.op0_register(), iced.op1_register());
                if let (true, Some(one), Some(other)) =
                    (self.is_whole(both.0), self.dwarf(both.0), self.dwarf(both.1))
                {
                    out.set(one, Expression::Sum(Address::of(other, 0)));
                    out.set(other, Expression::Sum(Address::of(one, 0)));
                }
            }
            _ => {}
        }
    }

    /// The DWARF number of a general or vector register, also if only a part of it is named.
    fn dwarf(self, register: Reg) -> Option<Register> {
        const NUMBERS_64: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
        const NUMBERS_32: [u16; 8] = [0, 1, 2, 3, 4, 5, 6, 7];
        let (numbers, vectors, first_vector) = match self {
            Bits64 => (&NUMBERS_64[..], 16, 17),
            Bits32 => (&NUMBERS_32[..], 8, 21),
        };
        let full = register.full_register();
        if full.is_gpr64() {
            return numbers.get(full.number()).map(|number| Register(*number));
        }
        (full.is_vector_register() && full.number() < vectors)
            .then(|| Register(first_vector + full.number() as u16))
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn is_same_register(iced: &Iced) -> bool {
    iced.op1_kind() == OpKind::Register && iced.op0_register() == iced.op1_register()
}

fn is_conditional_move(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}

fn flow(iced: &Iced) -> Flow {
    match iced.flow_control() {
        FlowControl::UnconditionalBranch => Flow::Jump(iced.near_branch_target()),
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
            Flow::Branch(iced.near_branch_target())
        }
        FlowControl::IndirectBranch => Flow::Indirect,
        FlowControl::Return => Flow::Return,
        FlowControl::Call if iced.mnemonic() == Mnemonic::Call => {
            Flow::Call(CallTarget::Direct(iced.near_branch_target()))
        }
        FlowControl::IndirectCall if iced.is_ip_rel_memory_operand() => {
            Flow::Call(CallTarget::Slot(iced.ip_rel_memory_address()))
        }
        FlowControl::IndirectCall | FlowControl::Call => Flow::Call(CallTarget::Unknown),
        FlowControl::Exception => Flow::Stop,
        FlowControl::Next | FlowControl::Interrupt => Flow::Next,
    }
}
