//! The description of a block of code.

use super::elements::{Gather, each_run, lowest, negative};
use super::repeated_lines::{RepeatedLines, each_in_turn};

/// The logged words of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Its address.
    Address,
    /// Its address and its value.
    Valued,
    /// The beginning and the end of a repeated instruction's range.
    Repeated,
    /// Nothing: it is at a fixed distance from the last access that is logged.
    Again,
    /// Its value: it is at the address of the access before.
    AgainValued,
    /// Its address, and which elements are accessed, a bit each.
    Masked,
    /// Its address, and a bit for each element that it has: as many elements as bits are set are accessed, one behind
    /// the other.
    Packed,
    /// Its address, and a bit for each of this many elements, all of which are the same in memory.
    Spread(u8),
    /// Its address, and this many words of a vector: the highest bit of an element marks it as accessed.
    Lanes(u8),
    /// The address without an index, the indices and which elements are accessed.
    Gather(Gather),
}

impl Form {
    fn to_bits(self) -> (u64, u64) {
        match self {
            Form::Address => (0, 0),
            Form::Valued => (1, 0),
            Form::Repeated => (2, 0),
            Form::Again => (3, 0),
            Form::AgainValued => (4, 0),
            Form::Masked => (5, 0),
            Form::Packed => (6, 0),
            Form::Spread(elements) => (7, elements.into()),
            Form::Lanes(words) => (8, words.into()),
            Form::Gather(gather) => (9, gather.to_bits()),
        }
    }

    fn of_bits(kind: u64, more: u64) -> Option<Form> {
        Some(match kind {
            0 => Form::Address,
            1 => Form::Valued,
            2 => Form::Repeated,
            3 => Form::Again,
            4 => Form::AgainValued,
            5 => Form::Masked,
            6 => Form::Packed,
            7 => Form::Spread(more as u8),
            8 => Form::Lanes(more as u8),
            9 => Form::Gather(Gather::of_bits(more)),
            _ => return None,
        })
    }
}

/// An access of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefinedAccess {
    /// The instruction, by its number in the block.
    pub instruction: u8,
    /// It stores.
    pub is_store: bool,
    /// Its logged words.
    pub form: Form,
    /// Bytes; of each element of a repeated instruction, or of a gather.
    pub size_bytes: u32,
    /// Bytes of an element, where not all elements are accessed.
    pub element_bytes: u8,
    /// Bytes from the last access that is logged to this, where it is one of [`Form::Again`].
    pub distance: i8,
    /// The instruction synchronises threads, and this is its first access: the log holds the time before its words, as
    /// in [`super::record::TIME`].
    pub is_timed: bool,
}

/// The description of a block.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Definition {
    /// Address of its first instruction.
    pub start: u64,
    /// Its instructions' bytes.
    pub code: Vec<u8>,
    /// Bytes of each instruction.
    pub lengths: Vec<u8>,
    /// Its accesses, in their order.
    pub accesses: Vec<DefinedAccess>,
    /// Some of its accesses are not in the log.
    pub misses_accesses: bool,
    /// In a whole program: the log has a record for each time that it is executed, see [`noted::ALONE`].
    pub stands_alone: bool,
    /// In a whole program: the number of its count, see [`sieve::COUNTS`].
    pub count: u32,
}

/// Words of a definition before its accesses.
const FIRST_ACCESS: usize = 3;

impl Definition {
    /// Its words.
    pub fn to_words(&self) -> Vec<u64> {
        let head = self.code.len() as u64
            | (self.accesses.len() as u64) << 16
            | u64::from(self.misses_accesses) << 32
            | u64::from(self.stands_alone) << 33
            | (self.lengths.len() as u64) << 40;
        let access = |access: &DefinedAccess| {
            let (form, more) = access.form.to_bits();
            // A distance is stored for accesses that have no other parameter.
            let more = if access.form == Form::Again { u64::from(access.distance as u8) } else { more };
            u64::from(access.instruction)
                | u64::from(access.is_store) << 8
                | u64::from(access.is_timed) << 9
                | form << 16
                | u64::from(access.element_bytes) << 24
                | (u64::from(access.size_bytes) & 0xff_ffff) << 32
                | more << 56
        };
        let mut words = vec![self.start, head, u64::from(self.count)];
        words.extend(self.accesses.iter().map(access));
        let padded = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        words.extend(self.code.chunks(8).map(padded));
        words.extend(self.lengths.chunks(8).map(padded));
        words
    }

