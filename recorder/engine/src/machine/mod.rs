//! The engine's interface to the processor, and to the system's ABI on it.
//!
//! All of it stands behind one trait, [`Machine`], in parts. [`Host`] is the machine that this library is built for, so
//! that every call is a plain call of that machine's function. A machine's code lies in a folder of its own next to
//! this file. `cargo xtask tidy` checks that no other code names an instruction or a register. To add a machine, add a
//! folder, a type that implements the parts, and its line below.

mod abi;
mod entries;
mod gates;
mod host;
mod inner_jumps;
mod interface;
mod restarts;
mod timing;
mod translation;

#[cfg(target_arch = "x86_64")]
mod x86_64;

pub(crate) use abi::{Abi, Context, Handler, Registers, ThreadBlock};
pub(crate) use entries::{CallSite, Displaced, Entries, Moved, SpreadSite, Write};
pub(crate) use gates::{EntryData, Gates, Led, Places};
pub(crate) use host::{HostContext, HostRegisters};
pub(crate) use inner_jumps::InnerJumps;
pub(crate) use interface::Machine;
pub(crate) use restarts::{Restarts, SequenceCopy, SequenceTask};
pub(crate) use timing::{TimedFunction, Timing};
pub(crate) use translation::{
    LineUser, Link, Mark, OpenLog, Route, Source, Task, Translated, Translation, Turn, Unlogged, Ways, Whole,
};

/// The machine that this library is built for.
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::X86_64 as Host;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "the native engine runs on x86-64 alone: this architecture has no module in `recorder/engine/src/machine/` that \
     implements `Machine`, see \"How to bring the native engine to another machine\" in ARCHITECTURE.md"
);
