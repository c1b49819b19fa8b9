//! Results that instructions compute from registers alone: the reader of the log can compute them as well.

use lineup_recording::native::derived::Operation;

/// The computation of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RegisterResult {
    pub(super) operation: Operation,
    /// With the lower 32 bits, and zeros above.
    pub(super) is_half: bool,
    pub(super) first: Operand,
    pub(super) second: Operand,
}

/// One of two things.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    /// A value, by its number.
    Number(u32),
    Constant(i64),
}

impl RegisterResult {
    /// The numbers of the values that it is computed from.
    pub(super) fn numbers(self) -> impl Iterator<Item = u32> {
        [self.first, self.second].into_iter().filter_map(|operand| match operand {
            Operand::Number(number) => Some(number),
            Operand::Constant(_) => None,
        })
    }

    /// Whether it is a byte of a value that has other bytes as well: that repeats more often than the whole value, and
    /// takes less room in the log.
    pub(super) fn is_byte(self) -> bool {
        let mask = match self.second {
            Operand::Constant(mask) => mask,
            Operand::Number(_) => return false,
        };
        self.operation == Operation::And && (0..=0xff).contains(&mask)
    }

    /// Whether it is a sum of 64 bits.
    pub(super) fn is_sum(self) -> bool {
        self.operation == Operation::Add && !self.is_half
    }
}
