//! The parts of Lineup inside the measured process: immediate values, a clock on one cache line, and a tracer.
//!
//! Design constraints:
//!
//! * A hot path of this crate loads no data that an instruction could carry, and touches the fewest cache lines
//!   that do the job: an immediate value none, the clock one, a dormant probe none.
//! * Nothing here starts a thread, opens a file or a socket unless a call asks for it. Loading the crate registers
//!   the immediate values of its image and nothing more.
//! * Where the machine or the system forbids a technique, the fallback gives the same answers, and [`imv::status`] and
//!   the trace file report that it is in use.
//! * No page is ever writable and executable at once.
//! * `unsafe` is needed throughout: each block states why it is sound, and where the argument rests on measurement
//!   instead of a vendor's promise, it states that too.

mod cancel;
pub mod clock;
pub mod imv;
pub mod trace;
