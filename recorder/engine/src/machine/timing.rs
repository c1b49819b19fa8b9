//! Timing calls: what the entries and ends of functions lead through.

use crate::addresses::Map;
use crate::ends::Asked;
use crate::engine::Engine;
use crate::patch::Near;
use crate::system::File;
use lineup_recording::native::Refusal;

/// The part of a machine that times calls.
pub(crate) trait Timing {
    /// Bytes of what the processor flushes from its caches at once, a power of two.
    fn line_bytes() -> u64;

    /// Leads the entries and the ends of one region's functions, these parts, through code that stamps them. An end is
    /// a return, or a jump to code outside of the parts. A function of which an end cannot be found or led is refused,
    /// before anything of it is changed. `moved` tells where the program's instructions went, and is told.
    ///
    /// The code runs on the program's stack, beyond what of it may be in use, with as little of it as can be, and
    /// leaves everything as it was: return addresses stay where they are. In the thread's table (the slot `times`, see
    /// [`lineup_recording::native::timed`]; where it is 0, [`crate::stamps::first_call`] is called with the registers)
    /// it counts each call by how long it took; one inside another of the same region is counted and not timed, and one
    /// that was left without an end is found out by the next. Where a call began, and when, stands in the slots
    /// `own.timed`. If [`crate::trials::lots`] gives any, each call counts down to the next that is drawn, does what
    /// that was drawn for before the function's first instruction, and has nothing behind that under way earlier.
    fn stamp(
        engine: &Engine,
        place: (&File, &mut Vec<Near>),
        moved: &mut Map<u64>,
        region: u64,
        parts: &[Asked],
    ) -> Result<(), Refusal>;

    /// A function that does nothing, whose calls are stamped as those of the region `timed::STAMPS`, and one without
    /// stamps.
    fn stamped_function(engine: &Engine) -> [Vec<u8>; 2];

    /// Reads memory, which is readable, as is done before calls: a line at a time, up to its end, which is a multiple
    /// of lines.
    ///
    /// # Safety
    /// All of it must be readable.
    unsafe fn sweep(from: u64, to: u64);
}
