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

mod cache;
mod engine;
mod entries;
mod machine;
mod shared;
mod signals;
mod start;
mod syscalls;
mod system;
mod threads;
mod timing;
mod whole_program;
