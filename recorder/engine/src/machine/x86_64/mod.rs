//! x86-64, with the System V ABI of Linux.

mod assembly;
#[cfg(not(miri))]
mod copies;
mod displacement;
mod ends;
mod gates;
mod general_registers;
mod inner_jumps;
mod line_uses;
mod parts;
mod processor;
mod processor_state;
mod registers;
mod restarts;
mod signals;
mod sites;
mod slot_registers;
mod stamps;
mod static_program;
mod superblock;
mod targets;
mod threads;
mod translate;
mod trials;
mod whole_function;

pub(crate) use processor::X86_64;