    /// Reads the words of [`Definition::to_words`]; `word` gives the word of a number. `None` when they are no
    /// definition.
    pub fn read(word: impl Fn(usize) -> Option<u64>) -> Option<Definition> {
        let (start, head) = (word(0)?, word(1)?);
        let (code, accesses) = ((head & 0xffff) as usize, (head >> 16 & 0xffff) as usize);
        let access = |number| {
            let word: u64 = word(number)?;
            let form = Form::of_bits(word >> 16 & 0xff, word >> 56)?;
            Some(DefinedAccess {
                instruction: word as u8,
                is_store: word >> 8 & 1 != 0,
                form,
                size_bytes: (word >> 32) as u32 & 0xff_ffff,
                element_bytes: (word >> 24) as u8,
                distance: if form == Form::Again { (word >> 56) as i8 } else { 0 },
                is_timed: word >> 9 & 1 != 0,
            })
        };
        let accesses: Option<Vec<_>> = (FIRST_ACCESS..FIRST_ACCESS + accesses).map(access).collect();
        let accesses = accesses?;
        let bytes = |first: usize, length: usize| {
            let words: Option<Vec<u64>> = (first..first + length.div_ceil(8)).map(&word).collect();
            let mut bytes: Vec<u8> = words?.into_iter().flat_map(u64::to_le_bytes).collect();
            bytes.truncate(length);
            Some(bytes)
        };
        let first = FIRST_ACCESS + accesses.len();
        Some(Definition {
            start,
            code: bytes(first, code)?,
            lengths: bytes(first + code.div_ceil(8), (head >> 40 & 0xff) as usize)?,
            accesses,
            misses_accesses: head >> 32 & 1 != 0,
            stands_alone: head >> 33 & 1 != 0,
            count: word(2)? as u32,
        })
    }

    /// Passes on every access of a block that stands alone, which was executed with these words in the log: the number
    /// of the defined access, the address and the bytes. An access whose size is no power of two is split into accesses
    /// of such sizes. A string instruction that repeats has one for each line that it touches.
    pub fn each_alone(&self, mut words: &[u64], mut pass_on: impl FnMut(usize, u64, u32)) {
        if self.accesses.iter().any(|access| access.form == Form::Repeated) {
            return self.each_repeated(words, pass_on);
        }
        let mut last = 0;
        for (number, access) in self.accesses.iter().enumerate() {
            let (own, rest) = words.split_at(access.form_words().min(words.len()));
            words = rest;
            if access.has_elements() {
                access.each_element(own, |address, size_bytes| {
                    each_piece(address, size_bytes, |address, bytes| pass_on(number, address, bytes));
                });
                continue;
            }
            last = own.first().copied().unwrap_or(last);
            each_piece(last, access.size_bytes, |address, bytes| pass_on(number, address, bytes));
        }
    }

    fn each_repeated(&self, words: &[u64], pass_on: impl FnMut(usize, u64, u32)) {
        let ends: &[[u64; 2]] = words.as_chunks().0;
        let mut own = self.accesses.iter().zip(ends);
        let mut side = || {
            let (access, [from, to]) = own.next()?;
            Some(RepeatedLines::new(*from, *to, access.size_bytes))
        };
        let sides = [side().unwrap_or_default(), side().unwrap_or_default()];
        each_in_turn(sides, pass_on);
    }

    /// Its number of words.
    pub fn count_words(&self) -> usize {
        FIRST_ACCESS + self.accesses.len() + self.code.len().div_ceil(8) + self.lengths.len().div_ceil(8)
    }
}

/// Cuts an access into pieces whose sizes are powers of two.
pub fn each_piece(mut address: u64, size_bytes: u32, mut pass_on: impl FnMut(u64, u32)) {
    let mut rest = size_bytes;
    while rest > 0 {
        let bytes = 1 << rest.ilog2().min(12);
        pass_on(address, bytes);
        address = address.wrapping_add(bytes.into());
        rest -= bytes;
    }
}

impl DefinedAccess {
    /// Words in the log.
    pub fn words(&self) -> usize {
        usize::from(self.is_timed) + self.form_words()
    }

    /// Words in the log, but for the time.
    fn form_words(&self) -> usize {
        match self.form {
            Form::Again => 0,
            Form::Address | Form::AgainValued => 1,
            Form::Valued | Form::Repeated | Form::Masked | Form::Packed | Form::Spread(_) => 2,
            Form::Lanes(words) => 1 + usize::from(words),
            Form::Gather(gather) => 1 + gather.index_words() + gather.mask_words(self.element_bytes),
        }
    }

    /// True when some of its elements may not be accessed: the log marks the accessed ones, see
    /// [`DefinedAccess::each_element`].
    pub fn has_elements(&self) -> bool {
        matches!(self.form, Form::Masked | Form::Packed | Form::Spread(_) | Form::Lanes(_) | Form::Gather(_))
    }

