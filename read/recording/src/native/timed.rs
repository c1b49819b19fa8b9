//! Timed calls: chunks are the tables of threads, which hold words for each region. A thread takes over the table of an
//! ended thread unchanged.

/// The value of [`super::head::Control::mode`].
pub const MODE: u64 = 1;
/// Regions in a table, the last one for the cost of the stamps themselves.
pub const REGIONS: usize = 8;
/// The region for the cost of the stamps.
pub const STAMPS: usize = REGIONS - 1;
/// Words of each.
pub const WORDS: usize = 1984;
/// Cycles of all calls.
pub const SUM: usize = 0;
/// Cycles of the longest call.
pub const MOST: usize = 1;
/// Calls that were left by an exception or a jump, as a later call or the thread's end found out.
pub const LEFT: usize = 2;
/// Calls inside a call of the same region.
pub const INNER: usize = 3;
/// Calls that ended with a jump to another function.
pub const JUMPED: usize = 4;
/// The number of times that a call became the longest so far.
pub const MARKS: usize = 5;
/// Calls that have begun and not ended yet.
pub const OPEN: usize = 6;
/// The latest longest calls: for each its start, its cycles and its processor; zeros for a call inside another one.
pub const FIRST_MARK: usize = 8;
/// Words of each.
pub const MARK_WORDS: usize = 3;
/// The number of these; a new one replaces the oldest.
pub const MOST_MARKS: usize = 16;
/// The place of the return address of the sampled call that has not ended, or 0.
pub const TRIAL: usize = FIRST_MARK + MARK_WORDS * MOST_MARKS;
/// The intervention before it: the number of its [`Arm`].
pub const ARM: usize = TRIAL + 1;
/// Calls up to the next sampled one; 0 before the thread has called.
pub const COUNTDOWN: usize = TRIAL + 2;
/// The counter value before which no call is sampled.
pub const REST_UNTIL: usize = TRIAL + 3;
/// The state of the thread's random numbers.
pub const LOTS: usize = TRIAL + 4;
/// Sampled calls.
pub const DRAWN: usize = TRIAL + 5;
/// Cycles that were spent before them.
pub const SPENT: usize = TRIAL + 6;
/// Calls by cycles.
pub const FIRST_BUCKET: usize = 64;
/// As in a trace's histogram: 32 to an octave.
pub const BUCKETS: usize = 1920;
/// In the region of an entry: no function's beginning, but a part of it that lies elsewhere.
pub const PART: u64 = 1 << 32;

/// The intervention before a sampled call. The names are those of the tracer's arms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Arm {
    /// Nothing.
    None,
    /// The lines of its function's code were flushed from all caches.
    FlushCode,
    /// Other data was read, enough to push earlier data out of the caches of the first two levels.
    FlushData,
    /// Both.
    FlushBoth,
}

impl Arm {
    /// All, in the order of reports and of their numbers.
    pub const ALL: [Arm; 4] = [Arm::None, Arm::FlushCode, Arm::FlushData, Arm::FlushBoth];

    /// Its number: a bit for code, a bit for data.
    pub fn number(self) -> u64 {
        self as u64
    }

    /// The arm of a number.
    pub fn of_number(number: u64) -> Option<Arm> {
        Arm::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Arm::None => "none",
            Arm::FlushCode => "flush_code",
            Arm::FlushData => "flush_data",
            Arm::FlushBoth => "flush_both",
        }
    }

    /// True when data is pushed out.
    pub fn flushes_data(self) -> bool {
        matches!(self, Arm::FlushData | Arm::FlushBoth)
    }
}

/// Words of a sampled call that has ended, in the order of their ends.
pub mod trial {
    /// Words of each.
    pub const WORDS: usize = 2;
    /// Its tag: the number of its arm, the region's number at [`REGION_AT`], and [`IS_WRITTEN`].
    pub const TAG: usize = 0;
    /// Its duration.
    pub const CYCLES: usize = 1;
    /// The tag's lowest bit of the region's number.
    pub const REGION_AT: u32 = 8;
    /// The tag's bit that is set last.
    pub const IS_WRITTEN_AT: u32 = 32;
    /// The maximum number kept; then no more calls are sampled.
    pub const MOST: usize = 1 << 20;
    /// Their offset in the file: no code is defined when calls are timed.
    pub const PLACE: u64 = super::super::DEFINITIONS.start;
}

/// Code that is flushed before sampled calls, where it is not the function's own.
pub mod flushed {
    use super::{REGIONS, trial};

    /// Lines of a region at most.
    pub const MOST: usize = (1 << 16) - 1;
    /// Words of each region: the number of lines, and their addresses in order. There are none where the function's own
    /// code is flushed.
    pub const WORDS: usize = 1 + MOST;
    /// Their offset in the file.
    pub const PLACE: u64 = trial::PLACE + 8 * (trial::WORDS * trial::MOST) as u64;
    /// Their end.
    pub const END: u64 = PLACE + 8 * (WORDS * REGIONS) as u64;
}

const _: () = assert!(8 * REGIONS * WORDS <= super::chunk::BYTES as usize);
const _: () = assert!(FIRST_BUCKET + BUCKETS <= WORDS && SPENT < FIRST_BUCKET);
const _: () = assert!(flushed::END <= super::DEFINITIONS.end);

#[cfg(test)]
mod tests {
    use super::Arm;

    #[test]
    fn an_arm_is_told_by_its_number() {
        assert!(Arm::ALL.iter().all(|arm| Arm::of_number(arm.number()) == Some(*arm)));
        assert_eq!(Arm::of_number(4), None);
        let both = Arm::FlushCode.number() | Arm::FlushData.number();
        assert_eq!(Arm::of_number(both), Some(Arm::FlushBoth));
    }
}
