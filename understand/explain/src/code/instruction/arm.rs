//! 32-bit Arm, A32 and Thumb, through Capstone.

use super::capstone_session::{Decoded, failure, translate_all};
use super::effects::{Address, CallTarget, Convention, Expression, Flow, Instruction, Register};
use crate::error::ExplainError;
use capstone::RegId;
use capstone::arch::arm::{
    ArchExtraMode, ArchMode, ArmCC, ArmOperand, ArmOperandType as Kind, ArmReg, ArmShift,
};
use capstone::prelude::*;
use lineup_model::access::AccessKind;

pub(super) const CONVENTION: Convention = Convention {
    stack_pointer: SP,
    frame_above_stack_bytes: 0,
    result: Register(0),
    clobbered: &[0, 1, 2, 3, 12, 14],
    registers: 16,
    pointer_bytes: 4,
    base_holds_itself: false,
};

const SP: Register = Register(13);
const PC: Register = Register(15);

pub(super) fn decode(address: u64, bytes: &[u8], is_thumb: bool) -> Result<Vec<Instruction>, ExplainError> {
    let mode = if is_thumb { ArchMode::Thumb } else { ArchMode::Arm };
    let session = Capstone::new()
        .arm()
        .mode(mode)
        .extra_mode([ArchExtraMode::V8].into_iter())
        .detail(true)
        .build()
        .map_err(failure)?;
    let step = if is_thumb { 2 } else { 4 };
    translate_all(&session, address, bytes, step, |decoded| translate(decoded, is_thumb))
}

fn translate(decoded: &Decoded<'_>, is_thumb: bool) -> Instruction {
    let mut out = Instruction::new(decoded.address, decoded.length);
    let Some(detail) = decoded.detail.arm() else { return out };
    let name = decoded.name.as_str();
    if is_system(name) {
        return out;
    }
    out.is_conditional = !matches!(detail.cc(), ArmCC::ARM_CC_AL | ArmCC::ARM_CC_INVALID);
    let operands: Vec<ArmOperand> = detail.operands().collect();
    let reader = Reader { pc: decoded.address + if is_thumb { 4 } else { 8 } };
    if let Some(flow) = reader.flow(name, &operands, out.is_conditional) {
        out.flow = flow;
        if name != "pop" && name != "ldr" && !name.starts_with("ldm") {
            return out;
        }
    }
    if let Some(position) = operands.iter().position(|operand| matches!(operand.op_type, Kind::Mem(_))) {
        reader.memory(name, &operands, position, detail.writeback(), &mut out);
    } else if is_multiple(name) {
        multiple(name, &operands, detail.writeback(), &mut out);
    } else if name == "mrc" {
        coprocessor(decoded, &operands, &mut out);
    } else if !matches!(name, "cmp" | "cmn" | "tst" | "teq" | "it" | "nop" | "svc") {
        reader.arithmetic(name, &operands, &mut out);
    }
    out
}

/// Instructions whose operands name system state only.
fn is_system(name: &str) -> bool {
    matches!(name, "cps" | "setend" | "msr" | "mrs" | "dmb" | "dsb" | "isb" | "hint" | "pld" | "pldw" | "pli")
}

fn is_multiple(name: &str) -> bool {
    matches!(name, "push" | "pop" | "vpush" | "vpop")
        || ["ldm", "stm", "vldm", "vstm", "fldm", "fstm"].iter().any(|prefix| name.starts_with(prefix))
}

fn coprocessor(decoded: &Decoded<'_>, operands: &[ArmOperand], out: &mut Instruction) {
    let is_base =
        decoded.operand_text.starts_with("p15, #0") && decoded.operand_text.ends_with("c13, c0, #3");
    if let Some(to) = operands.iter().find_map(general) {
        out.set(to, if is_base { Expression::ThreadBase } else { Expression::Unknown });
    }
}

/// Reads operands of an instruction for which the program counter reads as `pc`.
struct Reader {
    pc: u64,
}

