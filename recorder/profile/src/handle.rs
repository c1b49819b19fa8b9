//! The argument of a chain's callback: it holds all data of the usual case, so that the callback loads little.

use crate::chains::{Chain, SLOTS};
use lineup_cache::{Lines, MostRecent};

/// A chain's number, and its shape where that has room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Handle(u64);

const SLOT_AT: u32 = 32;
const LOW_AT: u32 = 36;
const LENGTH_AT: u32 = 44;
const MORE_LINES_AT: u32 = 52;
const LONG_AT: u32 = 54;
const LONE_AT: u32 = 55;

impl Handle {
    /// The handle of a chain. `more_lines` is the number of its block's lines after the first.
    pub(crate) fn new(number: u32, chain: &Chain, more_lines: u64) -> Handle {
        let slot = chain.links.first().map_or(0, |link| link.slot);
        let low = chain.links.iter().map(|link| i64::from(link.distance)).min().unwrap_or(0);
        let ends = chain.links.iter().map(|link| i64::from(link.distance) + (1 << link.size_shift) - 1);
        let length = ends.max().unwrap_or(0) - low;
        let shape = i8::try_from(low).ok().zip(u8::try_from(length).ok());
        let is_long = shape.is_none() || chain.links.iter().any(|link| link.slot != slot);
        let (low, length) = shape.unwrap_or_default();
        Handle(
            u64::from(number)
                | ((slot % SLOTS) as u64) << SLOT_AT
                | u64::from(low as u8) << LOW_AT
                | u64::from(length) << LENGTH_AT
                | more_lines.min(2) << MORE_LINES_AT
                | u64::from(is_long) << LONG_AT
                | u64::from(chain.links.len() == 1) << LONE_AT,
        )
    }

    /// From the argument of a callback.
    #[inline]
    pub fn from_data(data: u64) -> Handle {
        Handle(data)
    }

    /// To the argument of a callback.
    pub fn data(self) -> u64 {
        self.0
    }

    /// The chain's number.
    #[inline]
    pub(crate) fn chain(self) -> u32 {
        self.0 as u32
    }

    /// Slot of the first access's address.
    #[inline]
    pub(crate) fn slot(self) -> usize {
        (self.0 >> SLOT_AT) as usize % SLOTS
    }

    /// The number of the block's lines after the first: 2 stands for more as well.
    #[inline]
    pub(crate) fn more_lines(self) -> u64 {
        self.0 >> MORE_LINES_AT & 3
    }

    /// True when not all accesses are measured from the first, or too far.
    #[inline]
    pub(crate) fn is_long(self) -> bool {
        self.0 >> LONG_AT & 1 == 1
    }

    /// The size of the only access, as a power of two.
    #[inline]
    pub(crate) fn lone_size_shift(self) -> Option<u8> {
        let length = self.0 >> LENGTH_AT & 0xff;
        (self.0 >> LONE_AT & 1 == 1).then(|| length.trailing_ones() as u8)
    }

    /// The lines from the first to the last byte of all accesses, given the first one's address. Meaningless for a long
    /// chain.
    #[inline]
    pub(crate) fn lines(self, caches: &MostRecent, address: u64) -> Lines {
        let low = address.wrapping_add_signed(i64::from((self.0 >> LOW_AT) as i8));
        let high = low.wrapping_add(self.0 >> LENGTH_AT & 0xff);
        let first = caches.line_of(low);
        Lines::starting(first, caches.line_of(high).wrapping_sub(first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::Link;

    fn link(slot: usize, distance: i32, size_shift: u8) -> Link {
        Link { insn: 0, slot, distance, is_store: false, size_shift }
    }

    fn handle(links: &[Link]) -> Handle {
        Handle::from_data(Handle::new(u32::MAX, &Chain { links: links.to_vec(), only: None }, 7).data())
    }

    #[test]
    fn a_chain_around_one_address_is_told_by_its_handle() {
        let caches = MostRecent::of_sets(8, 64);
        let handle = handle(&[link(15, 0, 3), link(15, -128, 0), link(15, 120, 3)]);
        assert_eq!((handle.chain(), handle.slot(), handle.more_lines()), (u32::MAX, 15, 2));
        assert!(!handle.is_long());
        assert_eq!(handle.lines(&caches, 0x1080), caches.lines(0x1000, 256));
        assert_eq!(handle.lines(&caches, 0x1084), caches.lines(0x1004, 256));
    }

    #[test]
    fn what_has_no_room_is_long() {
        assert!(handle(&[link(0, 0, 3), link(1, 0, 3)]).is_long());
        assert!(handle(&[link(0, 0, 3), link(0, -129, 0)]).is_long());
        assert!(handle(&[link(0, 0, 3), link(0, 249, 3)]).is_long());
        assert!(!handle(&[link(0, 0, 3), link(0, 248, 3)]).is_long());
    }

    #[test]
    fn an_access_alone_tells_its_size() {
        assert_eq!(
            [0, 1, 2, 3].map(|shift| handle(&[link(0, 0, shift)]).lone_size_shift()),
            [0, 1, 2, 3].map(Some)
        );
        assert_eq!(handle(&[link(0, 0, 1), link(0, 2, 1)]).lone_size_shift(), None);
    }
}
