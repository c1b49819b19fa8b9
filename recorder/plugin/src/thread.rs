//! What the recorder keeps with each guest thread that it follows.

use crate::journal::Slot;
use crate::profile::Profiled;
use crate::registers::Registers;

/// A guest thread.
pub(crate) type Thread = lineup_follow::thread::Thread<Own>;

/// What belongs to the recorder.
#[derive(Default)]
pub(crate) struct Own {
    /// The virtual CPU that it runs on.
    pub(crate) vcpu: u32,
    /// Its registers.
    pub(crate) registers: Registers,
    /// Where its base is was written.
    pub(crate) has_base: bool,
    /// Counters of all it executes, in whole-program mode.
    pub(crate) profile: Option<Box<Profiled>>,
    /// Where unwritten records survive.
    pub(crate) slot: Option<Slot>,
    /// Bytes of the encoder's records that stand in the slot.
    pub(crate) in_slot: usize,
}
