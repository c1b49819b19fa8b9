//! Logs of whole runs: every instruction and every access, as the native engine wrote them.
//!
//! A recording with a log has two kinds of records besides the ordinary ones. An [`crate::Event::LogBlock`] describes a
//! superblock of code, before the first part that names it. An [`crate::Event::LogPart`] is a stretch of execution of
//! one thread. The file holds the parts of a thread in its order; threads have no common order. The last part of all
//! has no words; it is missing when not everything could be written.
//!
//! A part's words are packed, see [`Packer`]. They are the words of the engine's log, see
//! [`crate::native::superblock`]. Records are whole: none continues in the next part. Number 0 is no superblock's: the
//! upper half of the word then gives the kind of record, see [`crate::native::record`].

mod packed;
mod parts;
mod replay;

pub use packed::{MOST_PART_WORDS, Packer, Word, plain};
pub use parts::{LogBlock, LogPart};
pub(crate) use parts::{block, part, put_block, put_part};
pub use replay::{Execution, Log, LogEntry};
