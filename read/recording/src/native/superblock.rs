//! The description of a superblock: code with one entry and several exits, as the native engine copies it when all of a
//! run is logged.
//!
//! The log has a record for each execution of one. Its first word names the superblock and the part with which it was
//! left. Values of registers follow, from which the reader computes addresses. A record ends with the last such word of
//! that part. The stack pointer is known where a superblock begins: from where the one before it ends, or from a record
//! of its own, see [`super::record::STACK`]. The reader computes the results of instructions on known values, see
//! [`super::derived`].

use super::derived::{Derived, FIRST_DERIVED, MOST_DERIVED, Value, derived_place};
use super::repeated_lines::RepeatedLines;

/// Bits of a record's first word that hold the superblock's number; above them stands the part's.
pub const NUMBER_BITS: u32 = 25;
/// Parts of a superblock at most.
pub const MOST_PARTS: usize = 64;
/// The maximum number of words of a record, the first included: with derived values, as many as a byte can number.
pub const MOST_WORDS: usize = 255 - MOST_DERIVED;
/// Instructions of a superblock at most.
pub const MOST_INSTRUCTIONS: usize = 240;

/// In place of a word's number: the stack pointer where the superblock begins.
pub const STACK: u8 = 255;

/// The superblock that a record's first word names, and the part.
pub fn named(head: u64) -> (u32, usize) {
    let head = head as u32;
    (head & ((1 << NUMBER_BITS) - 1), (head >> NUMBER_BITS) as usize)
}

/// A superblock.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Superblock {
    /// Its parts, in the order in which they are executed. The program can leave only at the end of a part.
    pub parts: Vec<Part>,
    /// Values derived from words, each from earlier ones: their numbers count down from [`FIRST_DERIVED`].
    pub derived: Vec<Derived>,
    /// Its accesses, in execution order.
    pub accesses: Vec<Reckoned>,
}

/// Code that follows on itself.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Part {
    /// Its address in the program.
    pub start: u64,
    /// The bytes of each instruction.
    pub lengths: Vec<u8>,
    /// Accesses of the superblock up to its end.
    pub accesses: u16,
    /// Words of a record that ends with it, the first included.
    pub words: u8,
    /// The stack pointer at its end: a word, 0 for none, or [`STACK`].
    pub stack: u8,
    /// The distance that is added to that.
    pub stack_distance: i64,
}

/// The form in which an access is logged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessForm {
    /// Its address follows from words of the record.
    Plain,
    /// As [`AccessForm::Plain`], and a word marks the accessed elements.
    Masked,
    /// A string instruction repeats it, between the addresses in two words.
    Repeated,
}

/// Words of a record, and the values derived from them.
pub struct WorkedOut<'a> {
    record: &'a [u64],
    stack: u64,
    derived: [u64; MOST_DERIVED],
    count: usize,
}

impl WorkedOut<'_> {
    /// By a word's number, or a number that stands for another value; 0 where there is none.
    #[inline]
    fn word(&self, number: u8) -> u64 {
        match number {
            0 => 0,
            STACK => self.stack,
            _ => match derived_place(number, self.count) {
                Some(place) => self.derived[place],
                None => self.record.get(usize::from(number)).copied().unwrap_or_default(),
            },
        }
    }

    #[inline]
    fn value(&self, value: Value) -> u64 {
        self.word(value.word).wrapping_add_signed(value.distance)
    }
}

impl Part {
    /// The stack pointer at its end, by the record and the stack pointer where the superblock begins.
    pub fn stack_at_end(&self, record: &[u64], stack: u64) -> u64 {
        let from = match self.stack {
            0 => 0,
            STACK => stack,
            word => record.get(usize::from(word)).copied().unwrap_or_default(),
        };
        from.wrapping_add_signed(self.stack_distance)
    }
}

/// An access whose address follows from words of the record: the sum of a word, another that is multiplied, the
/// thread's base, and a distance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reckoned {
    /// Number of its instruction among all of the superblock's.
    pub instruction: u8,
    /// True for a store.
    pub is_store: bool,
    /// The form in which it is logged.
    pub told: AccessForm,
    /// Counted from the thread's base.
    pub is_of_thread: bool,
    /// The word that is added, counted from the record's first; 0 for none. For a repeated access, the beginning.
    pub base: u8,
    /// The word that is multiplied and added; 0 for none. For a repeated access, the end.
    pub index: u8,
    /// The multiplier of that word, as a power of two.
    pub scale_shift: u8,
    /// The word that marks the accessed elements.
    pub mask: u8,
    /// Bytes of an element, for a masked access.
    pub element_bytes: u8,
    /// Bytes; of each element of a repeated one.
    pub size_bytes: u16,
    /// The distance that is added to all that.
    pub distance: i64,
}

/// A run's instructions, packed to words of 16.
fn packed(lengths: &[u8]) -> impl Iterator<Item = u64> {
    lengths.chunks(16).map(|all| {
        all.iter().enumerate().fold(0, |word, (at, length)| word | u64::from(length & 15) << (4 * at))
    })
}

