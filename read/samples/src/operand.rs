//! The operand of an instruction, by the sampled registers.

use crate::data_source::Operation;
use crate::record::Registers;

/// The one operand in memory of an instruction. Registers have the numbers of the machine's `perf_regs.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operand {
    /// Added unchanged.
    pub base: Option<u32>,
    /// Added after multiplication with the factor.
    pub index: Option<(u32, i64)>,
    /// Added last; with neither register a link address.
    pub displacement: i64,
    /// True when the instruction sets one of the registers, so that their values after it are of no use.
    pub is_overwritten: bool,
    /// The operation.
    pub operation: Operation,
}

/// The address of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandAddress {
    /// In the instruction's own file, at a link address.
    Link(u64),
    /// At an address of the process.
    Runtime(u64),
}

impl Operand {
    /// Its address, by the registers of a sample. A precise sample has the registers after the instruction, another
    /// sample those before it. `None` when the registers do not suffice.
    ///
    /// ```
    /// use lineup_samples::data_source::Operation;
    /// use lineup_samples::operand::{Operand, OperandAddress};
    ///
    /// let operation = Operation::Load;
    /// let own = Operand { base: None, index: None, displacement: 0x4010, is_overwritten: false, operation };
    /// assert_eq!(own.address(None, false), Some(OperandAddress::Link(0x4010)));
    /// assert_eq!(Operand { base: Some(5), ..own }.address(None, false), None);
    /// ```
    pub fn address(&self, registers: Option<Registers<'_>>, is_precise: bool) -> Option<OperandAddress> {
        if self.base.is_none() && self.index.is_none() {
            return Some(OperandAddress::Link(self.displacement as u64));
        }
        let registers = registers.filter(|_| !(is_precise && self.is_overwritten))?;
        let mut address = self.displacement as u64;
        if let Some(base) = self.base {
            address = address.wrapping_add(registers.get(base)?);
        }
        if let Some((index, factor)) = self.index {
            address = address.wrapping_add(registers.get(index)?.wrapping_mul(factor as u64));
        }
        Some(OperandAddress::Runtime(address))
    }
}
