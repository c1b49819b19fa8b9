//! Injecting the engine into a statically linked program as it starts: such a program has no loader to do it.
//!
//! 1. The program is stopped when it has just taken its process's place. Its table of parts gets one more thread-local
//!    part, below its own ([`thread_block`]).
//! 2. It runs until it has set its first thread's base: before that, the C library only sets itself up. A program that
//!    makes any other system call before is not supported, and is ended before the call is made.
//! 3. The engine's parts are laid out in it and bound ([`layout`]), and the engine begins.

mod layout;
mod program_part;
mod starting;
mod thread_block;

pub(super) use starting::Starting;
