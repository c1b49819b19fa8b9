//! Redirects the program's code, and code that other threads may execute at the same time.

use super::HostContext;
use crate::cache::sequence::Zones;
use lineup_recording::native::Refusal;

/// Bytes to write at an address.
pub(crate) type Write = (u64, Vec<u8>);

/// The part of a machine that finds places of the program's code that can be redirected, and writes the jumps and traps
/// there.
///
/// The program's behaviour may not change by it: a jump into the code, from any place to any place, has its old effect.
/// A place where that is not certain is refused. The program's code is given as in memory; moved instructions do what
/// they did at their own place.
pub(crate) trait Entries {
    /// Instructions displaced from an entry.
    type Displaced: Displaced;
    /// A system call whose number is set some instructions before.
    type SpreadSite: SpreadSite;

    /// Bytes of a jump from the program's code to code near by.
    const JUMP_BYTES: u64;
    /// The range of such a jump, back and forth.
    const JUMP_REACH: u64;

    /// The instructions that a jump replaces at the beginning of a function of this size; `room` is the space between
    /// it and the next.
    fn displace(pc: u64, size: u64, room: u64) -> Result<Self::Displaced, Refusal>;

    /// As [`Entries::displace`], but a trap leads away, where there is no room for a jump.
    fn displace_by_trap(pc: u64, size: u64, room: u64) -> Result<Self::Displaced, Refusal>;

    /// A jump in the program's code from `at` to code within its reach.
    fn jump(at: u64, to: u64) -> Write;

    /// Whether the written bytes are a trap.
    fn is_trap(written: &[u8]) -> bool;

    /// Address of the trap that gave SIGTRAP to a thread with these registers; `code` is the signal's origin as the
    /// kernel gives it. `None` when the signal has another origin.
    fn trap_at(code: i32, registers: &HostContext) -> Option<u64>;

    /// System calls in code that sets their number right before, as the C library's functions for single calls do.
    fn call_sites(code: &[u8]) -> impl Iterator<Item = CallSite>;

    /// System calls of these numbers in code from `start` on, as far as they can be redirected: other instructions may
    /// be between the number and the call.
    fn spread_sites(code: &[u8], start: u64, numbers: &[i64]) -> Vec<Self::SpreadSite>;

    /// Addresses where a function makes a system call whose number it is given.
    fn any_call_sites(code: &[u8], start: u64) -> Vec<u64>;

    /// Whether code from `start` on passes control on at its end in another way than by a call of a function that it
    /// names.
    fn ends_without_call(code: &[u8], start: u64) -> bool;

    /// Eight bytes that lead from the code that begins there to other code of the cache: written by one store, while
    /// other threads may execute it. The code begins at a multiple of eight and is longer.
    fn lead_word(from: u64, to: u64) -> u64;

    /// Four bytes for the hole of a jump in the cache, so that it leads elsewhere: written by one store, while other
    /// threads may execute it. The hole lies at a multiple of four.
    fn link_word(hole: u64, to: u64) -> u32;

    /// Makes newly written code in the cache visible to the processors that execute it from now on. Threads that
    /// execute the old code at the time may find either.
    fn code_was_written(executed: u64, bytes: usize);
}

/// The redirection of an entry, and the instructions that it replaces.
pub(crate) trait Displaced {
    /// A trap leads away.
    fn is_trap(&self) -> bool;

    /// The writes that lead from the entry to a target, in this order.
    fn writes(&self, pc: u64, target: u64) -> Vec<Write>;

    /// Whether the displaced instructions are part of a restartable sequence, or begin one.
    fn breaks(&self, zones: &Zones) -> bool;

    /// Code for an address that does the displaced instructions' work, and then continues after them. `None` when that
    /// is impossible.
    fn moved_to(&self, at: u64) -> Option<Moved>;
}

/// Code that was moved.
pub(crate) struct Moved {
    pub(crate) code: Vec<u8>,
    /// Old and new places of the program's instructions.
    pub(crate) places: Vec<(u64, u64)>,
}

/// A system call in the program's code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CallSite {
    /// Offset of the first instruction, which sets the number: a jump has room there.
    pub(crate) offset: usize,
    pub(crate) number: i64,
    /// Distance from there to the instruction after the call.
    pub(crate) bytes: u64,
}

/// See [`Entries::spread_sites`].
pub(crate) trait SpreadSite {
    /// Address for the jump.
    fn at(&self) -> u64;

    /// The call's number.
    fn number(&self) -> i64;

    /// Code for an address, the jump's target. It calls a function with the registers, in place of the system call (see
    /// [`super::Gates::in_place_of_call`]), or before it if `goes_on`. `None` when that is impossible.
    fn code(&self, at: u64, function: u64, goes_on: bool) -> Option<Vec<u8>>;
}
