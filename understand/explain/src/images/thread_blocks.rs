//! Thread-local variables: every thread has a block of them for each file that declares some.
//!
//! The program's own block lies at a fixed distance from the thread's base. The loader places a library's block: its
//! place is learned from the words the loader filled in, when code loads them.

use crate::images::image::Image;
use crate::images::loaded_images::LoadedImages;
use lineup_debuginfo::SlotValue;
use lineup_model::abi::Abi;
use lineup_model::machine::BlockSide;
use lineup_model::process::AddressSpace;
use lineup_model::program::{Symbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Greatest distance of a block from the thread's base that is believed.
const FARTHEST: u64 = 1 << 30;

/// The blocks and the threads' bases.
#[derive(Clone, Default, Debug)]
pub(crate) struct ThreadBlocks {
    /// By where the image was mapped: programs that run at the same addresses have threads of their own.
    blocks: BTreeMap<(AddressSpace, usize), Block>,
    /// The images whose block's place the ABI fixes.
    programs: BTreeSet<usize>,
    /// The bases seen. A new thread may get the base and the blocks of one that ended.
    bases: BTreeSet<u64>,
    /// By runtime address.
    slots: HashMap<u64, (usize, SlotValue)>,
    /// Images by the number that the loader gave them.
    modules: HashMap<(AddressSpace, u64), usize>,
    /// The vectors that hold each thread's blocks, by module.
    vectors: HashSet<u64>,
    abi: Option<Abi>,
}

#[derive(Clone, Debug)]
struct Block {
    /// First byte of the block minus the thread's base, when it is the same in every thread.
    above_base: Option<i64>,
    /// First bytes of the blocks.
    starts: BTreeSet<u64>,
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
    /// Looks for files with thread-local variables among the images.
    pub(crate) fn new(images: &LoadedImages<'_>) -> Self {
        let mut all = ThreadBlocks::default();
        for (index, image) in images.all().iter().enumerate() {
            let Some(block) = Block::of(image) else { continue };
            // A kernel has no such file: it uses the base for itself.
            all.abi = all.abi.or(image.abi());
            if block.above_base.is_some() {
                all.programs.insert(index);
            }
            let slots = image.debug.map(|debug| debug.thread_slots()).unwrap_or_default();
            for placed in images.places().filter(|placed| placed.image == index) {
                let loaded = &placed.loaded;
                all.blocks.insert((AddressSpace::of(loaded.start), index), block.clone());
                all.slots
                    .extend(slots.iter().map(|slot| (loaded.to_runtime(slot.address), (index, slot.holds))));
            }
        }
        all
    }

    /// Learns a thread's base.
    pub(crate) fn see(&mut self, base: u64) {
        if self.bases.insert(base) {
            let space = AddressSpace::of(base);
            for (_, block) in self.blocks.iter_mut().filter(|((own, _), _)| *own == space) {
                block.starts.extend(block.above_base.map(|above| base.wrapping_add_signed(above)));
            }
        }
    }

    /// Learns from a word that code loaded.
    pub(crate) fn see_load(&mut self, address: u64, value: u64) {
        let Some(abi) = self.abi else { return };
        let word = u64::from(abi.pointer_bytes);
        let space = AddressSpace::of(address);
        match self.slots.get(&address) {
            Some((image, SlotValue::Distance { offset })) => {
                let distance = if word == 4 { i64::from(value as u32 as i32) } else { value.cast_signed() };
                let above = distance.wrapping_sub(offset.cast_signed());
                if above.unsigned_abs() < FARTHEST {
                    self.place((space, *image), above);
                }
                return;
            }
            Some((image, SlotValue::Module)) => {
                // Before the loader has filled it in it is 0.
                if value > 0 {
                    self.modules.insert((space, value), *image);
                }
                return;
            }
            None => {}
        }
        let to_vector = word * u64::from(abi.machine.description().threads.vector_pointers);
        if self.bases.contains(&address.wrapping_sub(to_vector)) {
            self.vectors.insert(value);
            return;
        }
        for ((_, module), image) in self.modules.iter().filter(|((own, _), _)| *own == space) {
            let vector = address.wrapping_sub(module.wrapping_mul(2 * word));
            // An odd value stands for a block that is not made yet.
            if self.vectors.contains(&vector) && value.is_multiple_of(2) {
                self.blocks.entry((space, *image)).and_modify(|block| _ = block.starts.insert(value));
            }
        }
    }

    /// The block of an image in a space is this far from every base there.
    fn place(&mut self, at: (AddressSpace, usize), above_base: i64) {
        let unplaced = |block: &&mut Block| block.above_base.is_none();
        let Some(block) = self.blocks.get_mut(&at).filter(unplaced) else { return };
        block.above_base = Some(above_base);
        let bases = self.bases.iter().filter(|base| AddressSpace::of(**base) == at.0);
        block.starts.extend(bases.map(|base| base.wrapping_add_signed(above_base)));
    }

    /// The spot of an address in any thread's block.
    pub(crate) fn at(&self, address: u64) -> Option<BlockSpot> {
        // Blocks do not overlap: of one image only the nearest that starts at or below the address can hold it.
        self.blocks.iter().find_map(|((_, image), block)| {
            let offset = address - block.starts.range(..=address).next_back()?;
            (offset < block.size_bytes).then_some(BlockSpot { image: *image, offset })
        })
    }

    /// The spot of the program's block at a distance from any thread's base, for code of an image: the program itself,
    /// or a library of the one program that there is.
    pub(crate) fn spot(&self, code: usize, from_base: i64) -> Option<BlockSpot> {
        let image = match (self.programs.contains(&code), self.programs.len()) {
            (true, _) => code,
            (false, 1) => *self.programs.first()?,
            _ => return None,
        };
        let block = self.block_of(image)?;
        let offset = u64::try_from(from_base.checked_sub(block.above_base?)?).ok()?;
        (offset < block.size_bytes).then_some(BlockSpot { image, offset })
    }

    /// True when a distance from a thread's base is in the head that the ABI lays down.
    pub(crate) fn is_head(&self, from_base: i64) -> bool {
        self.abi.is_some_and(|abi| (0..head_bytes(abi)).contains(&from_base))
    }

    /// Bytes of the block of an image.
    pub(crate) fn size_bytes(&self, image: usize) -> Option<u64> {
        self.block_of(image).map(|block| block.size_bytes)
    }

    /// Offset, size and index of the symbols in the block of an image, by offset.
    pub(crate) fn symbols(&self, image: usize) -> &[(u64, u64, u32)] {
        self.block_of(image).map_or(&[], |block| &block.symbols)
    }

    /// The block of an image in any space: the file says the same of it in all.
    fn block_of(&self, image: usize) -> Option<&Block> {
        self.blocks.iter().find(|((_, own), _)| *own == image).map(|(_, block)| block)
    }

    /// The symbol at a spot: its index among the image's symbols, and the offset in it.
    pub(crate) fn symbol_at(&self, spot: BlockSpot) -> Option<(u32, u64)> {
        let symbols = self.symbols(spot.image);
        let after = symbols.partition_point(|(start, ..)| *start <= spot.offset);
        let (start, size, index) = symbols.get(after.checked_sub(1)?)?;
        (spot.offset - start < *size).then_some((*index, spot.offset - start))
    }
}

impl Block {
    fn of(image: &Image<'_>) -> Option<Self> {
        let segment = image.debug?.thread_local_segment()?;
        let size_bytes = segment.addresses.end - segment.addresses.start;
        let above_base = match image.is_shared_library() {
            true => None,
            false => above_base(image.abi()?, segment.addresses.start, size_bytes, segment.align_bytes),
        };
        let symbols = image.symbols().iter().zip(0u32..);
        let is_inside =
            |one: &Symbol| one.address.checked_add(one.size_bytes).is_some_and(|end| end <= size_bytes);
        let symbols = symbols
            .filter(|(one, _)| one.kind == SymbolKind::ThreadLocal && one.size_bytes > 0 && is_inside(one))
            .map(|(one, number)| (one.address, one.size_bytes, number));
        Some(Block { above_base, starts: BTreeSet::new(), size_bytes, symbols: symbols.collect() })
    }
}

/// The bytes at a thread's base that no variable uses.
fn head_bytes(abi: Abi) -> i64 {
    i64::from(abi.machine.description().threads.head_pointers) * i64::from(abi.pointer_bytes)
}

/// The place of the program's block, which the ABI fixes so that the linker can write it into instructions: on x86
/// it ends at the base, rounded down to the alignment; on Arm it starts above a head of two pointers.
fn above_base(abi: Abi, start: u64, size_bytes: u64, align_bytes: u64) -> Option<i64> {
    let mask = align_bytes - 1;
    match abi.machine.description().threads.block {
        BlockSide::Below => {
            let padding = start.wrapping_add(size_bytes).wrapping_neg() & mask;
            i64::try_from(size_bytes.checked_add(padding)?).ok().map(i64::wrapping_neg)
        }
        BlockSide::Above => {
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
