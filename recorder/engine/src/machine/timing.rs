//! Timing calls: the code that the entries and ends of functions lead through.

use crate::engine::Engine;
use crate::entries::near_code::Near;
use crate::system::File;
use crate::system::address_tables::Map;
use lineup_recording::native::Refusal;

/// A function, or a part of one, that the command asked for.
#[derive(Clone, Copy)]
pub(crate) struct TimedFunction {
    pub(crate) number: usize,
    pub(crate) pc: u64,
    pub(crate) region: u64,
    pub(crate) size: u64,
    pub(crate) room: u64,
}

/// The part of a machine that times calls.
pub(crate) trait Timing {
    /// The bytes that the processor flushes from its caches at once, a power of two.
    fn line_bytes() -> u64;

    /// Redirects the entries and the ends of one region's functions, these parts, through code that stamps them. An end
    /// is a return, or a jump to code outside of the parts. A function with an end that cannot be found or redirected
    /// is refused, before any change to it. `moved` has the new places of the program's instructions; new ones are
    /// added.
    ///
    /// The code runs on the program's stack, beyond the part that may be in use. It takes little of the stack and
    /// restores everything: return addresses stay in their places. In the thread's table (the slot `times`, see
    /// [`lineup_recording::native::timed`]; where it is 0, [`crate::timing::stamps::first_call`] is called with the
    /// registers) it counts each call by its duration. A call inside another of the same region is counted but not
    /// timed. The next call detects one that was left without an end. The slots `own.timed` hold the place and the time
    /// of a call's beginning. If [`crate::timing::trials::lots`] gives any, each call counts down to the next sampled
    /// call. Before its first instruction a sampled call does its trial, and no later instruction starts before the
    /// trial is over.
    fn stamp(
        engine: &Engine,
        place: (&File, &mut Vec<Near>),
        moved: &mut Map<u64>,
        region: u64,
        parts: &[TimedFunction],
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
