//! Debug information: ELF, DWARF 4 and 5, and BTF bytes in; Lineup's vocabulary out.
//!
//! Design constraints:
//!
//! * No I/O. The caller brings bytes ([`Bytes`]) and answers requests for other files ([`Companions`]).
//! * Input is hostile until proven otherwise: nothing panics on it, recursion is bounded, allocations
//!   are bounded by the size of the input, reference cycles end.
//! * One damaged unit does not hide the others: unreadable parts are counted in [`DebugInfo::damage`].
//! * A whole kernel must fit: units are read in parallel, no tree of entries is kept, and types that
//!   many units repeat are stored once.
//! * Results depend on the bytes alone, never on timing: the same file gives the same ids.

pub mod btf;
mod bytes;
mod companion;
mod described;
mod dwarf;
mod elf;
mod error;
mod frames;
mod info;
mod lazy_facts;
mod names;
mod program;
mod thread_local;

pub use bytes::{Bytes, Releasable};
pub use companion::{Companion, Companions, NoCompanions};
pub use elf::{
    FileKind, Mapping, MappingSymbol, ModulePart, Placement, Region, Section, Segment, SlotValue,
    ThreadLocalSegment, ThreadSlot,
};
pub use error::Error;
pub use frames::{CallerFrame, FrameRow, frame_rows, function_range};
pub use info::DebugInfo;
pub use names::{demangle, is_meant, nearest, spelled};
pub use program::{FoundFunction, FoundFunctions};
