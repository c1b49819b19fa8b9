//! The program's own thread-local variables: every thread has a block of them at a fixed distance from its base.

use crate::image::Image;
use lineup_model::abi::{Abi, Machine};
use lineup_model::program::{Symbol, SymbolKind};
use std::collections::BTreeSet;

/// Where the block of the program's file lies in every thread, and the threads' bases. Libraries' blocks lie where
/// the loader put them and are not known.
#[derive(Clone, Default, Debug)]
pub(crate) struct ThreadBlocks {
    block: Option<Block>,
    /// The bases seen. Where a thread ended another may begin, with the same base and the same block.
    bases: BTreeSet<u64>,
    head_bytes: i64,
}

#[derive(Clone, Debug)]
struct Block {
    image: usize,
    /// First byte of the block minus the thread's base.
    above_base: i64,
    size_bytes: u64,
    /// Offset, size and index of the symbols in it, by offset.
    symbols: Vec<(u64, u64, u32)>,
}

/// A byte of a thread's block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockSpot {
    /// Index of the image whose block it is.
    pub(crate) image: usize,
    /// Distance from the block's first byte.
    pub(crate) offset: u64,
}

impl ThreadBlocks {
    /// Looks for the program among the images.
    pub(crate) fn new(images: &[Image<'_>]) -> Self {
        let block = images.iter().enumerate().find_map(|(index, image)| Block::of(index, image));
        // A kernel uses the base for itself.
        let has_threads =
            |image: &&Image<'_>| image.debug.is_some_and(|debug| debug.thread_local_segment().is_some());
        let head_bytes = images.iter().find(has_threads).and_then(Image::abi).map_or(0, head_bytes);
        ThreadBlocks { block, bases: BTreeSet::new(), head_bytes }
    }

    /// Learns a thread's base.
    pub(crate) fn see(&mut self, base: u64) {
        self.bases.insert(base);
    }

    /// The spot of an address in any thread's block.
    pub(crate) fn at(&self, address: u64) -> Option<BlockSpot> {
        let block = self.block.as_ref()?;
        // Blocks do not overlap: only the nearest that starts at or below the address can hold it.
        let base = self.bases.range(..=address.wrapping_sub_signed(block.above_base)).next_back()?;
        self.spot(address.wrapping_sub(*base) as i64)
    }

    /// The spot at a distance from any thread's base.
    pub(crate) fn spot(&self, from_base: i64) -> Option<BlockSpot> {
        let block = self.block.as_ref()?;
        let offset = u64::try_from(from_base.checked_sub(block.above_base)?).ok()?;
        (offset < block.size_bytes).then_some(BlockSpot { image: block.image, offset })
    }

    /// True when a distance from a thread's base is in the head that the ABI lays down.
    pub(crate) fn is_head(&self, from_base: i64) -> bool {
        (0..self.head_bytes).contains(&from_base)
    }

    /// Bytes of the block of an image.
    pub(crate) fn size_bytes(&self, image: usize) -> Option<u64> {
        self.block.as_ref().filter(|block| block.image == image).map(|block| block.size_bytes)
    }

    /// Offset, size and index of the symbols in the block, by offset.
    pub(crate) fn symbols(&self) -> &[(u64, u64, u32)] {
        self.block.as_ref().map_or(&[], |block| &block.symbols)
    }

    /// The symbol that holds an offset of the block: its index among the image's symbols, and the offset in it.
    pub(crate) fn symbol_at(&self, offset: u64) -> Option<(u32, u64)> {
        let symbols = self.symbols();
        let after = symbols.partition_point(|(start, ..)| *start <= offset);
        let (start, size, index) = symbols.get(after.checked_sub(1)?)?;
        (offset - start < *size).then_some((*index, offset - start))
    }
}

impl Block {
    fn of(index: usize, image: &Image<'_>) -> Option<Self> {
        let segment = image.debug?.thread_local_segment().filter(|_| !image.is_shared_library())?;
        let size_bytes = segment.addresses.end - segment.addresses.start;
        let above_base = above_base(image.abi()?, segment.addresses.start, size_bytes, segment.align_bytes)?;
        let symbols = image.symbols().iter().zip(0u32..);
        let is_inside =
            |one: &Symbol| one.address.checked_add(one.size_bytes).is_some_and(|end| end <= size_bytes);
        let symbols = symbols
            .filter(|(one, _)| one.kind == SymbolKind::ThreadLocal && one.size_bytes > 0 && is_inside(one))
            .map(|(one, number)| (one.address, one.size_bytes, number));
        Some(Block { image: index, above_base, size_bytes, symbols: symbols.collect() })
    }
}

/// On x86 seven pointers, up to the guards; on Arm two.
fn head_bytes(abi: Abi) -> i64 {
    let pointers = if matches!(abi.machine, Machine::X86_64 | Machine::I386) { 7 } else { 2 };
    pointers * i64::from(abi.pointer_bytes)
}

/// The place of the program's block, which the ABI fixes so that the linker can write it into instructions: on x86
/// it ends at the base, rounded down to the alignment; on Arm it starts above a head of two pointers.
fn above_base(abi: Abi, start: u64, size_bytes: u64, align_bytes: u64) -> Option<i64> {
    let mask = align_bytes - 1;
    match abi.machine {
        Machine::X86_64 | Machine::I386 => {
            let padding = start.wrapping_add(size_bytes).wrapping_neg() & mask;
            i64::try_from(size_bytes.checked_add(padding)?).ok().map(i64::wrapping_neg)
        }
        Machine::AArch64 | Machine::Arm => {
            let above = u64::try_from(head_bytes(abi)).ok()?.checked_add(mask)? & !mask;
            i64::try_from(above.checked_add(start & mask)?).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_block_ends_at_the_base_on_x86_and_starts_behind_the_head_on_arm() {
        assert_eq!(above_base(Abi::X86_64, 0x3dc0, 0xd8, 16), Some(-0xe0));
        assert_eq!(above_base(Abi::I386, 0x3ee4, 0x74, 4), Some(-0x74));
        assert_eq!(above_base(Abi::AARCH64, 0x1fdb0, 0xd8, 16), Some(16));
        assert_eq!(above_base(Abi::AARCH64, 0x1fdc0, 0xd8, 64), Some(64));
        assert_eq!(above_base(Abi::ARM, 0x1fe00, 0x74, 4), Some(8));
    }
}
