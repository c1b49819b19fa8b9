//! The layout of the file. All numbers are little-endian.
//!
//! | part | at | bytes |
//! |---|---|---|
//! | header | 0 | 4096 |
//! | names | 4096 | `names` × 128, rounded up to 4096 |
//! | thread areas, `threads` of them | after the names | each: header 4096, ring, high-water ring, histograms |
//!
//! A ring is an array of 64-byte records. Record number `n` (from 0) of a ring of `c` lies at slot `n % c` and holds
//! `n + 1` in its commit word once it is whole, 0 while it is written.

/// First bytes of every trace.
pub const MAGIC: [u8; 8] = *b"LNUPTRC\x01";
/// The version of this layout.
pub const VERSION: u32 = 1;
/// Alignment of every part.
pub const PAGE_BYTES: u64 = 4096;
/// Bytes in a record: one cache line.
pub const RECORD_BYTES: u64 = 64;
/// Bytes in an entry of the table of names.
pub const NAME_BYTES: u64 = 128;
/// The number of counters that a record holds.
pub const COUNTERS: usize = 4;
/// Values of which a region or lock has a histogram: duration or hold, lock wait, and each counter.
pub const METRICS: u64 = 2 + COUNTERS as u64;

/// Offsets in the header.
pub mod header {
    /// `u32`: version.
    pub const VERSION: usize = 8;
    /// `u32`: how many threads have areas.
    pub const THREADS: usize = 16;
    /// `u32`: records in each ring, a power of two.
    pub const RING_RECORDS: usize = 20;
    /// `u32`: records in each high-water ring, a power of two.
    pub const HIGH_WATER_RECORDS: usize = 24;
    /// `u32`: entries in the table of names.
    pub const NAMES: usize = 28;
    /// `u32`: 1 when a full ring stops recording, 0 when it overwrites the oldest.
    pub const STOPS_WHEN_FULL: usize = 32;
    /// `u32`: modes, a mask of the constants in [`mode`](super::mode).
    pub const MODES: usize = 36;
    /// `u32`: process.
    pub const PID: usize = 40;
    /// `u32`: how counters were read, see [`Rung`](crate::reader::Rung).
    pub const RUNG: usize = 44;
    /// Four names of 32 bytes, zero-padded: the counters.
    pub const COUNTER_NAMES: usize = 48;
    /// Bytes in the name of a counter.
    pub const COUNTER_NAME_BYTES: usize = 32;
    /// `u32`: thread areas given out, refused ones included.
    pub const THREADS_CLAIMED: usize = 176;
    /// `u32`: names given out, refused ones included.
    pub const NAMES_CLAIMED: usize = 180;
    /// `u64`: the tracer's clock at start, nanoseconds.
    pub const START_NS: usize = 184;
    /// `u64`: wall clock at start, nanoseconds since 1970.
    pub const START_REALTIME_NS: usize = 192;
    /// `u64`: probes passed by threads without an area.
    pub const LOST_WITHOUT_AREA: usize = 200;
    /// `u32`: 1 when times come from the cycle counter, 0 from the system's clock.
    pub const USES_COUNTER: usize = 208;
}

/// Modes of recording.
pub mod mode {
    /// Every event, in the ring.
    pub const EVENTS: u32 = 1;
    /// Each new maximum, with the events inside it.
    pub const HIGH_WATER: u32 = 2;
    /// Histograms.
    pub const HISTOGRAMS: u32 = 4;
}

/// Offsets in an entry of the table of names.
pub mod name {
    /// `u32`: 1 once the entry is whole.
    pub const READY: usize = 0;
    /// `u32`: kind, see [`NameKind`](crate::reader::NameKind).
    pub const KIND: usize = 4;
    /// `u32`: length of the name in bytes.
    pub const LENGTH: usize = 8;
    /// `u32`: mask of the arms among which a call of the region is assigned at random; 0: none.
    pub const ARMS: usize = 12;
    /// `u64`, `u64`: address and bytes of the region's code, if given.
    pub const CODE: usize = 16;
    /// `u64`, `u64`: address and bytes of the region's data, if given.
    pub const DATA: usize = 32;
    /// `u64`: nanoseconds after which a lock is given up under that arm.
    pub const GIVE_UP_NS: usize = 48;
    /// The name, UTF-8.
    pub const TEXT: usize = 56;
    /// Room for the name in bytes.
    pub const TEXT_BYTES: usize = 72;
}

/// Offsets in a thread's header.
pub mod thread {
    /// `u32`: the system's thread number; 0 while the area is free.
    pub const TID: usize = 0;
    /// `u64`: events refused because the ring was full.
    pub const LOST_FULL: usize = 8;
    /// `u64`: probes passed while the same thread was inside a probe (in a signal handler).
    pub const LOST_NESTED: usize = 16;
    /// `u64`: ends without a begin, and begins left without an end or too deep.
    pub const UNBALANCED: usize = 24;
    /// 16 bytes: the thread's name, zero-padded.
    pub const NAME: usize = 64;
}

