//! Superblocks: the translation of code when all of a run is logged.
//!
//! A superblock continues after conditional jumps, and at the targets of direct jumps and calls. Side exits leave it.
//! It logs no addresses of accesses, but values of registers from which they follow: each once, while all changes of
//! the register are known. One register has the log for good; the program's value of it lies in a slot. Instructions
//! that use it get the slot, or another register for as long as they take. No added instruction changes a flag that
//! matters, or touches the program's stack.
//!
//! A superblock has two entries: a native one, with all of the program's registers, and one for other superblocks, with
//! the log in its register.

mod execution;
mod exits;
mod helpers;
mod logging;
mod reading;
mod register_results;
mod renaming;
mod side_exit;
mod values;
mod writer;

pub(crate) use writer::translate;