impl Reader {
    fn flow(&self, name: &str, operands: &[ArmOperand], is_conditional: bool) -> Option<Flow> {
        let target = operands.iter().rev().find_map(|operand| match operand.op_type {
            Kind::Imm(target) => Some(u64::from(target as u32)),
            _ => None,
        });
        let writes_pc = || operands.iter().any(|operand| general(operand) == Some(PC));
        Some(match (name, target) {
            ("b", Some(target)) if !is_conditional => Flow::Jump(target),
            ("b" | "cbz" | "cbnz", Some(target)) => Flow::Branch(target),
            ("bl" | "blx", Some(target)) => Flow::Call(CallTarget::Direct(target)),
            ("blx", _) => Flow::Call(CallTarget::Unknown),
            ("bx", _) if !is_conditional => match operands.first().and_then(general) {
                Some(Register(14)) => Flow::Return,
                _ => Flow::Indirect,
            },
            ("tbb" | "tbh", _) => Flow::Indirect,
            ("pop" | "ldm" | "ldmib" | "ldmdb", _) if writes_pc() && !is_conditional => Flow::Return,
            ("ldr" | "add" | "mov", _) if operands.first().and_then(general) == Some(PC) => Flow::Indirect,
            ("udf", _) => Flow::Stop,
            _ => return None,
        })
    }

    fn memory(
        &self,
        name: &str,
        operands: &[ArmOperand],
        position: usize,
        writeback: bool,
        out: &mut Instruction,
    ) {
        let Some(mut at) = operands.get(position).and_then(|operand| self.address(operand)) else { return };
        let registers: Vec<&ArmOperand> = operands.iter().take(position).collect();
        let is_store = name.starts_with("st") || name.starts_with("vst");
        let has_status = name.starts_with("strex") || name.starts_with("stlex");
        let data = if has_status { registers.get(1..).unwrap_or(&[]) } else { &registers[..] };
        let size = access_bytes(name, data);
        if has_status && let Some(status) = registers.first().and_then(|operand| general(operand)) {
            out.set(status, Expression::Unknown);
        }
        if writeback && let Some(base) = at.base {
            out.set(base, write_back(operands.get(position + 1), &mut at, size));
        }
        let each = size / data.len().max(1) as u32;
        for (index, operand) in data.iter().enumerate() {
            let at = Address { displacement: at.displacement + index as i64 * i64::from(each), ..at };
            match general(operand) {
                Some(to) if !is_store && to != PC => out.set(to, Expression::Loaded { at, size_bytes: each }),
                from if is_store => out.touch(at, each, AccessKind::Store, from.filter(|_| each == 4)),
                _ => {}
            }
        }
        if !is_store {
            out.touch(at, size, AccessKind::Load, None);
        }
    }

    fn address(&self, operand: &ArmOperand) -> Option<Address> {
        let Kind::Mem(memory) = &operand.op_type else { return None };
        let sign = if operand.subtracted || memory.scale() < 0 { -1 } else { 1 };
        let index = numbered(memory.index()).map(|index| match operand.shift {
            ArmShift::Lsl(count) => (index, sign << count.min(31)),
            ArmShift::Invalid => (index, sign),
            _ => (Register::OPAQUE, 1),
        });
        let displacement = i64::from(memory.disp());
        let base = numbered(memory.base());
        if base == Some(PC) {
            let aligned = (self.pc & !3) as i64;
            return Some(Address { index, ..Address::constant(aligned + displacement) });
        }
        Some(Address { base, index, displacement, is_thread_local: false })
    }

    fn arithmetic(&self, name: &str, operands: &[ArmOperand], out: &mut Instruction) {
        let Some(to) = operands.first().and_then(general).filter(|to| *to != PC) else { return };
        let value = self.value(name, operands, to).unwrap_or(Expression::Unknown);
        out.set(to, value);
    }

