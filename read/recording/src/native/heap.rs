//! Whole programs of which allocations are wanted: the functions of allocators, whose calls the engine notes, and how
//! to get from a place in the code to its function's caller. The command finds both in the files and writes them into
//! the shared memory; the engine reads them there.

/// The kind of an allocator's function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocator {
    /// Takes the bytes, gives an address.
    Malloc,
    /// Takes how many and the bytes of each, gives an address.
    Calloc,
    /// Takes an address and the bytes, gives the address that it has now.
    Realloc,
    /// Takes an address, how many and the bytes of each, gives the address that it has now.
    ReallocArray,
    /// Takes an alignment and the bytes, gives an address.
    Aligned,
    /// Takes where the address is to be written, an alignment and the bytes; gives 0 when it was.
    PosixMemalign,
    /// Takes an address.
    Free,
}

/// Symbols of allocators, and their kinds.
const NAMES: [(&str, Allocator); 21] = [
    ("malloc", Allocator::Malloc),
    ("valloc", Allocator::Malloc),
    ("pvalloc", Allocator::Malloc),
    ("calloc", Allocator::Calloc),
    ("realloc", Allocator::Realloc),
    ("reallocarray", Allocator::ReallocArray),
    ("aligned_alloc", Allocator::Aligned),
    ("memalign", Allocator::Aligned),
    ("posix_memalign", Allocator::PosixMemalign),
    ("free", Allocator::Free),
    // `operator new` and `operator new[]`: of a size; of a size, without exceptions; of a size and an alignment.
    ("_Znwm", Allocator::Malloc),
    ("_Znam", Allocator::Malloc),
    ("_ZnwmRKSt9nothrow_t", Allocator::Malloc),
    ("_ZnamRKSt9nothrow_t", Allocator::Malloc),
    ("_ZnwmSt11align_val_t", Allocator::Malloc),
    ("_ZnamSt11align_val_t", Allocator::Malloc),
    // `operator delete` and `operator delete[]`.
    ("_ZdlPv", Allocator::Free),
    ("_ZdaPv", Allocator::Free),
    ("_ZdlPvm", Allocator::Free),
    ("_ZdaPvm", Allocator::Free),
    ("_ZdlPvmSt11align_val_t", Allocator::Free),
];

const NUMBERED: [Allocator; 7] = [
    Allocator::Malloc,
    Allocator::Calloc,
    Allocator::Realloc,
    Allocator::ReallocArray,
    Allocator::Aligned,
    Allocator::PosixMemalign,
    Allocator::Free,
];

impl Allocator {
    /// All symbols, and their kinds.
    pub fn names() -> impl Iterator<Item = (&'static str, Allocator)> {
        NAMES.into_iter()
    }

    /// As a word.
    pub fn number(self) -> u64 {
        NUMBERED.iter().position(|one| *one == self).unwrap_or_default() as u64
    }

    /// Reads [`Allocator::number`] back.
    pub fn of_number(number: u64) -> Option<Allocator> {
        NUMBERED.get(usize::try_from(number).ok()?).copied()
    }
}

/// Functions at most: pairs of address and [`Allocator::number`].
pub const MOST_ALLOCATORS: usize = 512;
/// Their beginning, in words from [`super::HEAP`].
pub const ALLOCATORS: usize = 0;

/// Words of a file whose rules are known.
pub mod file {
    /// Words of each.
    pub const WORDS: usize = 4;
    /// The file's beginning in memory, from which its rules' addresses are counted.
    pub const START: usize = 0;
    /// The file's end in memory.
    pub const END: usize = 1;
    /// Its first rule, among all.
    pub const FIRST: usize = 2;
    /// The number of its rules.
    pub const RULES: usize = 3;
    /// Files at most.
    pub const MOST: usize = 1024;
}

/// The beginning of the files, in words.
pub const FILES: usize = ALLOCATORS + 2 * MOST_ALLOCATORS;
/// The beginning of the rules, in words: each is a [`FrameRule`] as a word, in order of place.
pub const RULES: usize = FILES + file::WORDS * file::MOST;
/// Rules at most, of all files.
pub const MOST_RULES: usize = 1 << 22;
/// Bytes of all of this.
pub const BYTES: u64 = 8 * (RULES + MOST_RULES) as u64;

/// Return addresses that are noted of an allocation at most.
pub const MOST_FRAMES: usize = 12;

/// An unwind rule on x86-64: it leads from a place in the code to its function's caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRule {
    /// The offset in the file's memory, in bytes, from which it applies, up to the next rule.
    pub from: u32,
    /// The base of the caller's stack pointer; `None` when it is unknown.
    pub base: Option<FrameBase>,
}

/// A caller's frame. Its return address lies below its stack pointer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameBase {
    /// From the frame pointer, and not from the stack pointer.
    pub is_of_frame_pointer: bool,
    /// The distance of the caller's stack pointer above that, in words.
    pub words: u16,
    /// The distance of the saved frame pointer below the caller's stack pointer, in words; 0 when it is in its
    /// register.
    pub saved_words: u16,
}

const MOST_WORDS: u16 = (1 << 15) - 1;

impl FrameRule {
    /// As a word. A rule that does not fit is stored as unknown.
    pub fn to_word(self) -> u64 {
        let base = self.base.filter(|base| base.words <= MOST_WORDS && base.saved_words <= MOST_WORDS);
        let upper = base.map_or(0, |base| {
            let kind = 1 + u32::from(base.is_of_frame_pointer);
            kind | u32::from(base.words) << 2 | u32::from(base.saved_words) << 17
        });
        u64::from(self.from) | u64::from(upper) << 32
    }

    /// Reads [`FrameRule::to_word`] back.
    pub fn of_word(word: u64) -> FrameRule {
        let upper = (word >> 32) as u32;
        let base = || FrameBase {
            is_of_frame_pointer: upper & 3 == 2,
            words: (upper >> 2) as u16 & MOST_WORDS,
            saved_words: (upper >> 17) as u16,
        };
        FrameRule { from: word as u32, base: (upper & 3 != 0).then(base) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_read_back_and_what_has_no_room_is_not_known() {
        let rule = |base| FrameRule { from: 0xffff_fff0, base };
        let base = |is_of_frame_pointer, words, saved_words| {
            Some(FrameBase { is_of_frame_pointer, words, saved_words })
        };
        for base in [None, base(false, 1, 0), base(true, 2, 2), base(false, MOST_WORDS, MOST_WORDS)] {
            assert_eq!(FrameRule::of_word(rule(base).to_word()), rule(base));
        }
        assert_eq!(FrameRule::of_word(rule(base(false, MOST_WORDS + 1, 0)).to_word()), rule(None));
    }

    #[test]
    fn allocators_read_back_by_number() {
        for (name, allocator) in Allocator::names() {
            assert_eq!(Allocator::of_number(allocator.number()), Some(allocator), "{name}");
        }
        assert_eq!(Allocator::of_number(99), None);
    }
}
