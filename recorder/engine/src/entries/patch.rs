//! A change of the program's code.

use crate::system;
use std::ops::Range;

/// A jump, or a trap, in place of code.
pub(crate) struct Patch {
    pub(crate) pc: u64,
    pub(crate) original: Vec<u8>,
    /// The bytes written there, of the same length.
    pub(crate) written: Vec<u8>,
}

impl Patch {
    pub(crate) fn range(&self) -> Range<u64> {
        self.pc..self.pc + self.original.len() as u64
    }

    /// Puts the original bytes back among `bytes`, which were read from `pc` on, where all of the patch is still in
    /// memory.
    pub(crate) fn take_out(&self, pc: u64, bytes: &mut [u8]) {
        let end = pc + bytes.len() as u64;
        let shared = self.pc.max(pc)..self.range().end.min(end);
        if shared.is_empty() {
            return;
        }
        let part = |start: u64| (shared.start - start) as usize..(shared.end - start) as usize;
        let (own, there) = (part(self.pc), part(pc));
        let is_same = bytes[there.clone()] == self.written[own.clone()];
        if is_same && (shared == self.range() || self.stands()) {
            bytes[there].copy_from_slice(&self.original[own]);
        }
    }

    /// Whether the patch is still in memory.
    pub(crate) fn stands(&self) -> bool {
        if system::is_sealed() {
            // It was there when the memory could last be read.
            return true;
        }
        let mut now = vec![0; self.written.len()];
        system::read_memory(self.pc, &mut now) == now.len() && now == self.written
    }

    /// The patch's bytes that lie in `pages`, as offsets in the patch.
    pub(super) fn in_pages(&self, pages: &Range<u64>) -> Range<usize> {
        let (start, end) = (self.pc.max(pages.start), self.range().end.min(pages.end));
        (start - pages.start) as usize..end.saturating_sub(pages.start) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patch(pc: u64) -> Patch {
        Patch { pc, original: vec![0xfe, 0xff, 0, 1, 2], written: vec![0xe9, 5, 5, 5, 5] }
    }

    #[test]
    fn a_patch_on_two_pages_is_part_of_both() {
        let patch = patch(0x1ffe);
        assert_eq!(patch.in_pages(&(0x1000..0x2000)), 0xffe..0x1000);
        assert_eq!(patch.in_pages(&(0x2000..0x3000)), 0..3);
        assert_eq!(patch.in_pages(&(0x1000..0x3000)), 0xffe..0x1003);
        assert!(patch.in_pages(&(0x3000..0x4000)).is_empty());
        assert!(patch.in_pages(&(0..0x1000)).is_empty());
    }

    #[test]
    fn a_patch_is_taken_out_where_it_stands_and_nowhere_else() {
        let memory = [7, 7, 0xe9, 5, 5, 5, 5, 7];
        let at = memory.as_ptr() as u64;
        let patch = patch(at + 2);
        let taken_out = |from: u64, mut bytes: Vec<u8>| {
            patch.take_out(at + from, &mut bytes);
            bytes
        };
        assert_eq!(taken_out(0, memory.to_vec()), [7, 7, 0xfe, 0xff, 0, 1, 2, 7]);
        // A part of it, at either end.
        assert_eq!(taken_out(4, memory[4..].to_vec()), [0, 1, 2, 7]);
        assert_eq!(taken_out(0, memory[..4].to_vec()), [7, 7, 0xfe, 0xff]);
        // Other code was put there.
        assert_eq!(taken_out(0, vec![7, 7, 0xe9, 5, 5, 6, 5, 7]), [7, 7, 0xe9, 5, 5, 6, 5, 7]);
        assert_eq!(taken_out(7, vec![5, 5]), [5, 5]);
        assert_eq!(taken_out(0, vec![5, 5]), [5, 5]);
        // One byte is the same, and the rest is not there.
        let other = [5, 8, 8, 8];
        let patch = super::tests::patch(other.as_ptr() as u64 - 4);
        let mut bytes = other.to_vec();
        patch.take_out(other.as_ptr() as u64, &mut bytes);
        assert_eq!(bytes, other);
    }
}
