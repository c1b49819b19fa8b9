//! An entry of a program's table of parts (its program headers).

/// A part of a program, as the file and the memory have it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Part {
    pub(super) kind: u32,
    pub(super) flags: u32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) physical: u64,
    pub(super) file_bytes: u64,
    pub(super) memory_bytes: u64,
    pub(super) align: u64,
}

impl Part {
    pub(super) const BYTES: usize = 56;

    pub(super) fn read(bytes: &[u8]) -> Option<Part> {
        let half = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let word = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        Some(Part {
            kind: half(0)?,
            flags: half(4)?,
            offset: word(8)?,
            address: word(16)?,
            physical: word(24)?,
            file_bytes: word(32)?,
            memory_bytes: word(40)?,
            align: word(48)?,
        })
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let words =
            [self.offset, self.address, self.physical, self.file_bytes, self.memory_bytes, self.align];
        let halves = [self.kind, self.flags].into_iter().flat_map(u32::to_le_bytes);
        halves.chain(words.into_iter().flat_map(u64::to_le_bytes)).collect()
    }
}
