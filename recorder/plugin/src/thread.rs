//! The recorder's data of each guest thread that it follows.

use crate::journal::Slot;
use crate::profile::Profiled;
use crate::registers::Registers;

/// A guest thread.
pub(crate) type Thread = lineup_follow::thread::Thread<Own>;

/// The recorder's own data.
#[derive(Default)]
pub(crate) struct Own {
    /// The virtual CPU that it runs on.
    pub(crate) vcpu: u32,
    /// Its registers.
    pub(crate) registers: Registers,
    /// Whether the record of its base was written.
    pub(crate) has_base: bool,
    /// Counters of all it executes, in whole-program mode.
    pub(crate) profile: Option<Box<Profiled>>,
    /// The journal's slot, where unwritten records survive.
    pub(crate) slot: Option<Slot>,
    /// Bytes of the encoder's records in the slot.
    pub(crate) in_slot: usize,
}
