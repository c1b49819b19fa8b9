//! The recorder inside the emulator: a plugin for QEMU's TCG that records the memory that calls of chosen functions
//! touch.
//!
//! Design constraints:
//!
//! * Nothing unwinds into the emulator; the only output is errors that stop the recording.
//! * A callback belongs to one guest thread and touches that thread's state only. Shared state is behind locks that
//!   translation and full blocks take, not execution.
//! * The interface of QEMU 7.2 reads no registers. Later ones do: they give a call's arguments, its stack and its
//!   thread's base, see `registers.rs`. Nothing else depends on them: returns are recognised by the slot of the return
//!   address (x86) or by the return pc (Arm); see [`lineup_follow::tracker`].
//! * The target of a callback's pointer is never freed: the emulator keeps the pointers.
//! * Guest memory is read only where the guest itself just accessed it.
//!
//! A whole system has a recorder of its own: see [`system`](crate).
//!
//! The command hands over a [`lineup_recording::plan::Plan`] as `plan=FILE`. A discovery run writes a
//! [`lineup_recording::plan::Discovery`], every other run a recording.

mod ask;
mod audit;
mod block;
mod callbacks;
mod describe;
mod ffi;
mod follow;
mod guest;
mod handles;
mod install;
mod isa;
mod journal;
mod kept_file;
mod last_words;
mod limits;
mod link;
mod output;
mod process;
mod profile;
mod recorder;
mod registers;
mod syscalls;
mod system;
mod thread;
mod translate;
mod unwatched;