/// Offsets in a record.
pub mod record {
    /// `u64`: record number + 1, or 0 while the record is written.
    pub const COMMIT: usize = 0;
    /// `u64`: start, nanoseconds on the tracer's clock.
    pub const START_NS: usize = 8;
    /// `u64`: duration, nanoseconds. For a lock: how long it was held.
    pub const DURATION_NS: usize = 16;
    /// `u64`: time spent waiting for locks inside, nanoseconds.
    pub const LOCK_WAIT_NS: usize = 24;
    /// `u64`: a mark's value, a lock's address, or how many records follow a high-water head.
    pub const ARGUMENT: usize = 32;
    /// `u16`: index in the table of names.
    pub const NAME: usize = 40;
    /// `u16`: CPU at the end; `0xffff` when unknown.
    pub const CPU: usize = 42;
    /// `u8`: kind, see [`Kind`](crate::event::Kind).
    pub const KIND: usize = 44;
    /// `u8`: arm, see [`Arm`](crate::event::Arm).
    pub const ARM: usize = 45;
    /// `u8`: how many regions were open around this one.
    pub const DEPTH: usize = 46;
    /// Four `u32`: counter differences, saturated.
    pub const COUNTERS: usize = 48;
}

/// The sizes that the header announces, and the offsets that follow from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    /// Threads with areas.
    pub threads: u32,
    /// Records in a ring: a power of two.
    pub ring_records: u32,
    /// Records in a high-water ring: a power of two.
    pub high_water_records: u32,
    /// Entries in the table of names.
    pub names: u32,
    /// True when areas have histograms.
    pub has_histograms: bool,
}

fn pages(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE_BYTES) * PAGE_BYTES
}

impl Geometry {
    /// The error in these sizes, if any.
    pub fn fault(&self) -> Option<&'static str> {
        let is_ring = |records: u32| records.is_power_of_two() && records <= 1 << 24;
        match () {
            () if self.threads == 0 || self.threads > 4096 => Some("threads are not 1 to 4096"),
            () if self.names == 0 || self.names > 4096 => Some("names are not 1 to 4096"),
            () if !is_ring(self.ring_records) => Some("the ring is not a power of two up to 2^24"),
            () if !is_ring(self.high_water_records) => {
                Some("the high-water ring is not a power of two up to 2^24")
            }
            () => None,
        }
    }

    /// The beginning of the table of names.
    pub fn names_at(&self) -> u64 {
        PAGE_BYTES
    }

    /// The beginning of the area of thread `index`.
    pub fn area_at(&self, index: u32) -> u64 {
        PAGE_BYTES + pages(u64::from(self.names) * NAME_BYTES) + u64::from(index) * self.area_bytes()
    }

    /// From the start of an area to its ring.
    pub fn ring_offset(&self) -> u64 {
        PAGE_BYTES
    }

    /// From the start of an area to its high-water ring.
    pub fn high_water_offset(&self) -> u64 {
        PAGE_BYTES + pages(u64::from(self.ring_records) * RECORD_BYTES)
    }

    /// From the start of an area to its histograms.
    pub fn histograms_offset(&self) -> u64 {
        self.high_water_offset() + pages(u64::from(self.high_water_records) * RECORD_BYTES)
    }

    /// From the start of the histograms to the counts of `metric` of `name`.
    pub fn histogram_offset(&self, name: u32, metric: u64) -> u64 {
        (u64::from(name) * METRICS + metric) * HISTOGRAM_BYTES
    }

    /// Bytes of an area.
    pub fn area_bytes(&self) -> u64 {
        let histograms =
            if self.has_histograms { u64::from(self.names) * METRICS * HISTOGRAM_BYTES } else { 0 };
        self.histograms_offset() + pages(histograms)
    }

    /// Bytes of the whole file. It is sparse: untouched parts take no room.
    pub fn file_bytes(&self) -> u64 {
        self.area_at(self.threads)
    }
}

/// Linear steps in each power of two of a histogram: values are kept to within one part in 32.
pub const STEPS: u64 = 32;
const STEP_BITS: u32 = STEPS.trailing_zeros();
/// Buckets in a histogram: enough for any `u64`.
pub const BUCKETS: u64 = (64 - STEP_BITS as u64 + 1) * STEPS;
/// Bytes of a histogram: a `u64` per bucket.
pub const HISTOGRAM_BYTES: u64 = BUCKETS * 8;

/// The bucket that counts `value`.
#[inline]
pub fn bucket_of(value: u64) -> u64 {
    if value < STEPS {
        return value;
    }
    let octave = 63 - value.leading_zeros();
    let shift = octave - STEP_BITS;
    (u64::from(shift) + 1) * STEPS + (value >> shift) - STEPS
}

/// The least and greatest value that bucket `bucket` counts.
pub fn bucket_range(bucket: u64) -> (u64, u64) {
    if bucket < STEPS {
        return (bucket, bucket);
    }
    let shift = (bucket / STEPS - 1).min(63) as u32;
    let least = (STEPS + bucket % STEPS) << shift;
    (least, least + ((1u64 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_the_range_of_its_bucket_and_ranges_meet() {
        for value in (0..5_000).chain([u64::MAX, u64::MAX - 1, 1 << 63, (1 << 40) + 12_345]) {
            let (least, greatest) = bucket_range(bucket_of(value));
            assert!(least <= value && value <= greatest, "{value}");
            assert!(greatest - least <= value / STEPS, "{value}");
        }
        for bucket in 1..BUCKETS {
            assert_eq!(bucket_range(bucket).0, bucket_range(bucket - 1).1 + 1);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn areas_do_not_overlap_and_fill_the_file() {
        let geometry = Geometry {
            threads: 3,
            ring_records: 128,
            high_water_records: 64,
            names: 33,
            has_histograms: true,
        };
        assert_eq!(geometry.fault(), None);
        assert_eq!(geometry.area_at(1) - geometry.area_at(0), geometry.area_bytes());
        assert_eq!(geometry.area_at(3), geometry.file_bytes());
        let last =
            geometry.histograms_offset() + geometry.histogram_offset(32, METRICS - 1) + HISTOGRAM_BYTES;
        assert!(last <= geometry.area_bytes());
    }
}