impl Superblock {
    /// As words: the first is never 0.
    pub fn to_words(&self) -> Vec<u64> {
        let mut words = vec![1 << 63 | self.parts.len() as u64 | (self.accesses.len() as u64) << 8];
        words[0] |= (self.derived.len() as u64) << 32;
        for part in &self.parts {
            words.push(part.start);
            let head = part.lengths.len() as u64 | u64::from(part.accesses) << 8;
            words.push(head | u64::from(part.words) << 24 | u64::from(part.stack) << 32);
            words.push(part.stack_distance.cast_unsigned());
            words.extend(packed(&part.lengths));
        }
        words.extend(self.derived.iter().flat_map(|derived| derived.to_words()));
        for access in &self.accesses {
            words.extend([access.head(), access.distance.cast_unsigned()]);
        }
        words
    }

    /// Reads it from its words, each requested by its number; `None` when they are inconsistent. Also returns the
    /// number of words.
    pub fn read(word: impl Fn(usize) -> Option<u64>) -> Option<(Superblock, usize)> {
        let head = word(0).filter(|head| head >> 63 == 1)?;
        let (parts, accesses) = ((head & 0xff) as usize, (head >> 8 & 0xffff) as usize);
        let mut at = 1;
        let mut all = Superblock::default();
        for _ in 0..parts {
            let (start, head, distance) = (word(at)?, word(at + 1)?, word(at + 2)?);
            let count = (head & 0xff) as usize;
            at += 3;
            let length = |number: usize| Some((word(at + number / 16)? >> (4 * (number % 16)) & 15) as u8);
            let lengths = (0..count).map(length).collect::<Option<_>>()?;
            at += count.div_ceil(16);
            all.parts.push(Part {
                start,
                lengths,
                accesses: (head >> 8) as u16,
                words: (head >> 24) as u8,
                stack: (head >> 32) as u8,
                stack_distance: distance.cast_signed(),
            });
        }
        for _ in 0..(head >> 32) as u8 {
            all.derived.push(Derived::read([word(at)?, word(at + 1)?, word(at + 2)?])?);
            at += Derived::WORDS;
        }
        for _ in 0..accesses {
            all.accesses.push(Reckoned::read(word(at)?, word(at + 1)?)?);
            at += 2;
        }
        all.is_sound().then_some((all, at))
    }

    /// As [`Superblock::words`], from its words: it reads no others.
    pub fn read_words(word: impl Fn(usize) -> Option<u64>) -> Option<Vec<u8>> {
        let head = word(0).filter(|head| head >> 63 == 1)?;
        let mut at = 1;
        let words = (0..head & 0xff).map(|_| {
            let part = word(at + 1)?;
            at += 3 + ((part & 0xff) as usize).div_ceil(16);
            Some((part >> 24) as u8)
        });
        words.collect()
    }

    /// True when its fields are consistent.
    fn is_sound(&self) -> bool {
        let Some(needs) = self.needs() else { return false };
        let mut before = (0, 1);
        let mut instructions = 0;
        let parts = self.parts.iter().all(|part| {
            let bytes: u64 = part.lengths.iter().map(|length| u64::from(*length)).sum();
            let (accesses, words) = (usize::from(part.accesses), part.words);
            let own = before.0..accesses;
            let of_part = instructions..instructions + part.lengths.len();
            let are_within = self.accesses.get(own).is_some_and(|own| {
                own.iter().all(|access| {
                    of_part.contains(&usize::from(access.instruction)) && access.is_within(words, &needs)
                })
            });
            let follows = accesses >= before.0 && words >= before.1;
            (before, instructions) = ((accesses, words), of_part.end);
            are_within
                && follows
                && (part.stack < words || part.stack == STACK)
                && !part.lengths.is_empty()
                && part.lengths.iter().all(|length| *length > 0)
                && part.start.checked_add(bytes).is_some()
        });
        let is_alone = self.is_repeated() && instructions > 1;
        parts
            && !self.parts.is_empty()
            && self.parts.len() <= MOST_PARTS
            && instructions <= MOST_INSTRUCTIONS
            && before.0 == self.accesses.len()
            && usize::from(before.1) <= MOST_WORDS
            && !is_alone
    }

    /// The last word that each derived value needs. `None` when one needs a missing value, or its number is that of a
    /// word.
    fn needs(&self) -> Option<Vec<u8>> {
        let words = self.parts.last()?.words;
        let are_apart = usize::from(words) + self.derived.len() <= usize::from(FIRST_DERIVED) + 1;
        if self.derived.len() > MOST_DERIVED || !are_apart {
            return None;
        }
        let mut needs: Vec<u8> = Vec::new();
        for derived in &self.derived {
            let need = |value: Value| match value.word {
                STACK => Some(0),
                word if word < words => Some(word),
                word => derived_place(word, needs.len()).map(|place| needs[place]),
            };
            let need = need(derived.first)?.max(need(derived.second)?);
            needs.push(need);
        }
        Some(needs)
    }

