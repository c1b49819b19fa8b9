//! Bytes of a fuzzer as a sequence of choices.

/// Takes pieces off the front of some bytes.
pub(crate) struct Cutter<'d>(pub(crate) &'d [u8]);

impl<'d> Cutter<'d> {
    pub(crate) fn take(&mut self, most: usize) -> &'d [u8] {
        let (piece, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        piece
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// A piece as long as its first byte says.
    pub(crate) fn piece(&mut self) -> &'d [u8] {
        self.take_at_most(64)
    }

    /// The same, shorter than `end`.
    pub(crate) fn take_at_most(&mut self, end: usize) -> &'d [u8] {
        let len = usize::from(self.byte()) % end;
        self.take(len)
    }

    /// A small number, a power of two, or one near the greatest.
    pub(crate) fn number(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..160 => u64::from(byte),
            byte @ 160..224 => 1 << (byte - 160),
            byte => u64::MAX - u64::from(byte - 224),
        }
    }

    /// A multiple of a unit's size, as tables of fixed entries are.
    pub(crate) fn table(&mut self, entry_bytes: usize) -> Vec<u8> {
        let entries = usize::from(self.byte() % 8);
        let mut table = self.take(entries * entry_bytes).to_vec();
        table.resize(entries * entry_bytes, 0);
        table
    }

    /// Where a section lies: near the start, in the middle, or right before the end of all addresses.
    pub(crate) fn address(&mut self) -> u64 {
        match self.byte() {
            byte @ 0..128 => 0x1000 + u64::from(byte) * 16,
            byte @ 128..192 => 1 << (byte % 64),
            byte => u64::MAX - u64::from(byte - 192),
        }
    }
}
