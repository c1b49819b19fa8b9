//! Every integration test of this crate, in one program.

mod elf;
mod hostile;
mod placed;
mod program;
mod thread_local;
mod tool;