    /// Passes on the accessed addresses and bytes, given the words in the log: each element of a gather, else each run
    /// of adjacent elements.
    pub fn each_element(&self, words: &[u64], mut pass_on: impl FnMut(u64, u32)) {
        let bytes = u32::from(self.element_bytes.max(1));
        let all = lowest(self.size_bytes / bytes);
        let (address, elements) = match (self.form, words) {
            (Form::Gather(gather), words) => {
                return gather.each(words, self.element_bytes, |address| pass_on(address, bytes));
            }
            (Form::Masked, [address, elements]) => (*address, elements & all),
            (Form::Packed, [address, elements]) => (*address, lowest((elements & all).count_ones())),
            (Form::Spread(count), [address, elements]) => match elements & lowest(count.into()) {
                0 => return,
                _ => return pass_on(*address, self.size_bytes),
            },
            (Form::Lanes(_), [address, mask @ ..]) => (*address, negative(mask, self.element_bytes) & all),
            _ => return,
        };
        each_run(elements, |first, count| {
            pass_on(address.wrapping_add(u64::from(first * bytes)), count * bytes);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_reads_back() {
        let access = |instruction, form| DefinedAccess {
            instruction,
            is_store: form == Form::Again,
            form,
            size_bytes: 512,
            element_bytes: 4,
            distance: if form == Form::Again { -64 } else { 0 },
            is_timed: form == Form::Valued,
        };
        let gather = Gather { elements: 16, index_bytes: 4, scale: 8, is_masked_by_vector: true };
        let forms = [
            Form::Address,
            Form::Repeated,
            Form::Again,
            Form::Valued,
            Form::AgainValued,
            Form::Masked,
            Form::Packed,
            Form::Spread(16),
            Form::Lanes(4),
            Form::Gather(gather),
        ];
        let definition = Definition {
            start: 0x7fff_1234_5678,
            code: (0..21).collect(),
            lengths: vec![3; 7],
            accesses: forms.iter().zip(0..).map(|(form, number)| access(number, *form)).collect(),
            misses_accesses: true,
            stands_alone: true,
            count: u32::MAX,
        };
        let words = definition.to_words();
        assert_eq!(words.len(), definition.count_words());
        assert_eq!(Definition::read(|number| words.get(number).copied()), Some(definition));
        assert_eq!(Definition::read(|number| words[..5].get(number).copied()), None);
    }

    #[test]
    fn a_repeated_copy_takes_turns_and_may_go_downwards() {
        let access = |is_store| DefinedAccess {
            instruction: 0,
            is_store,
            form: Form::Repeated,
            size_bytes: 8,
            element_bytes: 0,
            distance: 0,
            is_timed: false,
        };
        let definition = Definition { accesses: vec![access(false), access(true)], ..Definition::default() };
        let mut all = Vec::new();
        definition.each_alone(&[0x140, 0xf0, 0x248, 0x1f8], |number, address, bytes| {
            all.push((number, address, bytes));
        });
        let expected = [(0, 0x140, 8), (1, 0x240, 16), (0, 0x100, 64), (1, 0x200, 64)];
        assert_eq!(all, [&expected[..], &[(0, 0xf8, 8)]].concat());
    }

    /// The addresses and bytes of an access with elements of four bytes, given its words.
    fn accessed(form: Form, size_bytes: u32, words: &[u64]) -> Vec<(u64, u32)> {
        let access = DefinedAccess {
            instruction: 0,
            is_store: false,
            form,
            size_bytes,
            element_bytes: 4,
            distance: 0,
            is_timed: false,
        };
        let definition = Definition { accesses: vec![access], ..Definition::default() };
        let mut all = Vec::new();
        definition.each_alone(words, |_, address, bytes| all.push((address, bytes)));
        assert_eq!(access.words(), words.len());
        all
    }

    #[test]
    fn of_elements_those_alone_are_accessed_that_the_log_names() {
        let masked = |elements| accessed(Form::Masked, 64, &[0x1000, elements]);
        assert_eq!(masked(0b1010), [(0x1004, 4), (0x100c, 4)]);
        assert_eq!(masked(0xffff), [(0x1000, 64)]);
        assert_eq!(masked(0xffff_0000), []);
        assert_eq!(accessed(Form::Packed, 32, &[0x1000, 0xff10]), [(0x1000, 4)]);
        assert_eq!(accessed(Form::Packed, 32, &[0x1000, 0x51]), [(0x1000, 8), (0x1008, 4)]);
        assert_eq!(accessed(Form::Spread(8), 4, &[0x1000, 0x80]), [(0x1000, 4)]);
        assert_eq!(accessed(Form::Spread(8), 4, &[0x1000, 0x100]), []);
        let lanes = [0x1000, 1 << 63, 0x7fff_ffff_8000_0000];
        assert_eq!(accessed(Form::Lanes(2), 16, &lanes), [(0x1004, 8)]);
        let gather = Gather { elements: 2, index_bytes: 8, scale: 4, is_masked_by_vector: false };
        let words = [0x1000, 2, 2, 0b11];
        assert_eq!(accessed(Form::Gather(gather), 4, &words), [(0x1008, 4), (0x1008, 4)]);
    }
}
