//! Whole systems: records calls of kernel functions, and runs the processor model over everything.
//!
//! While the guest boots, only the marker is watched. Its first call starts the recording: the emulator drops its
//! translations once, and from then on every line of code fetched and every access to data has a callback. The marker's
//! second call ends the recording.
//!
//! Distinguished parts of the run:
//!
//! * *Calls* end when a `ret` loads from the slot that their `call` stored to; on Arm, when control reaches the
//!   instruction after the innermost call of that place.
//! * *Interrupts* begin at the kernel's entries and end at the return that reads the frame they began with (on Arm, at
//!   the next return from an interrupt); code that ran in between belongs to no region of the level below.
//! * *Tasks* are identified by their stacks: the one function that changes stacks suspends the open calls of one task
//!   and resumes those of the other.
//! * *Interrupts off* is a shadow of the processor's flag, kept from the instruction stream. It is checked: a
//!   hardware interrupt that comes while the shadow says off is counted as an error of the shadow. On Arm the flag is
//!   written from registers, which no plugin sees: saves and restores are matched, see [`flag`].

mod begin;
mod callbacks;
mod context;
mod cpu;
mod cpus;
mod flag;
mod install;
mod lock;
pub(crate) mod privileged;
mod processor;
mod profile;
mod shared;
mod sites;
mod stream;
mod task;
mod tasks;
mod translate;
mod windows;

pub(crate) use install::install;
