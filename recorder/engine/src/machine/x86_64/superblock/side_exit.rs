//! A side exit of a superblock.

use crate::machine::x86_64::slot_registers::Logging;

/// Code at the target of a jump that is seldom taken.
pub(super) struct SideExit {
    /// Place of the jump's distance.
    pub(super) hole: usize,
    pub(super) to: Side,
}

pub(super) enum Side {
    /// The log is full.
    Full,
    /// A call returns to another place than its own.
    Returns {
        /// The instruction's address.
        pc: u64,
        part: u8,
        words: u8,
        state: Logging,
    },
    /// The program continues elsewhere.
    Target {
        /// The address where it continues.
        pc: u64,
        /// The part that is the last.
        part: u8,
        /// Words of the record.
        words: u8,
        state: Logging,
        /// The jump's own place.
        jump: u64,
        /// A superblock that continues there may take its place.
        can_turn: bool,
    },
}

impl SideExit {
    pub(super) fn full(hole: usize) -> SideExit {
        SideExit { hole, to: Side::Full }
    }
}
