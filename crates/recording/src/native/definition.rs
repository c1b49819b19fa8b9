//! What a block of code is made of.

/// What the log holds of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Its address.
    Address,
    /// Its address and its value.
    Valued,
    /// Where a repeated instruction began and ended.
    Repeated,
    /// Nothing: it is so far from the last one that is logged.
    Again,
    /// Its value: it is where the access before was.
    AgainValued,
    /// Its address, and which elements are accessed.
    Masked,
}

impl Form {
    /// Words in the log.
    pub fn words(self) -> usize {
        match self {
            Form::Address | Form::AgainValued => 1,
            Form::Valued | Form::Repeated | Form::Masked => 2,
            Form::Again => 0,
        }
    }
}

const FORMS: [Form; 6] =
    [Form::Address, Form::Valued, Form::Repeated, Form::Again, Form::AgainValued, Form::Masked];

/// An access of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DefinedAccess {
    /// The instruction, by its number in the block.
    pub instruction: u8,
    /// It stores.
    pub is_store: bool,
    /// What the log holds of it.
    pub form: Form,
    /// Bytes; of each element of a repeated instruction.
    pub size_bytes: u32,
    /// Bytes of an element, where elements are masked.
    pub element_bytes: u8,
    /// Bytes from the last access that is logged to this, where it is one of [`Form::Again`].
    pub distance: i8,
    /// The instruction synchronises threads, and this is its first access: before what the log holds of it stands the
    /// time, as in [`super::record::TIME`].
    pub is_timed: bool,
}

/// What a block is made of.
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

/// Words of a definition before those of its accesses.
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
            let form = FORMS.iter().position(|form| *form == access.form).unwrap_or_default() as u64;
            u64::from(access.instruction)
                | u64::from(access.is_store) << 8
                | u64::from(access.is_timed) << 9
                | form << 16
                | u64::from(access.element_bytes) << 24
                | (u64::from(access.size_bytes) & 0xff_ffff) << 32
                | u64::from(access.distance as u8) << 56
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

    /// Reads [`Definition::to_words`]; `word` gives the word of a number. `None` when they are none.
    pub fn read(word: impl Fn(usize) -> Option<u64>) -> Option<Definition> {
        let (start, head) = (word(0)?, word(1)?);
        let (code, accesses) = ((head & 0xffff) as usize, (head >> 16 & 0xffff) as usize);
        let access = |number| {
            let word: u64 = word(number)?;
            Some(DefinedAccess {
                instruction: word as u8,
                is_store: word >> 8 & 1 != 0,
                form: *FORMS.get((word >> 16 & 0xff) as usize)?,
                size_bytes: (word >> 32) as u32 & 0xff_ffff,
                element_bytes: (word >> 24) as u8,
                distance: (word >> 56) as i8,
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

    /// Passes on every access of a block that stands alone, which was executed with these words in the log: the number of
    /// the defined access, the address and the bytes. What has a size that is no power of two is as many accesses as it has
    /// of these.
    pub fn each_alone(&self, mut words: &[u64], mut pass_on: impl FnMut(usize, u64, u32)) {
        if self.accesses.iter().any(|access| access.form == Form::Repeated) {
            return self.each_repeated(words, pass_on);
        }
        let mut last = 0;
        for (number, access) in self.accesses.iter().enumerate() {
            let (own, rest) = words.split_at(access.form.words().min(words.len()));
            words = rest;
            let (address, size_bytes) = match (access.form, own) {
                (Form::Masked, [address, elements]) => access.masked(*address, *elements),
                (_, [address, ..]) => (*address, access.size_bytes),
                (_, []) => (last, access.size_bytes),
            };
            last = address;
            each_piece(address, size_bytes, |address, bytes| pass_on(number, address, bytes));
        }
    }

    /// How often a repeated instruction was repeated, given where its accesses began and ended.
    pub fn repetitions(&self, words: &[u64]) -> u64 {
        let ends = words.as_chunks().0;
        let own = self.accesses.iter().zip(ends);
        let times = own.map(|(access, [from, to])| from.abs_diff(*to) / u64::from(access.size_bytes.max(1)));
        times.max().unwrap_or(0)
    }

    fn each_repeated(&self, words: &[u64], mut pass_on: impl FnMut(usize, u64, u32)) {
        let ends: &[[u64; 2]] = words.as_chunks().0;
        for repetition in 0..self.repetitions(words) {
            for (number, (access, [from, to])) in self.accesses.iter().zip(ends).enumerate() {
                let distance = repetition.wrapping_mul(u64::from(access.size_bytes));
                let address =
                    if to >= from { from.wrapping_add(distance) } else { from.wrapping_sub(distance) };
                each_piece(address, access.size_bytes, |address, bytes| pass_on(number, address, bytes));
            }
        }
    }

    /// How many words it has.
    pub fn count_words(&self) -> usize {
        FIRST_ACCESS + self.accesses.len() + self.code.len().div_ceil(8) + self.lengths.len().div_ceil(8)
    }
}

/// Cuts an access into pieces whose sizes are powers of two.
fn each_piece(mut address: u64, size_bytes: u32, mut pass_on: impl FnMut(u64, u32)) {
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
        usize::from(self.is_timed) + self.form.words()
    }

    /// The bytes of a masked access: its address in the log, and the elements that are accessed, a bit each. What lies between
    /// two of them counts as accessed.
    pub fn masked(&self, address: u64, elements: u64) -> (u64, u32) {
        let bytes = u32::from(self.element_bytes.max(1));
        let all = self.size_bytes / bytes;
        let elements = if all < 64 { elements & ((1 << all) - 1) } else { elements };
        let (first, end) = (elements.trailing_zeros(), 64 - elements.leading_zeros());
        match elements {
            0 => (address, 0),
            _ => (address + u64::from(first * bytes), (end - first) * bytes),
        }
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
            distance: -64,
            is_timed: form == Form::Valued,
        };
        let definition = Definition {
            start: 0x7fff_1234_5678,
            code: (0..21).collect(),
            lengths: vec![3; 7],
            accesses: vec![access(0, Form::Repeated), access(3, Form::Again), access(63, Form::Valued)],
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
        definition.each_alone(&[0x100, 0xf0, 0x200, 0x1f0], |number, address, bytes| {
            all.push((number, address, bytes));
        });
        assert_eq!(all, [(0, 0x100, 8), (1, 0x200, 8), (0, 0xf8, 8), (1, 0x1f8, 8)]);
    }

    #[test]
    fn a_masked_access_is_as_long_as_its_elements_reach() {
        let access = DefinedAccess {
            instruction: 0,
            is_store: false,
            form: Form::Masked,
            size_bytes: 64,
            element_bytes: 4,
            distance: 0,
            is_timed: false,
        };
        let definition = Definition { accesses: vec![access], ..Definition::default() };
        let mut all = Vec::new();
        definition.each_alone(&[0x1000, 0b1010], |number, address, bytes| all.push((number, address, bytes)));
        definition.each_alone(&[0x1000, 0], |_, _, _| panic!("nothing is accessed"));
        assert_eq!(all, [(0, 0x1004, 8), (0, 0x100c, 4)]);
    }
}
