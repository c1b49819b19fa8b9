//! Calls that are timed: chunks are tables of threads that were, which a thread takes over as they are, and hold words of
//! each region.

/// What [`super::word::MODE`] holds.
pub const MODE: u64 = 1;
/// Regions in a table, the last one for the cost of the stamps themselves.
pub const REGIONS: usize = 8;
/// That one.
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
/// How often there was a longest call.
pub const MARKS: usize = 5;
/// Calls that have begun and not ended yet.
pub const OPEN: usize = 6;
/// The latest longest calls: when each began, its cycles and its processor; zeros for one that was inside another call.
pub const FIRST_MARK: usize = 8;
/// Words of each.
pub const MARK_WORDS: usize = 3;
/// So many, one taking the place of another.
pub const MOST_MARKS: usize = 16;
/// Where the return address of the call lies that was drawn and has not ended, or 0.
pub const TRIAL: usize = FIRST_MARK + MARK_WORDS * MOST_MARKS;
/// What was done before it: the number of its [`Arm`].
pub const ARM: usize = TRIAL + 1;
/// Calls up to the next that is drawn; 0 before the thread has called.
pub const COUNTDOWN: usize = TRIAL + 2;
/// The counter before which none is drawn.
pub const REST_UNTIL: usize = TRIAL + 3;
/// Where the thread's lots have come to.
pub const LOTS: usize = TRIAL + 4;
/// Calls that were drawn.
pub const DRAWN: usize = TRIAL + 5;
/// Cycles that were spent before them.
pub const SPENT: usize = TRIAL + 6;
/// Calls by cycles.
pub const FIRST_BUCKET: usize = 64;
/// As in a trace's histogram: 32 to an octave.
pub const BUCKETS: usize = 1920;
/// In the region of an entry: no function's beginning, but a part of it that lies elsewhere.
pub const PART: u64 = 1 << 32;

/// What was done before a call that was drawn. The names are those of the tracer's arms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Arm {
    /// Nothing.
    None,
    /// The lines of its function's code were flushed from all caches.
    FlushCode,
    /// Other data was read, as much as pushes what is there out of the caches of the first two levels.
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

    /// Whether data is pushed out.
    pub fn flushes_data(self) -> bool {
        matches!(self, Arm::FlushData | Arm::FlushBoth)
    }
}

/// Words of a call that was drawn and has ended, in the order of their ends.
pub mod trial {
    /// Words of each.
    pub const WORDS: usize = 2;
    /// What it was: the number of its arm, the region's number [`REGION_AT`], and [`IS_WRITTEN`].
    pub const TAG: usize = 0;
    /// How long it took.
    pub const CYCLES: usize = 1;
    /// The tag's lowest bit of the region's number.
    pub const REGION_AT: u32 = 8;
    /// The tag's bit that is set last.
    pub const IS_WRITTEN_AT: u32 = 32;
    /// So many are kept; none is drawn any more then.
    pub const MOST: usize = 1 << 20;
    /// Where they lie in the file: no code is defined when calls are timed.
    pub const PLACE: u64 = super::super::DEFINITIONS.start;
}

/// Code that is flushed before calls that were drawn, where it is not the function's own.
pub mod flushed {
    use super::{REGIONS, trial};

    /// Lines of a region at most.
    pub const MOST: usize = (1 << 16) - 1;
    /// Words of each region: how many lines there are, and their addresses in order. There are none where the function's own
    /// code is flushed.
    pub const WORDS: usize = 1 + MOST;
    /// Where they lie in the file.
    pub const PLACE: u64 = trial::PLACE + 8 * (trial::WORDS * trial::MOST) as u64;
    /// Where they end.
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
