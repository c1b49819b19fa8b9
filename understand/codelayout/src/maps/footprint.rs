//! The memory that executed code takes.

use serde::Serialize;
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes in a line of code.
pub const LINE_BYTES: u64 = 64;
/// Bytes in a page.
pub const PAGE_BYTES: u64 = 4096;

/// The memory and the cache lines that executed code takes.
#[derive(Clone, Copy, PartialEq, Eq, Default, Serialize, Debug)]
pub struct Footprint {
    /// Bytes of instructions that were executed.
    pub executed_bytes: u64,
    /// Cache lines of 64 bytes that hold some of them.
    pub lines: u64,
    /// Pages of 4096 bytes that hold some of them.
    pub pages: u64,
}

impl Footprint {
    /// The footprint of parts of code that do not overlap.
    pub fn of<'r>(parts: impl IntoIterator<Item = &'r Range<u64>>) -> Footprint {
        let (mut lines, mut pages, mut executed_bytes) = (BTreeSet::new(), BTreeSet::new(), 0);
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            executed_bytes += part.end - part.start;
            lines.extend(part.start / LINE_BYTES..=(part.end - 1) / LINE_BYTES);
            pages.extend(part.start / PAGE_BYTES..=(part.end - 1) / PAGE_BYTES);
        }
        Footprint { executed_bytes, lines: lines.len() as u64, pages: pages.len() as u64 }
    }

    /// Bytes on these lines that were never executed.
    pub fn cold_bytes(&self) -> u64 {
        (self.lines * LINE_BYTES).saturating_sub(self.executed_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_on_one_line_count_it_once() {
        let footprint = Footprint::of(&[0x1000..0x1004, 0x1010..0x1044, 0x1ffc..0x2000, 0x2000..0x2000]);
        assert_eq!(footprint, Footprint { executed_bytes: 60, lines: 3, pages: 1 });
        assert_eq!((footprint.cold_bytes(), Footprint::of(&[]).cold_bytes()), (132, 0));
    }
}
