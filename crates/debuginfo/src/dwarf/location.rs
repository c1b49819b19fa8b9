//! Location expressions, as far as the vocabulary tells them.

use super::{Dwarf, Slice, Unit};
use gimli::{Expression, Operation};
use lineup_model::program::{FrameBase, Location};

/// Longer expressions than this are not interpreted.
const MAX_OPERATIONS: usize = 4;

/// What an expression says, or [`Location::Other`].
pub(super) fn interpret<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    expression: Expression<Slice<'a>>,
) -> Location {
    let mut operations = expression.operations(unit.encoding());
    let mut all = Vec::with_capacity(MAX_OPERATIONS);
    loop {
        match operations.next() {
            Ok(Some(_)) if all.len() == MAX_OPERATIONS => return Location::Other,
            Ok(Some(operation)) => all.push(operation),
            Ok(None) => break,
            Err(_) => return Location::Other,
        }
    }
    meaning(dwarf, unit, &all).unwrap_or(Location::Other)
}

fn meaning<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, operations: &[Operation<Slice<'a>>]) -> Option<Location> {
    let (first, rest) = operations.split_first()?;
    // Constants added to a register or address, then perhaps the mark of a computed value.
    let mut added = 0_i64;
    let mut rest = rest;
    while let [Operation::PlusConstant { value }, tail @ ..] = rest {
        added = added.wrapping_add(value.cast_signed());
        rest = tail;
    }
    let is_value = matches!(rest, [Operation::StackValue]);
    let is_thread_local = matches!(rest, [Operation::TLS]);
    if !(rest.is_empty() || is_value || is_thread_local) {
        return None;
    }
    let located = |address: u64| {
        let address = address.wrapping_add_signed(added);
        match (is_value, is_thread_local) {
            (true, _) => Location::AddressOf(address),
            (_, true) => Location::ThreadLocal(address),
            _ => Location::Address(address),
        }
    };
    // A number: an offset in thread-local storage, or a value.
    let number = |value: u64| {
        let value = value.wrapping_add_signed(added);
        if is_thread_local { Location::ThreadLocal(value) } else { Location::Constant(value.cast_signed()) }
    };
    match *first {
        Operation::Address { address } => Some(located(address)),
        Operation::AddressIndex { index } => dwarf.address(unit, index).ok().map(located),
        Operation::ConstantIndex { index } if is_thread_local || is_value => {
            dwarf.address(unit, index).ok().map(number)
        }
        Operation::UnsignedConstant { value } if is_thread_local || is_value => Some(number(value)),
        Operation::SignedConstant { value } if is_thread_local || is_value => {
            Some(number(value.cast_unsigned()))
        }
        Operation::Register { register } if operations.len() == 1 => Some(Location::Register(register.0)),
        Operation::RegisterOffset { register, offset, .. } if !is_thread_local => {
            let (register, offset) = (register.0, offset.wrapping_add(added));
            Some(if is_value {
                Location::RegisterPlus { register, offset }
            } else {
                Location::Memory { register, offset }
            })
        }
        Operation::FrameOffset { offset } if rest.is_empty() => {
            Some(Location::Frame { offset: offset.wrapping_add(added) })
        }
        Operation::ImplicitValue { data } if operations.len() == 1 => implicit(data.slice()),
        _ => None,
    }
}

/// A value given by its bytes in memory order.
fn implicit(bytes: &[u8]) -> Option<Location> {
    let mut value = [0; 8];
    value.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(Location::Constant(i64::from_le_bytes(value)))
}

/// What `DW_AT_frame_base` says, when it is a register or the canonical frame address.
pub(super) fn frame_base(unit: &Unit<'_>, expression: Expression<Slice<'_>>) -> Option<FrameBase> {
    let mut operations = expression.operations(unit.encoding());
    let base = match operations.next().ok()?? {
        Operation::CallFrameCFA => FrameBase::CanonicalFrameAddress,
        Operation::Register { register } => FrameBase::Register(register.0),
        Operation::RegisterOffset { register, offset: 0, .. } => FrameBase::Register(register.0),
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(base)
}
