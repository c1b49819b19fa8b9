//! The caches of translations from addresses to pages (TLBs) for data.

use crate::model::{Cache, Missed};

/// Bytes of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PageBytes {
    /// 4 KiB, the usual ones.
    Small,
    /// 2 MiB.
    Huge,
}

impl PageBytes {
    /// As a number.
    pub fn bytes(self) -> u64 {
        match self {
            PageBytes::Small => 4 << 10,
            PageBytes::Huge => 2 << 20,
        }
    }
}

/// Sets and ways of both levels. The processors of ten years have 64 to 96 translations in the first level, and 1,536
/// to 3,072 in the second. The second one of the model has the pages of both sizes.
const FIRST: (u64, usize) = (16, 4);
const FIRST_HUGE: (u64, usize) = (8, 4);
const SECOND: (u64, usize) = (128, 16);

/// Two levels of translations of one thread.
///
/// ```
/// use lineup_cache::{Missed, PageBytes, Tlb};
/// let mut tlb = Tlb::new();
/// assert_eq!(tlb.access(0x1ff8, 8, PageBytes::Small), Missed::L2);
/// assert_eq!(tlb.access(0x1000, 8, PageBytes::Small), Missed::Nothing);
/// assert_eq!(tlb.access(0x1ffc, 8, PageBytes::Small), Missed::L2);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tlb {
    first: Cache,
    first_huge: Cache,
    second: Cache,
}

impl Default for Tlb {
    fn default() -> Self {
        Tlb::new()
    }
}

impl Tlb {
    /// Translations in the first level, of pages of 4 KiB.
    pub const FIRST_ENTRIES: u64 = FIRST.0 * FIRST.1 as u64;
    /// The same of pages of 2 MiB.
    pub const FIRST_HUGE_ENTRIES: u64 = FIRST_HUGE.0 * FIRST_HUGE.1 as u64;
    /// Translations in the second level.
    pub const SECOND_ENTRIES: u64 = SECOND.0 * SECOND.1 as u64;

    /// Without any translation.
    pub fn new() -> Self {
        let of = |(sets, ways), page: PageBytes| Cache::of_sets(sets, ways, page.bytes());
        Tlb {
            first: of(FIRST, PageBytes::Small),
            first_huge: of(FIRST_HUGE, PageBytes::Huge),
            second: of(SECOND, PageBytes::Small),
        }
    }

    /// Translates the addresses of an access; an access to two pages misses at most once.
    #[inline]
    pub fn access(&mut self, address: u64, size_bytes: u64, page: PageBytes) -> Missed {
        let first = match page {
            PageBytes::Small => &mut self.first,
            PageBytes::Huge => &mut self.first_huge,
        };
        if first.access(address, size_bytes) {
            return Missed::Nothing;
        }
        let is_there = match page {
            PageBytes::Small => self.second.access(address, size_bytes),
            // A number that no small page has, in the set after that of the huge page before.
            PageBytes::Huge => self.second.touch(HUGE | (address / page.bytes())),
        };
        if is_there { Missed::L1 } else { Missed::L2 }
    }
}

/// Set in the numbers of huge pages in the second level.
const HUGE: u64 = 1 << 62;

#[cfg(test)]
mod tests {
    use super::*;

    /// Misses of the first and of the second level in the second of two passes over this many pages.
    fn of_second_pass(pages: u64, page: PageBytes) -> (u64, u64) {
        let mut tlb = Tlb::new();
        let mut pass = || {
            (0..pages).fold((0, 0), |(first, second), number| {
                let missed = tlb.access(number * page.bytes(), 8, page);
                (first + u64::from(missed != Missed::Nothing), second + u64::from(missed == Missed::L2))
            })
        };
        pass();
        pass()
    }

    #[test]
    fn a_pass_over_more_pages_than_a_level_holds_misses_each_of_them() {
        use PageBytes::{Huge, Small};
        assert_eq!(of_second_pass(Tlb::FIRST_ENTRIES, Small), (0, 0));
        assert_eq!(of_second_pass(1024, Small), (1024, 0));
        assert_eq!(of_second_pass(Tlb::SECOND_ENTRIES, Small), (Tlb::SECOND_ENTRIES, 0));
        assert_eq!(of_second_pass(4096, Small), (4096, 4096));
        assert_eq!(of_second_pass(Tlb::FIRST_HUGE_ENTRIES, Huge), (0, 0));
        assert_eq!(of_second_pass(64, Huge), (64, 0));
    }
}
