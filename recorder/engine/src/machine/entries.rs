//! The program's code, where it is changed so that it leads elsewhere, and code that other threads execute meanwhile.

use super::HostContext;
use crate::engine::Engine;
use crate::patch::Near;
use crate::sequences::Zones;
use crate::system::File;
use crate::within;
use lineup_recording::native::Refusal;

/// Bytes that are to be written at an address.
pub(crate) type Write = (u64, Vec<u8>);

/// The part of a machine that reads the program's code for places that can lead elsewhere, and writes what does.
///
/// Nothing else of the program may change by it: whatever jumps into the code, and wherever it does, finds what was
/// there. A place of which that cannot be seen is refused. The program's code is given as it is in memory; what is
/// moved from it does what it did at its own place.
pub(crate) trait Entries {
    /// What is displaced from an entry.
    type Displaced: Displaced;
    /// A system call whose number is set some instructions before.
    type SpreadSite: SpreadSite;

    /// Bytes of a jump from the program's code to code near by.
    const JUMP_BYTES: u64;
    /// How far such a jump goes, back and forth.
    const JUMP_REACH: u64;

    /// What a jump takes the place of at the beginning of a function of this size; `room` is what lies between it and
    /// the next.
    fn displace(pc: u64, size: u64, room: u64) -> Result<Self::Displaced, Refusal>;

    /// As [`Entries::displace`], but that a trap leads away, where no jump can stand.
    fn displace_by_trap(pc: u64, size: u64, room: u64) -> Result<Self::Displaced, Refusal>;

    /// A jump in the program's code from `at` to code within its reach.
    fn jump(at: u64, to: u64) -> Write;

    /// Whether what is written is a trap.
    fn is_trap(written: &[u8]) -> bool;

    /// Where a trap stands that has a thread with these registers get SIGTRAP; `code` is what the kernel says that the
    /// signal comes from. `None` when it comes from elsewhere.
    fn trap_at(code: i32, registers: &HostContext) -> Option<u64>;

    /// Where system calls are made in code whose number stands right before, as the C library's functions for single
    /// calls do.
    fn call_sites(code: &[u8]) -> impl Iterator<Item = CallSite>;

    /// Where system calls of these numbers are made in code from `start` on, as far as they can be led elsewhere: other
    /// instructions may stand between the number and the call.
    fn spread_sites(code: &[u8], start: u64, numbers: &[i64]) -> Vec<Self::SpreadSite>;

    /// Where a function makes a system call whose number it is given.
    fn any_call_sites(code: &[u8], start: u64) -> Vec<u64>;

    /// Leads jumps from one of these functions to another, or to itself, past what the entries were patched with: they
    /// are no calls.
    fn lead_within(engine: &Engine, memory: &File, near: &mut Vec<Near>, entries: &[within::Entry]);

    /// Whether code from `start` on passes control on at its end otherwise than by a call of a function that it names.
    fn ends_without_call(code: &[u8], start: u64) -> bool;

    /// Eight bytes that lead from the code that begins there to other code of the cache: written in one piece, while
    /// other threads may execute it. The code begins at a multiple of eight and is longer.
    fn lead_word(from: u64, to: u64) -> u64;

    /// Four bytes for the hole of a jump in the cache, so that it leads elsewhere: written in one piece, while other
    /// threads may execute it. The hole lies at a multiple of four.
    fn link_word(hole: u64, to: u64) -> u32;

    /// Code in the cache was written that is executed here: has processors see it that execute it from now on. Threads
    /// that execute what was there before may find either.
    fn code_was_written(executed: u64, bytes: usize);
}

/// What leads away from an entry, and what that takes the place of.
pub(crate) trait Displaced {
    /// A trap leads away.
    fn is_trap(&self) -> bool;

    /// What is written to lead from the entry to a target, in this order.
    fn writes(&self, pc: u64, target: u64) -> Vec<Write>;

    /// Whether what was displaced is part of a restartable sequence, or begins one.
    fn breaks(&self, zones: &Zones) -> bool;

    /// The code that does what was displaced, to be put at an address, and then goes on behind it. `None` when that
    /// cannot be.
    fn moved_to(&self, at: u64) -> Option<Moved>;
}

/// Code that was moved.
pub(crate) struct Moved {
    pub(crate) code: Vec<u8>,
    /// Where the program's instructions were, and where they are now.
    pub(crate) places: Vec<(u64, u64)>,
}

/// A system call in the program's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallSite {
    /// Where the first instruction stands, which sets the number: a jump has room there.
    pub(crate) offset: usize,
    pub(crate) number: i64,
    /// From there to what follows the call.
    pub(crate) bytes: u64,
}

/// See [`Entries::spread_sites`].
pub(crate) trait SpreadSite {
    /// Where a jump is to stand.
    fn at(&self) -> u64;

    /// The call's number.
    fn number(&self) -> i64;

    /// What it leads to, to be put at an address: in place of the call a function is called with the registers, see
    /// [`super::Gates::in_place_of_call`], or before it, when the call is then made. `None` when that cannot be.
    fn code(&self, at: u64, function: u64, goes_on: bool) -> Option<Vec<u8>>;
}
