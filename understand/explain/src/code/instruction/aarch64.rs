//! 64-bit Arm, through Capstone.
//!
//! Operands are looked at only for the instructions handled below: Capstone's binding has no safe value
//! for some system registers.

use super::capstone_session::{Decoded, failure, translate_all};
use super::effects::{Address, CallTarget, Convention, Expression, Flow, Instruction, Register};
use crate::error::ExplainError;
use capstone::RegId;
use capstone::arch::arm64::{ArchMode, Arm64Operand, Arm64OperandType as Kind, Arm64Reg, Arm64Shift};
use capstone::prelude::*;
use lineup_model::access::AccessKind;

pub(super) const CONVENTION: Convention = Convention {
    stack_pointer: Register(31),
    frame_above_stack_bytes: 0,
    result: Register(0),
    clobbered: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 30],
    registers: 32,
    pointer_bytes: 8,
    base_holds_itself: false,
};

pub(super) fn decode(address: u64, bytes: &[u8]) -> Result<Vec<Instruction>, ExplainError> {
    let session = Capstone::new().arm64().mode(ArchMode::Arm).detail(true).build().map_err(failure)?;
    translate_all(&session, address, bytes, 4, translate)
}

fn translate(decoded: &Decoded<'_>) -> Instruction {
    let mut out = Instruction::new(decoded.address, decoded.length);
    let name = decoded.name.as_str();
    if name == "mrs" {
        thread_base(decoded, &mut out);
        return out;
    }
    if !has_plain_operands(name) {
        return out;
    }
    let Some(detail) = decoded.detail.arm64() else { return out };
    let operands: Vec<Arm64Operand> = detail.operands().collect();
    if let Some(flow) = flow(decoded, name, &operands) {
        out.flow = flow;
    } else if let Some(at) = operands.iter().position(|operand| matches!(operand.op_type, Kind::Mem(_))) {
        memory(name, &operands, at, detail.writeback(), &mut out);
    } else if !matches!(name, "cmp" | "cmn" | "tst" | "ccmp" | "ccmn")
        && let Some((to, is_wide)) = operands.first().and_then(target)
    {
        let value = value(name, &operands, to).unwrap_or(Expression::Unknown);
        out.set(to, if is_wide { value } else { narrowed(value) });
    }
    out
}

/// System instructions and prefetches neither load, store nor set an address.
fn has_plain_operands(name: &str) -> bool {
    !matches!(name, "msr" | "sys" | "sysl" | "prfm" | "prfum" | "dmb" | "dsb" | "isb" | "hint" | "nop")
        && !matches!(name, "ic" | "dc" | "at" | "tlbi" | "smstart" | "smstop")
}

fn thread_base(decoded: &Decoded<'_>, out: &mut Instruction) {
    let mut parts = decoded.operand_text.split(", ");
    let number = parts.next().and_then(|register| register.strip_prefix('x')).and_then(|n| n.parse().ok());
    if let Some(number) = number {
        let read = match parts.next() {
            // A program's, and a kernel's own.
            Some("tpidr_el0" | "tpidr_el1") => Expression::ThreadBase,
            Some("sp_el0") => Expression::KernelTask,
            _ => Expression::Unknown,
        };
        out.set(Register(number), read);
    }
}

fn flow(decoded: &Decoded<'_>, name: &str, operands: &[Arm64Operand]) -> Option<Flow> {
    let target = operands.iter().rev().find_map(|operand| match operand.op_type {
        Kind::Imm(target) => Some(target as u64),
        _ => None,
    });
    Some(match (name, target) {
        ("b", Some(target)) if decoded.is_unconditional() => Flow::Jump(target),
        ("b" | "cbz" | "cbnz" | "tbz" | "tbnz" | "bc", Some(target)) => Flow::Branch(target),
        ("bl", Some(target)) => Flow::Call(CallTarget::Direct(target)),
        ("blr" | "blraa" | "blrab" | "blraaz" | "blrabz", _) => Flow::Call(CallTarget::Unknown),
        ("br" | "braa" | "brab" | "braaz" | "brabz", _) => Flow::Indirect,
        ("ret" | "retaa" | "retab" | "eret", _) => Flow::Return,
        ("udf" | "brk" | "hlt", _) => Flow::Stop,
        _ => return None,
    })
}

