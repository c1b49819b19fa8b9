//! Follows a program's execution: the open calls of regions on a thread, and the memory that they touched.
//!
//! The watcher of a program, the emulator's plugin or the reader of the native engine's log, passes each block and each
//! access in order. The result is calls, packed for a recording. So both make the same recording of the same execution.
//!
//! Design constraints:
//!
//! * A [`thread::Thread`] is fed by one thread of the program only; nothing in it is shared.
//! * The watcher needs to know only the executed code. A call's arguments in registers are passed on where they are
//!   known.
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
