//! The file of recorded calls.
//!
//! Design constraints:
//!
//! * One writer per file, fed by many threads: each thread packs whole records into its own
//!   [`Encoder`] and hands finished blocks to the shared [`Writer`]. No record spans two blocks.
//! * A file that was cut off stays useful: every block carries its length and a checksum, so the
//!   [`Reader`] yields everything up to the last whole block and then reports a [`Damage`].
//! * Reading never panics and holds one block at a time; the expanded size of a block is bounded by
//!   [`MAX_BLOCK_BYTES`].
//! * Addresses are runtime addresses; [`lineup_model::image::LoadedImage`] converts them.
//! * Lost records are counted in the [`Summary`], never silently dropped.
//!
//! A file is the magic `LINEUPRC`, a version (`u32`, little endian) and blocks. A block is its expanded
//! length, its stored length, a CRC-32 of the stored bytes (each `u32`, little endian) and the stored
//! bytes, which zstd expands to a run of records. The first record is the [`Header`].
//!
//! ```
//! use lineup_model::abi::Abi;
//! use lineup_recording::{Encoder, Header, Writer, read_all};
//! let header = Header::new(Abi::X86_64, vec!["./program".into()]);
//! let mut writer = Writer::new(Vec::new(), &header)?;
//! let mut encoder = Encoder::new();
//! encoder.image(&lineup_model::image::LoadedImage {
//!     path: "/bin/true".into(), start: 0x1000, end: 0x2000, bias: 0x1000, build_id: None,
//! });
//! writer.append(&encoder.seal()?)?;
//! let recording = read_all(&writer.into_inner())?;
//! assert_eq!(recording.images[0].path, "/bin/true");
//! # Ok::<(), lineup_recording::RecordingError>(())
//! ```

pub mod audit;
mod budget;
mod error;
mod file;
pub mod journal;
pub mod log;
pub mod native;
pub mod plan;
mod records;
mod varint;

pub use budget::ThreadBudget;
pub use error::{Damage, RecordingError};
pub use file::encoder::{CallHead, Encoder, MOST_ACCESSES};
pub use file::frame::{MAGIC, MAX_BLOCK_BYTES, OLDEST_VERSION, VERSION};
pub use file::reader::{Reader, Recording, events_of, read_all};
pub use file::writer::{WRITE_FAILED, Writer};
pub use records::allocation::AllocationSite;
pub use records::context::{Context, ContextKind};
pub use records::event::Event;
pub use records::header::{
    Ending, Header, Misses, Mode, PageCounts, ProfileInstruction, ProfileRun, ProgramExit, RegionCounts,
    Selection, Summary, Unfollowed,
};
pub use records::placement::{HeapObject, Placement, SiteMemory, WindowObjects};
pub use records::sizes::{CALLS_IN_RUN, CALLS_IN_RUN_SHIFT, CallSizes, spread_position};
pub use records::stream;
pub use records::system::{Arm, Counts, FlagCounts, Latency, MeasuredCall, SystemPlan, SystemSummary};
pub use records::tasks::{KernelTask, Reach, Turn, window_of};
pub use records::window::{Resident, Window, WindowStep};
