//! 64-bit x86, through iced-x86.

use super::{Address, CallTarget, Convention, Expression, Flow, Instruction, Register};
use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction as Iced, InstructionInfoFactory, Mnemonic,
    OpAccess, OpKind, Register as Reg, UsedMemory,
};
use lineup_model::access::AccessKind;

pub(super) const CONVENTION: Convention = Convention {
    stack_pointer: Register(7),
    frame_above_stack_bytes: 8,
    result: Register(0),
    clobbered: &[0, 1, 2, 4, 5, 8, 9, 10, 11, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32],
    registers: 33,
    pointer_bytes: 8,
    base_holds_itself: true,
};

pub(super) fn decode(address: u64, bytes: &[u8]) -> Vec<Instruction> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut infos = InstructionInfoFactory::new();
    let mut decoded = Vec::new();
    let mut iced = Iced::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut iced);
        if !iced.is_invalid() {
            decoded.push(translate(&iced, &mut infos));
        }
    }
    decoded
}

fn translate(iced: &Iced, infos: &mut InstructionInfoFactory) -> Instruction {
    let mut out = Instruction::new(iced.ip(), iced.len());
    let info = infos.info(iced);
    for used in info.used_registers() {
        if writes(used.access())
            && let Some(to) = dwarf(used.register())
        {
            out.set(to, Expression::Unknown);
        }
    }
    for used in info.used_memory() {
        add_touches(&mut out, iced, used);
    }
    if let Some((to, value)) = value_set(iced) {
        out.set(to, value);
    }
    stack_effects(iced, &mut out);
    out.flow = flow(iced);
    if matches!(out.flow, Flow::Call(_)) {
        out.sets.clear();
    }
    out
}

fn add_touches(out: &mut Instruction, iced: &Iced, used: &UsedMemory) {
    let mut size = used.memory_size().size() as u32;
    let mut at = memory_address(used);
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
        let whole = stored.is_gpr64() || stored.is_xmm();
        out.touch(at, size, AccessKind::Store, if whole { dwarf(stored) } else { None });
    }
}

fn reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn writes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

fn memory_address(used: &UsedMemory) -> Address {
    let index = (used.index() != Reg::None)
        .then(|| (dwarf(used.index()).unwrap_or(Register::OPAQUE), i64::from(used.scale())));
    Address {
        base: base_register(used.base()),
        index,
        displacement: used.displacement() as i64,
        is_thread_local: matches!(used.segment(), Reg::FS | Reg::GS),
    }
}

fn base_register(base: Reg) -> Option<Register> {
    match base {
        Reg::None | Reg::RIP | Reg::EIP => None,
        other => Some(dwarf(other).unwrap_or(Register::OPAQUE)),
    }
}

/// The address that the memory operand of an instruction denotes.
fn operand_address(iced: &Iced) -> Address {
    let index = (iced.memory_index() != Reg::None).then(|| {
        (dwarf(iced.memory_index()).unwrap_or(Register::OPAQUE), i64::from(iced.memory_index_scale()))
    });
    Address {
        base: base_register(iced.memory_base()),
        index,
        displacement: iced.memory_displacement64() as i64,
        is_thread_local: matches!(iced.memory_segment(), Reg::FS | Reg::GS),
    }
}

/// The register an instruction sets and to what, for the instructions that make addresses.
fn value_set(iced: &Iced) -> Option<(Register, Expression)> {
    if iced.op_count() == 0 {
        return (iced.code() == Code::Cdqe)
            .then(|| (Register(0), Expression::Narrow(Address::of(Register(0), 0))));
    }
    if iced.op0_kind() != OpKind::Register {
        return None;
    }
    let target = iced.op0_register();
    let to = dwarf(target)?;
    let value = match iced.mnemonic() {
        Mnemonic::Mov | Mnemonic::Movq => moved(iced)?,
        Mnemonic::Movsxd | Mnemonic::Movsx | Mnemonic::Movzx => extended(iced)?,
        Mnemonic::Lea => Expression::Sum(Address { is_thread_local: false, ..operand_address(iced) }),
        Mnemonic::Add => Expression::Sum(sum(iced, to, 1)),
        Mnemonic::Sub | Mnemonic::Xor if is_same_register(iced) => Expression::Sum(Address::constant(0)),
        Mnemonic::Sub => Expression::Sum(sum(iced, to, -1)),
        Mnemonic::Inc => Expression::Sum(Address::of(to, 1)),
        Mnemonic::Dec => Expression::Sum(Address::of(to, -1)),
        Mnemonic::Neg => Expression::Sum(Address::scaled(to, -1)),
        Mnemonic::Shl | Mnemonic::Sal => Expression::Sum(Address::scaled(to, 1 << shift_count(iced)?)),
        Mnemonic::Imul => product(iced, to)?,
        Mnemonic::And => Expression::Masked { register: to, mask: immediate(iced, 1)? },
        mnemonic if is_conditional_move(mnemonic) => Expression::Either(to, full_register(iced, 1)?),
        _ => return None,
    };
    Some((to, if target.is_gpr64() || target.is_xmm() { value } else { narrowed(value, target) }))
}

