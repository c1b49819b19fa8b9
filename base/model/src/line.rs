//! Cache-line arithmetic.

use std::fmt;
use std::ops::RangeInclusive;

/// The size of a cache line in bytes: a power of two from 8 to 4096.
///
/// ```
/// use lineup_model::line::LineSize;
/// let line = LineSize::new(64).unwrap();
/// assert_eq!(line.count(60, 8), 2);
/// assert!(LineSize::new(48).is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LineSize(u32);

impl LineSize {
    /// 32 bytes: many 32-bit cores.
    pub const B32: LineSize = LineSize(32);
    /// 64 bytes: x86 and most 64-bit Arm cores.
    pub const B64: LineSize = LineSize(64);
    /// 128 bytes: pairs of lines under adjacent-line prefetch, and some 64-bit cores.
    pub const B128: LineSize = LineSize(128);
    /// The three sizes every advice is judged at.
    pub const ALL: [LineSize; 3] = [Self::B32, Self::B64, Self::B128];

    /// The place of a size among [`LineSize::ALL`]; `None` for any other.
    pub fn place_in_all(bytes: u64) -> Option<usize> {
        Self::ALL.iter().position(|size| size.bytes() == bytes)
    }

    /// A line size, or `None` unless `bytes` is a power of two from 8 to 4096.
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= 8 && bytes <= 4096 { Some(Self(bytes)) } else { None }
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0 as u64
    }

    /// The number of the line that holds `address`.
    pub const fn line_of(self, address: u64) -> u64 {
        address / self.bytes()
    }

    /// The numbers of the lines that `size_bytes` bytes from `address` lie on. An empty span counts
    /// as the one line that holds its address.
    pub fn lines(self, address: u64, size_bytes: u64) -> RangeInclusive<u64> {
        let last = address.saturating_add(size_bytes.max(1) - 1);
        self.line_of(address)..=self.line_of(last)
    }

    /// The number of lines that `size_bytes` bytes from `address` cover.
    pub fn count(self, address: u64, size_bytes: u64) -> u64 {
        let lines = self.lines(address, size_bytes);
        lines.end() - lines.start() + 1
    }

    /// The number of lines that at least one of `spans` lies on, each an address and a number of bytes. It takes time
    /// for the spans alone, so that a span may be as long as memory.
    ///
    /// ```
    /// use lineup_model::line::LineSize;
    /// assert_eq!(LineSize::B64.count_distinct([(60, 8), (0, 4), (128, u64::MAX)]), (1 << 58));
    /// ```
    pub fn count_distinct(self, spans: impl IntoIterator<Item = (u64, u64)>) -> u64 {
        let mut lines: Vec<(u64, u64)> = spans
            .into_iter()
            .map(|(address, size_bytes)| self.lines(address, size_bytes).into_inner())
            .collect();
        lines.sort_unstable();
        let (mut count, mut next) = (0, 0);
        for (first, last) in lines {
            // Lines before `next` are counted.
            let end = last + 1;
            count += end.saturating_sub(first.max(next));
            next = next.max(end);
        }
        count
    }
}

impl fmt::Display for LineSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
