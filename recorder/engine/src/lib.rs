//! The native engine: loaded into a program, it records calls of watched functions.
//!
//! The entry of a watched function is patched. A call to record continues in a code cache, which holds a copy of every
//! block of the program's code with logging instructions added; when the call returns, the thread is native again. The
//! log goes through shared memory to the command, see [`lineup_recording::native`], which interprets it.
//!
//! Design constraints:
//!
//! * The program cannot notice: its registers, flags, red zone and vector state are its own at every instruction, and
//!   it pushes its own addresses.
//! * Nothing here calls the C library while the program runs, nor its allocator: the call that is recorded may be
//!   theirs.
//! * No memory is writable and executable at one place.
//! * Code that cannot be translated is executed natively and reported.

mod addresses;
mod slots;

mod allocations;
mod alone;
mod attach;
mod blocks;
mod budget;
mod bursts;
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

/// The engine takes no memory from the program's allocator. Miri knows no system calls made by hand, and uses its own.
#[cfg_attr(not(miri), global_allocator)]
#[cfg_attr(miri, allow(dead_code))]
static ALLOCATOR: heap::Allocator = heap::Allocator::new();

/// Reserves memory for all later allocations of the engine, since it cannot ask the system for more. False without
/// memory.
fn reserve_memory() -> bool {
    const RESERVED_BYTES: usize = 256 << 20;
    ALLOCATOR.reserve(RESERVED_BYTES)
}

/// Whether the reserved memory has room for the largest single allocation.
fn has_memory() -> bool {
    const MOST_AT_ONCE: usize = 16 << 20;
    ALLOCATOR.left_bytes() > MOST_AT_ONCE
}
