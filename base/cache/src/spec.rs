//! The specification of a cache: level, size, ways and line size.

use lineup_model::line::LineSize;
use std::fmt;
use std::str::FromStr;

/// The level of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CacheLevel {
    /// First level, instructions.
    L1i,
    /// First level, data.
    L1d,
    /// Second level, both.
    L2,
}

impl CacheLevel {
    /// The name in specifications: `l1i`, `l1d` or `l2`.
    pub fn name(self) -> &'static str {
        match self {
            CacheLevel::L1i => "l1i",
            CacheLevel::L1d => "l1d",
            CacheLevel::L2 => "l2",
        }
    }
}

/// Size, associativity and line of a cache. The number of sets is a power of two.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CacheSpec {
    level: CacheLevel,
    size_bytes: u64,
    ways: u32,
    line: LineSize,
}

/// The reason a specification is invalid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SpecError {
    /// Not of the form `LEVEL=SIZE,WAYS,LINE`.
    #[error("cache {0:?}: write LEVEL=SIZE,WAYS,LINE, such as l1d=32K,8,64, with LEVEL l1i, l1d or l2")]
    Form(String),
    /// The line size is invalid.
    #[error("cache line of {0} bytes: a power of two from 8 to 4096 is needed")]
    Line(u64),
    /// The sizes do not fit together.
    #[error(
        "a cache of {size_bytes} bytes with {ways} ways of {line}-byte lines does not have a power-of-two number of sets"
    )]
    Sets {
        /// Size in bytes.
        size_bytes: u64,
        /// Ways.
        ways: u32,
        /// Line size in bytes.
        line: u64,
    },
    /// Larger than any cache that is modelled.
    #[error("a cache of {0} bytes: at most 1 GiB with at most 1024 ways is modelled")]
    TooLarge(u64),
}

impl CacheSpec {
    /// A cache.
    ///
    /// # Errors
    /// When the sizes do not make a power-of-two number of sets, or are beyond reason.
    pub fn new(level: CacheLevel, size_bytes: u64, ways: u32, line: LineSize) -> Result<Self, SpecError> {
        if size_bytes > 1 << 30 || ways > 1024 {
            return Err(SpecError::TooLarge(size_bytes));
        }
        let way_bytes = u64::from(ways) * line.bytes();
        let sets =
            if way_bytes == 0 || !size_bytes.is_multiple_of(way_bytes) { 0 } else { size_bytes / way_bytes };
        if !sets.is_power_of_two() {
            return Err(SpecError::Sets { size_bytes, ways, line: line.bytes() });
        }
        Ok(CacheSpec { level, size_bytes, ways, line })
    }

    /// The cache's level.
    pub fn level(&self) -> CacheLevel {
        self.level
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Associativity.
    pub fn ways(&self) -> u32 {
        self.ways
    }

    /// Line size.
    pub fn line(&self) -> LineSize {
        self.line
    }

    /// Number of sets: a power of two.
    pub fn sets(&self) -> u64 {
        self.size_bytes / (u64::from(self.ways) * self.line.bytes())
    }
}

impl FromStr for CacheSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let form = || SpecError::Form(text.to_owned());
        let (level, rest) = text.split_once('=').ok_or_else(form)?;
        let level = match level.trim().to_ascii_lowercase().as_str() {
            "l1i" => CacheLevel::L1i,
            "l1d" => CacheLevel::L1d,
            "l2" => CacheLevel::L2,
            _ => return Err(form()),
        };
        let mut parts = rest.split(',').map(str::trim);
        let (Some(size), Some(ways), Some(line), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(form());
        };
        let size_bytes = parse_bytes(size).ok_or_else(form)?;
        let ways = ways.parse().map_err(|_| form())?;
        let line_bytes = parse_bytes(line).ok_or_else(form)?;
        let line =
            u32::try_from(line_bytes).ok().and_then(LineSize::new).ok_or(SpecError::Line(line_bytes))?;
        CacheSpec::new(level, size_bytes, ways, line)
    }
}

impl fmt::Display for CacheSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (size, unit) = match self.size_bytes {
            size if size.is_multiple_of(1 << 20) => (size >> 20, "M"),
            size if size.is_multiple_of(1 << 10) => (size >> 10, "K"),
            size => (size, ""),
        };
        write!(f, "{}={size}{unit},{},{}", self.level.name(), self.ways, self.line)
    }
}

/// A number of bytes with an optional `K` or `M`.
pub(crate) fn parse_bytes(text: &str) -> Option<u64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'K' | b'k' => (&text[..text.len() - 1], 1 << 10),
        b'M' | b'm' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