    fn value(&self, name: &str, operands: &[ArmOperand], to: Register) -> Option<Expression> {
        let (first, second) = match operands {
            [to, second] => (to, second),
            [_, first, second, ..] => (first, second),
            _ => return None,
        };
        Some(match name {
            "mov" | "movw" => match second.op_type {
                Kind::Imm(value) => Expression::Sum(Address::constant(i64::from(value as u32))),
                _ => Expression::Sum(self.term(second, 1)?),
            },
            "mvn" => Expression::Sum(Address::constant(i64::from(!immediate(second)? as u32))),
            "movt" => Expression::Inserted { register: to, shift: 16, bits: immediate(second)? as u16 },
            "adr" => {
                Expression::Sum(Address::constant((self.pc & !3) as i64 + i64::from(immediate(second)?)))
            }
            "add" | "addw" => Expression::Sum(self.sum(first, second, 1)?),
            "sub" | "subw" => Expression::Sum(self.sum(first, second, -1)?),
            "rsb" => self.reversed(first, second)?,
            "lsl" => Expression::Sum(match immediate(second) {
                Some(count) => Address::scaled(general(first)?, 1 << count.clamp(0, 31)),
                None => self.term(second, 1)?,
            }),
            "mul" => Expression::Product { factors: [general(first)?, general(second)?], addend: None },
            "mla" => Expression::Product {
                factors: [general(first)?, general(second)?],
                addend: Some(general(operands.get(3)?)?),
            },
            "and" => Expression::Masked { register: general(first)?, mask: i64::from(immediate(second)?) },
            "bic" => Expression::Masked { register: general(first)?, mask: i64::from(!immediate(second)?) },
            _ => return None,
        })
    }

    fn sum(&self, first: &ArmOperand, second: &ArmOperand, sign: i64) -> Option<Address> {
        let base = general(first)?;
        if base == PC || general(second) == Some(PC) {
            let other = if base == PC { second } else { first };
            return self.with_pc(other, sign);
        }
        match second.op_type {
            Kind::Imm(value) => Some(Address::of(base, i64::from(value).wrapping_mul(sign))),
            _ => Some(Address { base: Some(base), ..self.term(second, sign)? }),
        }
    }

    /// The program counter plus or minus something. Thumb aligns it only for immediates.
    fn with_pc(&self, other: &ArmOperand, sign: i64) -> Option<Address> {
        match other.op_type {
            Kind::Imm(value) => Some(Address::constant((self.pc & !3) as i64 + i64::from(value) * sign)),
            _ => Some(Address { displacement: self.pc as i64, ..self.term(other, sign)? }),
        }
    }

    /// `second - first`: with the same register in both, a multiple of it.
    fn reversed(&self, first: &ArmOperand, second: &ArmOperand) -> Option<Expression> {
        let minus = general(first)?;
        match second.op_type {
            Kind::Imm(value) => Some(Expression::Sum(Address {
                index: Some((minus, -1)),
                ..Address::constant(i64::from(value))
            })),
            _ => {
                let (register, factor) = self.term(second, 1)?.index?;
                Some(Expression::Sum(if register == minus {
                    Address::scaled(register, factor - 1)
                } else if factor == 1 {
                    Address { index: Some((minus, -1)), ..Address::of(register, 0) }
                } else {
                    Address { index: Some((register, factor)), ..Address::of(Register::OPAQUE, 0) }
                }))
            }
        }
    }

    /// A shifted register as a multiple.
    fn term(&self, operand: &ArmOperand, sign: i64) -> Option<Address> {
        let register = general(operand)?;
        if register == PC {
            return Some(Address::constant(self.pc as i64));
        }
        match operand.shift {
            ArmShift::Invalid if sign == 1 => {
                Some(Address { index: Some((register, 1)), ..Address::default() })
            }
            ArmShift::Invalid => Some(Address::scaled(register, sign)),
            ArmShift::Lsl(count) => Some(Address::scaled(register, sign << count.min(31))),
            _ => Some(Address::scaled(Register::OPAQUE, 1)),
        }
    }
}

