//! The events that callbacks leave for the model, in order, as words.
//!
//! All of it passes from one processor to another, so it is packed. A block is one word, an access two, a chain one and
//! its addresses.

use crate::chains::SLOTS;
use crate::code::Code;
use crate::part::Part;

/// Words in a batch: 256 KiB, so that a few batches stay in the host's caches.
const WORDS: usize = 1 << 15;

/// Words of the longest event.
const MOST_WORDS: usize = 1 + SLOTS;

/// The number of lower bits in an event's first word that give its kind.
const KIND_BITS: u32 = 3;
const BLOCK: u64 = 0;
const ACCESS: u64 = 1;
/// A chain of one access, and with the code of the block that it begins.
const LONE: u64 = 2;
const LONE_WITH_CODE: u64 = 3;
/// With the two bits after it: which of code and data may change the caches. With neither it is no chain: the thread
/// works for something else from here on.
const CHAIN: u64 = 4;

/// Bits for the size of an access, which is two to their power.
const SIZE_BITS: u32 = 4;

/// An event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event<'a> {
    /// The block that begins with this run was fetched.
    Block { run: u32 },
    /// From here on the thread works for the context of this number.
    Context { number: u32 },
    /// Data was accessed.
    Access { counter: u32, size_shift: u8, address: u64 },
    /// A chain of one access happened, and the block that it begins.
    Lone { chain: u32, with_code: bool, size_shift: u8, address: u64 },
    /// A chain of accesses happened, and the block that it begins.
    Chain {
        chain: u32,
        /// False when fetching the block changes nothing.
        with_code: bool,
        /// The addresses that its links are measured from; empty when accessing data changes nothing.
        addresses: &'a [u64],
    },
}

impl Event<'_> {
    /// Data was accessed.
    pub(crate) fn is_of_data(&self) -> bool {
        match self {
            Event::Block { .. } | Event::Context { .. } => false,
            Event::Access { .. } | Event::Lone { .. } => true,
            Event::Chain { addresses, .. } => !addresses.is_empty(),
        }
    }
}

/// Events of one thread.
pub(crate) struct Batch {
    words: Box<[u64; WORDS]>,
    count: usize,
    /// Code that this thread's model does not know yet.
    pub(crate) new_code: Code,
    /// The window that it is part of: then everything was noted.
    pub(crate) window: Option<Part>,
}

impl Batch {
    pub(crate) fn new() -> Batch {
        // Made on the heap: stacks of guest threads are small.
        let words = vec![0; WORDS].try_into().unwrap_or_else(|_| unreachable!("of this very length"));
        Batch { words, count: 0, new_code: Code::default(), window: None }
    }

    /// True when any event has room.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.count <= WORDS - MOST_WORDS
    }

    /// Notes that the block that begins with a run was fetched, where there is room.
    #[inline]
    pub(crate) fn block(&mut self, run: u32) {
        self.put(u64::from(run) << KIND_BITS | BLOCK);
    }

    /// Notes an access that `counter` counts, of two to the power of `size_shift` bytes, where there is room.
    #[inline]
    pub(crate) fn access(&mut self, counter: u32, address: u64, size_shift: u8) {
        self.put((u64::from(counter) << SIZE_BITS | u64::from(size_shift)) << KIND_BITS | ACCESS);
        self.put(address);
    }

    /// Notes a chain of one access, where there is room.
    #[inline]
    pub(crate) fn lone(&mut self, chain: u32, with_code: bool, size_shift: u8, address: u64) {
        let named = u64::from(chain) << SIZE_BITS | u64::from(size_shift);
        self.put(named << KIND_BITS | LONE | u64::from(with_code));
        self.put(address);
    }

    /// Notes a chain, where there is room. With data, its addresses follow, by [`Self::put`].
    #[inline]
    pub(crate) fn chain(&mut self, chain: u32, with_code: bool, with_data: bool) {
        let kind = CHAIN | u64::from(with_code) << 1 | u64::from(with_data);
        self.put(u64::from(chain) << KIND_BITS | kind);
    }

    /// Notes for which context the thread works, where there is room.
    pub(crate) fn context(&mut self, number: u32) {
        self.put(u64::from(number) << KIND_BITS | CHAIN);
    }

    #[inline]
    pub(crate) fn put(&mut self, word: u64) {
        if let Some(place) = self.words.get_mut(self.count) {
            *place = word;
            self.count += 1;
        }
    }

    /// Passes every event to `take`, in order. `code` holds all that is named.
    #[inline]
    pub(crate) fn for_each(&self, code: &Code, take: impl FnMut(Event<'_>)) {
        events(self.words(), code, take);
    }

    /// Its words so far.
    pub(crate) fn words(&self) -> &[u64] {
        &self.words[..self.count]
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.window = None;
        self.new_code.clear();
    }
}

