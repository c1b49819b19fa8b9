//! Follows what a program executes: which calls of regions are open on a thread, and what they touched.
//!
//! Whoever watches a program, the emulator's plugin or the reader of the native engine's log, tells each block and
//! each access in order; calls come out, packed for a recording. So both make the same recording of the same
//! execution.
//!
//! Design constraints:
//!
//! * A [`thread::Thread`] is fed by one thread of the program only; nothing in it is shared.
//! * Nothing is asked of the machine but what was executed. What a call was given in registers is told, where it can
//!   be, and passed on.
//! * Blocks are never freed while the program runs: threads keep references to them.

pub mod blocks;
pub mod elf;
pub mod flow;
pub mod images;
pub mod maps;
pub mod selection;
mod thinning;
pub mod thread;
pub mod tracker;
