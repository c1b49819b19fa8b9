//! The code between the program, the cache and the engine: made once, since it names the thread's slots by their
//! distance.

use super::HostContext;
use crate::threads::slots::Slots;
use std::ops::Range;

/// A system call that the engine must handle: its number, its function in the engine, and whether it is made after that
/// function.
pub(crate) type Led = (i64, u64, bool);

/// The part of a machine that takes threads into the cache, out of it, and to the engine.
///
/// All of it is code that may lie anywhere. Unless said otherwise it preserves every register, flags and vectors
/// included. It touches no part of the program's stack that may be in use: by the system's ABI that may reach some
/// bytes beyond the stack pointer. Its own data lies in the thread's [`Slots`]. `slots` is always their distance from
/// the thread's base, and a *gate* an address that [`Gates::gate`] or [`Gates::masking`] has made code for.
///
/// Code that hands over sets the slots `reason`, `pc` and `link`, and goes to the address in the slot `gate`.
pub(crate) trait Gates {
    /// Bytes for the vector state of a thread while the engine runs, at a multiple of 64.
    const VECTOR_BYTES: usize;
    /// Bytes of the code of [`Gates::leave`] at most.
    const MOST_LEAVE_BYTES: u64;

    /// From the cache to the engine and back. Keeps the stack pointer in the slot `stack`, and takes that of
    /// `own_stack`. Keeps all else as [`super::Abi::Registers`] and in the memory of the slot `vectors`. Calls the
    /// engine's function with the address of the registers. Then restores all of it, with the engine's changes, and
    /// continues at the address in the slot `resume`; by way of `unmask` if the slot `deferred` is not 0. When the slot
    /// `reason` says that an allocator hands over, vectors may be kept in part: only the part that the engine's own
    /// code for that changes.
    ///
    /// Second: the offset after the test of `deferred`. A signal that comes there or later must go to `unmask` itself.
    fn gate(places: &Places, unmask: u64) -> (Vec<u8>, usize);

    /// As the gate at `gate`, but with signals blocked while the engine runs: for signal handlers on a stack of their
    /// own. There, the system would take the stack for free while the engine is on its own. The next handler would then
    /// overwrite the first one's data there. The previous mask goes to the slot `before_all`, and to `mask` unless a
    /// signal waits already.
    fn masking(slots: i32, gate: u64) -> Vec<u8>;

    /// Restores the mask of signals in the slot `mask`, clears `deferred`, and continues at the address in the slot
    /// `scratch`. The slots `kept` hold the registers that this takes. Second: the offset from which on signals are
    /// delivered.
    fn unmask(slots: i32) -> (Vec<u8>, usize);

    /// The program's registers of a thread that a signal has interrupted in [`Gates::unmask`] with these, where signals
    /// are delivered: the program continues at the address in the slot `resume_pc`.
    fn unmasked(registers: &HostContext, slots: &Slots) -> HostContext;

    /// Gives the first stack back, and continues at the address in the slot `after_first`.
    fn release_first(places: &Places) -> Vec<u8>;

    /// Called as a function that takes nothing, by a thread that has the first stack: hands over so that the thread
    /// continues in the cache where it would continue natively. May change the registers that a function may.
    fn begin_here(places: &Places, gate: u64) -> Vec<u8>;

    /// Start of a thread of a program that is recorded as a whole, after the system call that made it: waits for the
    /// first stack and hands over. The slot `pc` holds the address where it continues.
    fn begin_thread(places: &Places, gate: u64) -> Vec<u8>;

    /// Start of a burst, anywhere in the program: hands over with all registers as they are. The thread is marked busy,
    /// and the slot `pc` holds the address where it continues. A thread without a stack of the engine's waits for the
    /// first one.
    fn begin_burst(places: &Places, gate: u64) -> Vec<u8>;

    /// For [`super::Abi::run_in_cache`]: continues in the cache at the given address.
    fn go_in(slots: i32) -> Vec<u8>;

    /// Asks the engine for the code at an address: in place of a removed block, or to enter there.
    fn again(slots: i32, pc: u64) -> Vec<u8>;

    /// As [`Gates::again`], from superblocks, where the log has its register.
    fn again_from_superblocks(slots: i32, pc: u64) -> Vec<u8>;

    /// To the program: the thread is no longer busy, and from there on none of its slots is used.
    fn leave(slots: i32, pc: u64) -> Vec<u8>;

    /// Target of the thunks of all entries, with an [`EntryData`] and the native address to continue at. It counts the
    /// call in the region's words, atomically for all threads. It passes the call over in these cases: recording has
    /// stopped; the thread is busy, and not by a handler that was left; the call belongs to the warm-up; its position
    /// lies beyond the bound; the thread's own calls are spent. Otherwise it marks the thread busy and hands over with
    /// the stack pointer and all registers as they were at the entry. A thread without a stack of the engine's waits
    /// for the first one.
    fn entry(places: &Places, gate: u64) -> Vec<u8>;

    /// Target of a patched entry's jump: leads to the code of [`Gates::entry`] at `common` with the entry at this
    /// address. The instructions that were moved from the entry follow it.
    fn thunk(entry: u64, common: u64) -> Vec<u8>;

    /// Code that is skipped when a range holds the function's return address: before an entry of the C library that the
    /// engine itself calls. May change the registers that a call through the loader may.
    fn unless_called_from(range: &Range<u64>, code: Vec<u8>) -> Vec<u8>;

    /// Target of the entry's jump of a function that chooses another: calls a function with the registers, of which
    /// [`super::Registers::chooser`] is the number, and restores all of them. The moved instructions follow it.
    fn before_choosing(function: u64, number: u64) -> Vec<u8>;

    /// In place of a system call: calls a function with the registers. The function makes the call, unless its number
    /// is given: then it is made after the function has returned, with unchanged registers. Continues at `back`.
    fn in_place_of_call(function: u64, number: Option<u32>, back: u64) -> Vec<u8>;

    /// Before the system call of any number at a place of [`super::Entries::any_call_sites`]: for some numbers, it does
    /// the same as [`Gates::in_place_of_call`].
    fn in_place_of_any_call(at: u64, led: &[Led]) -> Vec<u8>;
}

/// Data of an entry for its code.
#[repr(C)]
pub(crate) struct EntryData {
    /// The words of its region.
    pub(crate) region: u64,
    /// Factor of a call's position: multiplied with the call's number, counted from one after the warm-up.
    pub(crate) multiplier: u64,
    pub(crate) pc: u64,
    pub(crate) region_number: u64,
}

/// Addresses of the code's data.
pub(crate) struct Places {
    pub(crate) slots: i32,
    /// The engine's function.
    pub(crate) engine: u64,
    /// A byte that is 0 when recording has stopped.
    pub(crate) is_on: u64,
    /// A byte that is not 0 when the engine makes no system call any more, see [`crate::system::seal`].
    pub(crate) is_sealed: u64,
    /// The stack and the memory for vector state of threads that are not known yet, and their lock.
    pub(crate) first_stack: u64,
    pub(crate) first_vectors: u64,
    pub(crate) first_lock: u64,
    /// See [`lineup_recording::native::head::Control::run_shift`].
    pub(crate) run_shift: u8,
}