    /// The values that follow from a record and the stack pointer at the superblock's beginning.
    #[inline]
    pub fn worked_out<'a>(&self, record: &'a [u64], stack: u64) -> WorkedOut<'a> {
        let mut all = WorkedOut { record, stack, derived: [0; MOST_DERIVED], count: 0 };
        for derived in self.derived.iter().take(MOST_DERIVED) {
            let (first, second) = (all.value(derived.first), all.value(derived.second));
            all.derived[all.count] = derived.operation.of(derived.is_half, first, second);
            all.count += 1;
        }
        all
    }

    /// Words of a record that ends with a part, for each part.
    pub fn words(&self) -> Vec<u8> {
        self.parts.iter().map(|part| part.words).collect()
    }

    /// True when it is one string instruction that repeats.
    pub fn is_repeated(&self) -> bool {
        self.accesses.iter().any(|access| access.told == AccessForm::Repeated)
    }

    /// Instructions up to the end of a part.
    pub fn instructions(&self, part: usize) -> usize {
        self.parts.iter().take(part.saturating_add(1)).map(|part| part.lengths.len()).sum()
    }

    /// The number of repetitions of its string instruction, by the record; 1 where it has none.
    pub fn repetitions(&self, record: &[u64]) -> u64 {
        if !self.is_repeated() {
            return 1;
        }
        let word = |number: u8| record.get(usize::from(number)).copied().unwrap_or_default();
        let times = |access: &Reckoned| {
            word(access.base).abs_diff(word(access.index)) / u64::from(access.size_bytes.max(1))
        };
        self.accesses.iter().map(times).max().unwrap_or(0)
    }
}

impl Reckoned {
    fn head(&self) -> u64 {
        u64::from(self.instruction)
            | u64::from(self.is_store) << 8
            | u64::from(self.is_of_thread) << 9
            | u64::from(self.scale_shift & 3) << 10
            | (self.told as u64) << 12
            | u64::from(self.base) << 16
            | u64::from(self.index) << 24
            | u64::from(self.element_bytes) << 32
            | u64::from(self.size_bytes) << 40
            | u64::from(self.mask) << 56
    }

    fn read(head: u64, distance: u64) -> Option<Reckoned> {
        let byte = |at: u32| (head >> at) as u8;
        let told = [AccessForm::Plain, AccessForm::Masked, AccessForm::Repeated];
        Some(Reckoned {
            instruction: byte(0),
            is_store: head >> 8 & 1 != 0,
            is_of_thread: head >> 9 & 1 != 0,
            scale_shift: byte(10) & 3,
            told: *told.get(usize::from(byte(12) & 15))?,
            base: byte(16),
            index: byte(24),
            element_bytes: byte(32),
            size_bytes: (head >> 40) as u16,
            mask: byte(56),
            distance: distance.cast_signed(),
        })
    }

    /// True when a record of this many words has the words that it needs, and the words that its derived values need.
    fn is_within(&self, words: u8, needs: &[u8]) -> bool {
        let needs_all = self.told == AccessForm::Repeated;
        let is_told = |word: u8| {
            let place = derived_place(word, needs.len());
            word < words || word == STACK || place.is_some_and(|place| needs[place] < words)
        };
        let is_there =
            |word: u8, is_needed: bool| if is_needed { word > 0 && word < words } else { is_told(word) };
        is_there(self.base, needs_all)
            && is_there(self.index, needs_all)
            && is_there(self.mask, self.told == AccessForm::Masked)
            && self.size_bytes > 0
    }

    /// Its address and its bytes, from the record's values and the thread's base. The bytes are 0 where no element is
    /// accessed.
    #[inline]
    pub fn reckon(&self, words: &WorkedOut<'_>, thread_base: u64) -> (u64, u32) {
        let base = if self.is_of_thread { thread_base } else { 0 };
        let address = words
            .word(self.base)
            .wrapping_add(words.word(self.index) << self.scale_shift)
            .wrapping_add(base)
            .wrapping_add_signed(self.distance);
        match self.told {
            AccessForm::Masked => self.masked(address, words.word(self.mask)),
            AccessForm::Plain | AccessForm::Repeated => (address, self.size_bytes.into()),
        }
    }

    /// The bytes from the first element that is accessed to the last, a bit each.
    fn masked(&self, address: u64, elements: u64) -> (u64, u32) {
        let bytes = u32::from(self.element_bytes.max(1));
        let all = u32::from(self.size_bytes) / bytes;
        let elements = if all < 64 { elements & ((1 << all) - 1) } else { elements };
        let (first, end) = (elements.trailing_zeros(), 64 - elements.leading_zeros());
        match elements {
            0 => (address, 0),
            _ => (address.wrapping_add(u64::from(first * bytes)), (end - first) * bytes),
        }
    }

    /// The lines that a string instruction touches when it repeats the access.
    pub fn repeated(&self, record: &[u64]) -> RepeatedLines {
        let word = |number: u8| record.get(usize::from(number)).copied().unwrap_or_default();
        RepeatedLines::new(word(self.base), word(self.index), self.size_bytes.into())
    }
}
