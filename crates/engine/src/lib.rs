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
mod forks;
mod handlers;
mod heap;
mod holdings;
mod interrupted;
mod level;
mod lock;
mod machine;
mod maps;
mod masks;
mod own_thread;
mod patch;
mod processes;
mod restore;
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
