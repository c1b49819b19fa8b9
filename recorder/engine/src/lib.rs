//! The native engine: loaded into a program, it records calls of watched functions.
//!
//! The entry of a watched function is patched. A call that is to be recorded goes on in a code cache, where every
//! block of the program's code stands once more with instructions between its own that log it; when the call returns,
//! the thread is native again. What was logged goes through memory to the command, see [`lineup_recording::native`]:
//! nothing here understands it.
//!
//! Design constraints:
//!
//! * The program cannot tell: its registers, flags, red zone and vector state are its own at every instruction, and
//!   what it pushes are its own addresses.
//! * Nothing here calls the C library while the program runs, nor its allocator: the call that is recorded may be
//!   theirs.
//! * No memory is writable and executable at one place.
//! * What cannot be translated is executed natively and told.

mod addresses;
mod slots;

mod allocations;
mod alone;
mod attach;
mod blocks;
mod budget;
mod cache;
mod calls;
mod choosers;
mod ends;
mod engine;
mod filters;
mod forks;
mod guards;
mod handlers;
mod heap;
mod holdings;
mod interrupted;
mod level;
mod lock;
mod machine;
mod maps;
mod masks;
mod open_calls;
mod own_thread;
mod patch;
mod processes;
mod restore;
mod sequences;
mod shared;
mod sieve;
mod signals;
mod stamps;
mod start;
mod system;
mod targets;
mod threads;
mod traps;
mod trials;
mod within;

/// Nothing here takes memory from the program's allocator. Miri knows no system calls made by hand, and uses its own.
#[cfg_attr(not(miri), global_allocator)]
#[cfg_attr(miri, allow(dead_code))]
static ALLOCATOR: heap::Allocator = heap::Allocator::new();

/// Sees to memory for all that the engine takes from now on, since it cannot ask the system for more. False when there
/// is none.
fn reserve_memory() -> bool {
    const RESERVED_BYTES: usize = 256 << 20;
    ALLOCATOR.reserve(RESERVED_BYTES)
}

/// Whether there is memory left of what was reserved, with room for what is taken at once.
fn has_memory() -> bool {
    const MOST_AT_ONCE: usize = 16 << 20;
    ALLOCATOR.left_bytes() > MOST_AT_ONCE
}
