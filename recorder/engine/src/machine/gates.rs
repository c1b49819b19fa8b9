//! The code between the program, the cache and the engine: made once, since it names the thread's slots by their
//! distance.

use super::HostContext;
use crate::slots::Slots;
use std::ops::Range;

/// A system call that the engine must hear of: its number, the function that it leads to, and whether it is made after
/// that function.
pub(crate) type Led = (i64, u64, bool);

/// The part of a machine that takes threads into the cache, out of it, and to the engine.
///
/// All of it is code that may lie anywhere. Unless said otherwise it leaves every register, flags and vectors included,
/// as it was, and touches nothing of the program's stack that may be in use: by the system's ABI that may reach some
/// bytes beyond the stack pointer. What it needs meanwhile lies in the thread's [`Slots`]. `slots` is always their
/// distance from the thread's base, and a *gate* an address that [`Gates::gate`] or [`Gates::masking`] has made code
/// for.
///
/// Code that hands over sets the slots `reason`, `pc` and `link`, and goes to the address in the slot `gate`.
pub(crate) trait Gates {
    /// Bytes for the vector state of a thread while the engine runs, at a multiple of 64.
    const VECTOR_BYTES: usize;
    /// Bytes of the code of [`Gates::leave`] at most.
    const MOST_LEAVE_BYTES: u64;

    /// From the cache to the engine and back. Keeps the stack pointer in the slot `stack`, takes that of `own_stack`,
    /// keeps all else as [`super::Abi::Registers`] and in the memory of the slot `vectors`, and calls the engine's
    /// function with the address of the registers. Then puts all of it back, as the engine has changed it, and goes on
    /// where the slot `resume` says; by way of `unmask` if the slot `deferred` is not 0. When the slot `reason` says
    /// that an allocator hands over, vectors may be kept in part: as far as the engine's own code for that changes
    /// them.
    ///
    /// Second: from behind where in it that slot is looked at, so that a signal that comes later must see to `unmask`
    /// itself.
    fn gate(places: &Places, unmask: u64) -> (Vec<u8>, usize);

    /// As the gate at `gate`, but that no signal comes while the engine runs: for signal handlers on a stack of their
    /// own. There, the system would take the stack for free while the engine is on its own, and put the next handler on
    /// what the first one has there. The mask of before goes to the slot `before_all`, and to `mask` unless a signal
    /// waits already.
    fn masking(slots: i32, gate: u64) -> Vec<u8>;

    /// Puts the mask of signals in the slot `mask` back, clears `deferred`, and goes on where the slot `scratch` says.
    /// The registers that this takes lie in the slots `kept` meanwhile. Second: from where in it on signals are
    /// delivered.
    fn unmask(slots: i32) -> (Vec<u8>, usize);

    /// The registers as the program has them, of a thread that a signal has interrupted in [`Gates::unmask`] with
    /// these, where signals are delivered: the program goes on at the slot `resume_pc`.
    fn unmasked(registers: &HostContext, slots: &Slots) -> HostContext;

    /// Gives the first stack back, and goes on where the slot `after_first` says.
    fn release_first(places: &Places) -> Vec<u8>;

    /// Called as a function that takes nothing, by a thread that has the first stack: hands over so that the thread
    /// goes on in the cache where it would go on natively. May change what a function may.
    fn begin_here(places: &Places, gate: u64) -> Vec<u8>;

    /// Where a thread of a program that is recorded as a whole begins, after the system call that made it: waits for
    /// the first stack and hands over. Where it goes on stands in the slot `pc`.
    fn begin_thread(places: &Places, gate: u64) -> Vec<u8>;

    /// For [`super::Abi::run_in_cache`]: goes on in the cache at the address that it is given.
    fn go_in(slots: i32) -> Vec<u8>;

    /// Asks the engine for the code at an address: in place of a block that is gone, or to go in there.
    fn again(slots: i32, pc: u64) -> Vec<u8>;

    /// As [`Gates::again`], from superblocks, where the log has its register.
    fn again_from_superblocks(slots: i32, pc: u64) -> Vec<u8>;

    /// To the program: the thread is no longer busy, and from there on nothing of its slots is used.
    fn leave(slots: i32, pc: u64) -> Vec<u8>;

    /// Where the thunks of all entries lead, with an [`Entry`] and where to go on natively. It counts the call in the
    /// region's words, in one step for all threads, and decides: nothing is to be recorded any more; the thread is
    /// busy, and not by a handler that was left; it is among the first that are passed over; its position lies beyond
    /// the bound; the thread's own calls are spent. If none of these, it marks the thread busy and hands over with the
    /// stack pointer and all registers as they were at the entry. A thread without a stack of the engine's waits for
    /// the first one.
    fn entry(places: &Places, gate: u64) -> Vec<u8>;

    /// What a patched entry jumps to: leads to the code of [`Gates::entry`] at `common` with the entry at this address.
    /// What was moved from the entry follows it.
    fn thunk(entry: u64, common: u64) -> Vec<u8>;

    /// Code, but that it is passed over when a range holds the address that the function returns to: before an entry of
    /// the C library's that the engine itself calls. May change what is no function's that is called through the
    /// loader.
    fn unless_called_from(range: &Range<u64>, code: Vec<u8>) -> Vec<u8>;

    /// What the entry of a function jumps to that chooses another: a function is called with the registers, of which
    /// [`super::Registers::chooser`] is the number, and all are as they were; what was there follows it.
    fn before_choosing(function: u64, number: u64) -> Vec<u8>;

    /// In place of a system call: calls a function with the registers. The function makes the call, unless its number
    /// is given: then it is made after the function has returned, with the registers as they were. Goes on at `back`.
    fn in_place_of_call(function: u64, number: Option<u32>, back: u64) -> Vec<u8>;

    /// Before the system call of any number at a place of [`super::Entries::any_call_sites`]: for some numbers, what
    /// [`Gates::in_place_of_call`] does.
    fn in_place_of_any_call(at: u64, led: &[Led]) -> Vec<u8>;
}

/// What an entry's code needs to know of it.
#[repr(C)]
pub(crate) struct Entry {
    /// The words of its region.
    pub(crate) region: u64,
    /// What a call's number, counted from one after the warm-up, is multiplied with for its position.
    pub(crate) multiplier: u64,
    pub(crate) pc: u64,
    pub(crate) region_number: u64,
}

/// Where what the code needs lies.
pub(crate) struct Places {
    pub(crate) slots: i32,
    /// The engine's function.
    pub(crate) engine: u64,
    /// A byte that is 0 when nothing is to be recorded any more.
    pub(crate) is_on: u64,
    /// A byte that is not 0 when the engine makes no system call any more, see [`crate::system::seal`].
    pub(crate) is_sealed: u64,
    /// The stack and memory for vector state for threads that are not known yet, and their lock.
    pub(crate) first_stack: u64,
    pub(crate) first_vectors: u64,
    pub(crate) first_lock: u64,
    /// See [`lineup_recording::native::word::RUN_SHIFT`].
    pub(crate) run_shift: u8,
}