/// The value that write-back leaves in the base register; a pre-indexed address already carries it.
fn write_back(step: Option<&ArmOperand>, at: &mut Address, size_bytes: u32) -> Expression {
    let Some(base) = at.base else { return Expression::Unknown };
    match step.map(|operand| &operand.op_type) {
        Some(Kind::Imm(step)) => Expression::Sum(Address::of(base, i64::from(*step))),
        Some(_) => Expression::Unknown,
        None if at.displacement != 0 || at.index.is_some() => Expression::Sum(*at),
        None => Expression::Sum(Address::of(base, i64::from(size_bytes))),
    }
}

/// `ldm`, `stm`, `push`, `pop` and their vector forms.
fn multiple(name: &str, operands: &[ArmOperand], writeback: bool, out: &mut Instruction) {
    let is_stack = matches!(name, "push" | "pop" | "vpush" | "vpop");
    let (base, list) = match operands {
        list if is_stack => (SP, list),
        [base, list @ ..] => match general(base) {
            Some(base) => (base, list),
            None => return,
        },
        [] => return,
    };
    let sizes: Vec<u32> = list.iter().map(register_bytes).collect();
    let total = i64::from(sizes.iter().sum::<u32>());
    let is_store = name.contains("st") || name.ends_with("push");
    let goes_down = name.ends_with("push") || name.ends_with("db");
    let starts_after = name.ends_with("ib");
    let mut offset = if goes_down {
        -total
    } else if starts_after {
        4
    } else {
        0
    };
    let first = offset;
    if writeback || is_stack {
        out.set(base, Expression::Sum(Address::of(base, if goes_down { -total } else { total })));
    }
    for (operand, size) in list.iter().zip(&sizes) {
        let at = Address::of(base, offset);
        match general(operand) {
            from if is_store => out.touch(at, *size, AccessKind::Store, from),
            Some(to) if to != PC => out.set(to, Expression::Loaded { at, size_bytes: *size }),
            _ => {}
        }
        offset += i64::from(*size);
    }
    if !is_store {
        out.touch(Address::of(base, first), total as u32, AccessKind::Load, None);
    }
}

fn access_bytes(name: &str, data: &[&ArmOperand]) -> u32 {
    let is_vector = name.starts_with('v');
    let stem = name.trim_end_matches('t');
    let each = match stem {
        _ if is_vector => return data.iter().map(|operand| register_bytes(operand)).sum(),
        "ldrb" | "ldrsb" | "strb" | "ldrexb" | "strexb" | "ldab" | "stlb" => 1,
        "ldrh" | "ldrsh" | "strh" | "ldrexh" | "strexh" | "ldah" | "stlh" => 2,
        _ => 4,
    };
    each * data.len() as u32
}

fn register_bytes(operand: &ArmOperand) -> u32 {
    let Kind::Reg(id) = operand.op_type else { return 0 };
    let id = u32::from(id.0);
    let within = |first: u32, count: u32| (first..first + count).contains(&id);
    if within(ArmReg::ARM_REG_D0, 32) {
        8
    } else if within(ArmReg::ARM_REG_Q0, 16) {
        16
    } else {
        4
    }
}

fn immediate(operand: &ArmOperand) -> Option<i32> {
    match operand.op_type {
        Kind::Imm(value) => Some(value),
        _ => None,
    }
}

fn general(operand: &ArmOperand) -> Option<Register> {
    match operand.op_type {
        Kind::Reg(id) => numbered(id),
        _ => None,
    }
}

fn numbered(id: RegId) -> Option<Register> {
    let id = u32::from(id.0);
    match id {
        ArmReg::ARM_REG_SP => Some(SP),
        ArmReg::ARM_REG_LR => Some(Register(14)),
        ArmReg::ARM_REG_PC => Some(PC),
        _ => id.checked_sub(ArmReg::ARM_REG_R0).filter(|n| *n < 13).map(|n| Register(n as u16)),
    }
}