impl Decoded<'_> {
    fn is_unconditional(&self) -> bool {
        use capstone::arch::arm64::Arm64CC;
        self.detail.arm64().is_none_or(|detail| {
            matches!(detail.cc(), Arm64CC::ARM64_CC_INVALID | Arm64CC::ARM64_CC_AL | Arm64CC::ARM64_CC_NV)
        })
    }
}

fn memory(name: &str, operands: &[Arm64Operand], position: usize, writeback: bool, out: &mut Instruction) {
    let Some(at) = operands.get(position).and_then(address) else { return };
    let registers: Vec<&Arm64Operand> = operands.iter().take(position).collect();
    let is_atomic =
        ["ldadd", "ldclr", "ldset", "ldeor", "ldsmax", "ldsmin", "ldumax", "ldumin", "swp", "cas"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
    let is_store = name.starts_with("st");
    let is_load = name.starts_with("ld");
    if is_atomic {
        atomic(name, &registers, at, out);
    } else if is_store {
        let data = if has_status(name) { registers.get(1..).unwrap_or(&[]) } else { &registers[..] };
        if data.len() < registers.len()
            && let Some((status, _)) = registers.first().and_then(|operand| target(operand))
        {
            out.set(status, Expression::Unknown);
        }
        let from = (data.len() == 1).then(|| data.first().and_then(|operand| target(operand))).flatten();
        let size = total_size(name, data);
        let whole = from.filter(|(_, is_wide)| *is_wide && size == 8).map(|(register, _)| register);
        pieces(data, at, size, out);
        if data.len() <= 1 || out.touches.is_empty() {
            out.touches.clear();
            out.touch(at, size, AccessKind::Store, whole);
        }
    } else if is_load {
        load(name, &registers, at, out);
    }
    if writeback && let Some(base) = at.base {
        let size = total_size(name, &registers);
        let step = match operands.get(position + 1).map(|operand| &operand.op_type) {
            Some(Kind::Imm(step)) => *step,
            None if at.displacement != 0 => at.displacement,
            None => i64::from(size),
            _ => return out.set(base, Expression::Unknown),
        };
        out.set(base, Expression::Sum(Address::of(base, step)));
    }
}

/// A store of several whole registers is described register by register, so that each can be followed
/// to its slot; the accesses are adjacent.
fn pieces(data: &[&Arm64Operand], at: Address, size_bytes: u32, out: &mut Instruction) {
    let each = size_bytes / (data.len().max(1) as u32);
    if data.len() != 2 || each != 8 {
        return;
    }
    for (index, operand) in data.iter().enumerate() {
        let from = target(operand).filter(|(_, is_wide)| *is_wide).map(|(register, _)| register);
        let at = Address { displacement: at.displacement + (index as i64) * i64::from(each), ..at };
        out.touch(at, each, AccessKind::Store, from);
    }
}

fn load(name: &str, registers: &[&Arm64Operand], at: Address, out: &mut Instruction) {
    let size = total_size(name, registers);
    let each = size / (registers.len().max(1) as u32);
    for (index, operand) in registers.iter().enumerate() {
        let at = Address { displacement: at.displacement + (index as i64) * i64::from(each), ..at };
        if let Some((to, is_wide)) = target(operand) {
            let value = Expression::Loaded { at, size_bytes: each };
            out.set(to, if is_wide { value } else { narrowed(value) });
        }
    }
    out.touch(at, size, AccessKind::Load, None);
}

fn atomic(name: &str, registers: &[&Arm64Operand], at: Address, out: &mut Instruction) {
    let size = total_size(name, registers.get(..1).unwrap_or(&[]));
    let result = if name.starts_with("cas") { registers.first() } else { registers.get(1) };
    if let Some((to, _)) = result.and_then(|operand| target(operand)) {
        out.set(to, Expression::Unknown);
    }
    out.touch(at, size, AccessKind::Load, None);
    out.touch(at, size, AccessKind::Store, None);
}

/// Exclusive stores put their success into the first register.
fn has_status(name: &str) -> bool {
    ["stxr", "stlxr", "stxp", "stlxp"].iter().any(|prefix| name.starts_with(prefix))
}

fn total_size(name: &str, registers: &[&Arm64Operand]) -> u32 {
    if is_structure(name) {
        return registers.iter().map(|operand| vector_bytes(operand)).sum();
    }
    let each = if name.ends_with("sw") {
        4
    } else if name.ends_with('b') && !name.ends_with("stlb") {
        1
    } else if name.ends_with('h') {
        2
    } else {
        registers.first().map_or(0, |operand| register_bytes(operand))
    };
    each * registers.len() as u32
}

/// `ld1` to `ld4r` and `st1` to `st4`.
fn is_structure(name: &str) -> bool {
    name.get(2..3).is_some_and(|digit| matches!(digit, "1" | "2" | "3" | "4"))
}

fn vector_bytes(operand: &Arm64Operand) -> u32 {
    use capstone::arch::arm64::Arm64Vas::*;
    match operand.vas {
        ARM64_VAS_1B => 1,
        ARM64_VAS_1H => 2,
        ARM64_VAS_1S | ARM64_VAS_4B | ARM64_VAS_2H => 4,
        ARM64_VAS_8B | ARM64_VAS_4H | ARM64_VAS_2S | ARM64_VAS_1D => 8,
        _ => 16,
    }
}

fn register_bytes(operand: &Arm64Operand) -> u32 {
    let Kind::Reg(id) = operand.op_type else { return 0 };
    let id = u32::from(id.0);
    let within = |first: u32| (first..first + 32).contains(&id);
    if within(Arm64Reg::ARM64_REG_Q0) {
        16
    } else if within(Arm64Reg::ARM64_REG_B0) {
        1
    } else if within(Arm64Reg::ARM64_REG_H0) {
        2
    } else if within(Arm64Reg::ARM64_REG_S0) {
        4
    } else if within(Arm64Reg::ARM64_REG_D0) {
        8
    } else {
        register(RegId(id as u16)).map_or(0, |(_, is_wide)| if is_wide { 8 } else { 4 })
    }
}

fn value(name: &str, operands: &[Arm64Operand], to: Register) -> Option<Expression> {
    let second = operands.get(1);
    Some(match name {
        "mov" | "movz" | "orr" if operands.len() == 2 => match &second?.op_type {
            Kind::Imm(value) => Expression::Sum(Address::constant(value << shift(second?))),
            _ => Expression::Sum(Address::of(source(second?)?, 0)),
        },
        "movn" => Expression::Sum(Address::constant(!(immediate(second?)? << shift(second?)))),
        "movk" => {
            let bits = immediate(second?)? as u16;
            Expression::Inserted { register: to, shift: shift(second?), bits }
        }
        "adr" | "adrp" => Expression::Sum(Address::constant(immediate(second?)?)),
        "add" | "adds" => Expression::Sum(sum(second?, operands.get(2)?, 1)?),
        "sub" | "subs" => Expression::Sum(sum(second?, operands.get(2)?, -1)?),
        "neg" => Expression::Sum(Address::scaled(source(second?)?, -(1 << shift(second?)))),
        "lsl" => Expression::Sum(Address::scaled(source(second?)?, power(immediate(operands.get(2)?)?)?)),
        "ubfiz" | "sbfiz" => {
            Expression::Sum(Address::scaled(source(second?)?, power(immediate(operands.get(2)?)?)?))
        }
        "sxtw" | "uxtw" => Expression::Narrow(Address::of(source(second?)?, 0)),
        "mul" | "umull" | "smull" => {
            Expression::Product { factors: [source(second?)?, source(operands.get(2)?)?], addend: None }
        }
        "madd" | "umaddl" | "smaddl" => Expression::Product {
            factors: [source(second?)?, source(operands.get(2)?)?],
            addend: Some(source(operands.get(3)?)?),
        },
        "and" | "ands" => {
            Expression::Masked { register: source(second?)?, mask: immediate(operands.get(2)?)? }
        }
        "csel" => Expression::Either(source(second?)?, source(operands.get(2)?)?),
        "ldr" => Expression::Loaded { at: Address::constant(immediate(second?)?), size_bytes: 8 },
        _ => return None,
    })
}

/// The sum of a register and a shifted, extended register or an immediate.
fn sum(first: &Arm64Operand, second: &Arm64Operand, sign: i64) -> Option<Address> {
    let base = source(first)?;
    match second.op_type {
        Kind::Imm(value) => Some(Address::of(base, (value << shift(second)).wrapping_mul(sign))),
        _ => {
            let factor = if matches!(second.shift, Arm64Shift::Lsl(_) | Arm64Shift::Invalid) {
                (source(second)?, sign << shift(second))
            } else {
                (Register::OPAQUE, 1)
            };
            Some(Address { index: Some(factor), ..Address::of(base, 0) })
        }
    }
}

fn narrowed(value: Expression) -> Expression {
    match value {
        Expression::Sum(address) if address.base.is_none() && address.index.is_none() => {
            Expression::Sum(Address::constant(address.displacement & 0xffff_ffff))
        }
        Expression::Sum(address) => Expression::Narrow(address),
        Expression::Loaded { at, size_bytes } => Expression::Loaded { at, size_bytes: size_bytes.min(4) },
        Expression::Inserted { .. } | Expression::Either(..) => Expression::Unknown,
        other => other,
    }
}

fn address(operand: &Arm64Operand) -> Option<Address> {
    let Kind::Mem(memory) = &operand.op_type else { return None };
    let index = register(memory.index()).map(|(index, _)| (index, 1 << shift(operand)));
    Some(Address {
        base: register(memory.base()).map(|(base, _)| base),
        index,
        displacement: i64::from(memory.disp()),
        is_thread_local: false,
    })
}

fn shift(operand: &Arm64Operand) -> u32 {
    match operand.shift {
        Arm64Shift::Lsl(count) => count.min(48),
        _ => 0,
    }
}

fn power(count: i64) -> Option<i64> {
    u32::try_from(count).ok().filter(|count| *count < 48).map(|count| 1 << count)
}

fn immediate(operand: &Arm64Operand) -> Option<i64> {
    match operand.op_type {
        Kind::Imm(value) => Some(value),
        _ => None,
    }
}

fn source(operand: &Arm64Operand) -> Option<Register> {
    match operand.op_type {
        Kind::Reg(id) => Some(register(id).map_or(Register::OPAQUE, |(register, _)| register)),
        _ => None,
    }
}

/// A general register that an instruction writes, and whether all 64 bits of it are named.
fn target(operand: &Arm64Operand) -> Option<(Register, bool)> {
    match operand.op_type {
        Kind::Reg(id) => register(id).filter(|(register, _)| *register != Register::ZERO),
        _ => None,
    }
}

fn register(id: RegId) -> Option<(Register, bool)> {
    let id = u32::from(id.0);
    let numbered =
        |first: u32, count: u32| id.checked_sub(first).filter(|n| *n < count).map(|n| Register(n as u16));
    match id {
        Arm64Reg::ARM64_REG_X29 => Some((Register(29), true)),
        Arm64Reg::ARM64_REG_X30 => Some((Register(30), true)),
        Arm64Reg::ARM64_REG_SP => Some((Register(31), true)),
        Arm64Reg::ARM64_REG_WSP => Some((Register(31), false)),
        Arm64Reg::ARM64_REG_XZR => Some((Register::ZERO, true)),
        Arm64Reg::ARM64_REG_WZR => Some((Register::ZERO, false)),
        _ => numbered(Arm64Reg::ARM64_REG_X0, 29)
            .map(|register| (register, true))
            .or_else(|| numbered(Arm64Reg::ARM64_REG_W0, 31).map(|register| (register, false))),
    }
}