/// Passes every event of a batch's words to `take`, in order. `code` holds all that is named.
#[inline]
pub(crate) fn events(mut words: &[u64], code: &Code, mut take: impl FnMut(Event<'_>)) {
    while let [first, rest @ ..] = words {
        let value = first >> KIND_BITS;
        let (sized, size_shift) = ((value >> SIZE_BITS) as u32, value as u8 & ((1 << SIZE_BITS) - 1));
        let taken = match first & ((1 << KIND_BITS) - 1) {
            kind @ (LONE | LONE_WITH_CODE) => {
                let with_code = kind == LONE_WITH_CODE;
                take(Event::Lone { chain: sized, with_code, size_shift, address: rest[0] });
                1
            }
            BLOCK => {
                take(Event::Block { run: value as u32 });
                0
            }
            ACCESS => {
                take(Event::Access { counter: sized, size_shift, address: rest[0] });
                1
            }
            CHAIN => {
                take(Event::Context { number: value as u32 });
                0
            }
            kind => {
                let slots = if kind & 1 == 1 { code.chains[value as usize].slots as usize } else { 0 };
                let addresses = &rest[..slots];
                take(Event::Chain { chain: value as u32, with_code: kind & 2 != 0, addresses });
                slots
            }
        };
        words = &rest[taken..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chains::{Chain, Chains, Link};

    /// A run, and a chain measured from two addresses.
    fn code() -> Code {
        let link = |slot| Link { insn: 0, slot, distance: 8, is_store: false, size_shift: 3 };
        let chain = Chain { links: vec![link(3), link(1), link(3)], only: None };
        let mut code = Code::default();
        code.add(64, &[(0x1000, 4)], &Chains { all: vec![chain], alone: Vec::new(), begin_block: false });
        code
    }

    #[test]
    fn events_come_back_as_they_were_noted() {
        let (code, mut batch) = (code(), Batch::new());
        batch.block(u32::MAX);
        batch.access(u32::MAX, u64::MAX - 7, 12);
        batch.chain(0, false, true);
        batch.put(0x7fff_1234_5678);
        batch.put(u64::MAX);
        batch.chain(0, true, false);
        batch.access(0, 0, 0);
        batch.lone(u32::MAX, false, 3, u64::MAX);
        batch.lone(0, true, 0, 8);
        let mut noted = Vec::new();
        batch.for_each(&code, |event| noted.push(format!("{event:x?}")));
        assert_eq!(
            noted,
            [
                "Block { run: ffffffff }",
                "Access { counter: ffffffff, size_shift: c, address: fffffffffffffff8 }",
                "Chain { chain: 0, with_code: false, addresses: [7fff12345678, ffffffffffffffff] }",
                "Chain { chain: 0, with_code: true, addresses: [] }",
                "Access { counter: 0, size_shift: 0, address: 0 }",
                "Lone { chain: ffffffff, with_code: false, size_shift: 3, address: ffffffffffffffff }",
                "Lone { chain: 0, with_code: true, size_shift: 0, address: 8 }",
            ]
        );
    }

    #[test]
    fn a_full_batch_has_no_room_until_it_is_cleared() {
        let (code, mut batch) = (code(), Batch::new());
        let mut blocks = 0;
        while batch.has_room() {
            batch.block(blocks);
            blocks += 1;
        }
        (0..MOST_WORDS).for_each(|_| batch.block(0));
        let mut noted = 0;
        batch.for_each(&code, |_| noted += 1);
        assert_eq!(noted, WORDS);
        batch.clear();
        assert!(batch.has_room());
        batch.for_each(&code, |event| panic!("{event:?}"));
    }
}