/// Register results of fewer than 64 bits cannot hold a pointer.
fn narrowed(value: Expression, target: Reg) -> Expression {
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

fn moved(iced: &Iced) -> Option<Expression> {
    match iced.op1_kind() {
        OpKind::Register => Some(Expression::Sum(Address::of(dwarf(iced.op1_register())?, 0))),
        OpKind::Memory => Some(loaded(iced)),
        _ => Some(Expression::Sum(Address::constant(immediate(iced, 1)?))),
    }
}

fn extended(iced: &Iced) -> Option<Expression> {
    match iced.op1_kind() {
        OpKind::Memory => Some(loaded(iced)),
        OpKind::Register if iced.op1_register().is_gpr32() => {
            Some(Expression::Narrow(Address::of(dwarf(iced.op1_register())?, 0)))
        }
        _ => None,
    }
}

fn loaded(iced: &Iced) -> Expression {
    Expression::Loaded { at: operand_address(iced), size_bytes: iced.memory_size().size() as u32 }
}

fn sum(iced: &Iced, to: Register, sign: i64) -> Address {
    match (iced.op1_kind(), immediate(iced, 1)) {
        (OpKind::Register, _) => {
            let index = dwarf(iced.op1_register()).unwrap_or(Register::OPAQUE);
            Address { index: Some((index, sign)), ..Address::of(to, 0) }
        }
        (_, Some(value)) => Address::of(to, value.wrapping_mul(sign)),
        _ => Address { index: Some((Register::OPAQUE, 1)), ..Address::of(to, 0) },
    }
}

fn product(iced: &Iced, to: Register) -> Option<Expression> {
    if iced.op_count() == 3 {
        let factor = immediate(iced, 2)?;
        let source =
            if iced.op1_kind() == OpKind::Register { dwarf(iced.op1_register())? } else { Register::OPAQUE };
        return Some(Expression::Sum(Address::scaled(source, factor)));
    }
    (iced.op_count() == 2 && iced.op1_kind() == OpKind::Register)
        .then(|| dwarf(iced.op1_register()))
        .flatten()
        .map(|other| Expression::Product { factors: [to, other], addend: None })
}

fn is_same_register(iced: &Iced) -> bool {
    iced.op1_kind() == OpKind::Register && iced.op0_register() == iced.op1_register()
}

fn shift_count(iced: &Iced) -> Option<u32> {
    immediate(iced, 1).and_then(|count| u32::try_from(count).ok()).filter(|count| *count < 32)
}

fn full_register(iced: &Iced, operand: u32) -> Option<Register> {
    (iced.op_kind(operand) == OpKind::Register).then(|| dwarf(iced.op_register(operand))).flatten()
}

fn immediate(iced: &Iced, operand: u32) -> Option<i64> {
    iced.try_immediate(operand).ok().map(|value| value as i64)
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

fn stack_effects(iced: &Iced, out: &mut Instruction) {
    const STACK: Register = CONVENTION.stack_pointer;
    const FRAME: Register = Register(6);
    match iced.mnemonic() {
        Mnemonic::Push | Mnemonic::Pushfq => out.set(STACK, Expression::Sum(Address::of(STACK, -8))),
        Mnemonic::Pop | Mnemonic::Popfq => {
            out.set(STACK, Expression::Sum(Address::of(STACK, 8)));
            if iced.op_count() == 1
                && iced.op0_kind() == OpKind::Register
                && let Some(to) = dwarf(iced.op0_register())
            {
                out.set(to, Expression::Loaded { at: Address::of(STACK, 0), size_bytes: 8 });
            }
        }
        Mnemonic::Leave => {
            out.set(STACK, Expression::Sum(Address::of(FRAME, 8)));
            out.set(FRAME, Expression::Loaded { at: Address::of(FRAME, 0), size_bytes: 8 });
        }
        Mnemonic::Xchg if iced.op0_kind() == OpKind::Register && iced.op1_kind() == OpKind::Register => {
            let both = (iced.op0_register(), iced.op1_register());
            if let (true, Some(one), Some(other)) = (both.0.is_gpr64(), dwarf(both.0), dwarf(both.1)) {
                out.set(one, Expression::Sum(Address::of(other, 0)));
                out.set(other, Expression::Sum(Address::of(one, 0)));
            }
        }
        _ => {}
    }
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

/// The DWARF number of a general or vector register, whatever part of it is named.
fn dwarf(register: Reg) -> Option<Register> {
    const NUMBERS: [u16; 16] = [0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15];
    let full = register.full_register();
    if full.is_gpr64() {
        return NUMBERS.get(full.number()).map(|number| Register(*number));
    }
    (full.is_vector_register() && full.number() < 16).then(|| Register(17 + full.number() as u16))
}
