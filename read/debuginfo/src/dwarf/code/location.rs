//! Location expressions, as far as `lineup_model` can represent them.

use crate::dwarf::{Dwarf, Slice, Unit};
use gimli::{Expression, Operation};
use lineup_model::program::{FrameBase, Location, Piece};

/// Longer expressions than this are not interpreted.
const MAX_OPERATIONS: usize = 64;

/// The location that an expression describes, or [`Location::Other`].
pub(crate) fn interpret<'a>(
    dwarf: &Dwarf<'a>,
    unit: &Unit<'a>,
    expression: Expression<Slice<'a>>,
) -> Location {
    read(dwarf, unit, expression).unwrap_or(Location::Other)
}

fn read<'a>(dwarf: &Dwarf<'a>, unit: &Unit<'a>, expression: Expression<Slice<'a>>) -> Option<Location> {
    let mut operations = expression.operations(unit.encoding());
    let mut own = Vec::new();
    let mut pieces = PieceCollector::default();
    for _ in 0..MAX_OPERATIONS {
        match operations.next().ok()? {
            Some(Operation::Piece { size_in_bits, bit_offset }) => {
                let is_start = bit_offset.is_none_or(|offset| offset == 0);
                let at = is_start.then(|| meaning(dwarf, unit, &own)).flatten();
                pieces.add(size_in_bits, at)?;
                own.clear();
            }
            Some(operation) => own.push(operation),
            None if pieces.end_bits == 0 => return meaning(dwarf, unit, &own),
            None if own.is_empty() => return Some(Location::Pieces(pieces.found)),
            None => return None,
        }
    }
    None
}

/// The pieces read so far.
#[derive(Default)]
struct PieceCollector {
    found: Vec<Piece>,
    end_bits: u64,
}

impl PieceCollector {
    /// Appends a piece; one without a known place, or that is no run of bytes, only takes its room. `None` when
    /// the sizes add up to more than can be.
    fn add(&mut self, size_bits: u64, at: Option<Location>) -> Option<()> {
        let start_bits = self.end_bits;
        self.end_bits = start_bits.checked_add(size_bits)?;
        let is_bytes = size_bits > 0 && start_bits.is_multiple_of(8) && size_bits.is_multiple_of(8);
        if let Some(at) = at.filter(|_| is_bytes) {
            self.found.push(Piece { offset: start_bits / 8, size_bytes: size_bits / 8, at });
        }
        Some(())
    }
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

/// The frame base of a `DW_AT_frame_base` expression, when it is a register or the canonical frame address.
pub(crate) fn frame_base(unit: &Unit<'_>, expression: Expression<Slice<'_>>) -> Option<FrameBase> {
    let mut operations = expression.operations(unit.encoding());
    let base = match operations.next().ok()?? {
        Operation::CallFrameCFA => FrameBase::CanonicalFrameAddress,
        Operation::Register { register } => FrameBase::Register(register.0),
        Operation::RegisterOffset { register, offset: 0, .. } => FrameBase::Register(register.0),
        _ => return None,
    };
    operations.next().ok()?.is_none().then_some(base)
}
