//! Variable-length integers (LEB128) and the cursor that reads them.

/// Appends `value`, seven bits a byte, lowest first.
pub(crate) fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the difference of two addresses, small for neighbours in either direction.
pub(crate) fn put_delta(out: &mut Vec<u8>, from: u64, to: u64) {
    put(out, zigzag(to.wrapping_sub(from) as i64));
}

/// Appends a length and the bytes.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// A position in a block. Every read is checked; `None` is malformed input.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Cursor { bytes }
    }

    pub(crate) fn left(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(*first)
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(head)
    }

    pub(crate) fn int(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    pub(crate) fn delta(&mut self, from: u64) -> Option<u64> {
        Some(from.wrapping_add(unzigzag(self.int()?) as u64))
    }

    /// A count of things that take at least `least_bytes` each: never more than the bytes left allow.
    pub(crate) fn count(&mut self, least_bytes: usize) -> Option<usize> {
        let count = usize::try_from(self.int()?).ok()?;
        (count.checked_mul(least_bytes)? <= self.left()).then_some(count)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.count(1)?;
        self.take(count)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_survive(value: u64, from: u64) {
            let mut out = Vec::new();
            put(&mut out, value);
            put_delta(&mut out, from, value);
            let mut cursor = Cursor::new(&out);
            prop_assert_eq!(cursor.int(), Some(value));
            prop_assert_eq!(cursor.delta(from), Some(value));
            prop_assert_eq!(cursor.left(), 0);
        }
    }

    #[test]
    fn an_integer_longer_than_64_bits_is_malformed() {
        assert_eq!(Cursor::new(&[0xff; 10]).int(), None);
        assert_eq!(Cursor::new(&[0x80]).int(), None);
    }

    #[test]
    fn a_count_beyond_the_bytes_left_is_malformed() {
        assert_eq!(Cursor::new(&[200, 1, 0, 0]).count(1), None);
    }
}
