//! Words of BTF, also of big-endian machines.

use crate::Error;
use std::borrow::Cow;
use std::ops::Range;

/// Bytes of a header that describes the shape of kinds.
pub(super) const LAYOUT_HEADER_BYTES: usize = 32;

/// An image in little-endian byte order, the one that the reader expects. Bytes outside words stay unchanged: the magic
/// number's two bytes, which are swapped by themselves, two single bytes, and the strings.
pub(super) fn little_endian(image: &[u8]) -> Cow<'_, [u8]> {
    if !image.starts_with(&[0xeb, 0x9f]) {
        return Cow::Borrowed(image);
    }
    let mut own = image.to_vec();
    own.swap(0, 1);
    let mut swap = |words: Range<usize>| {
        let words = words.start.min(image.len())..words.end.min(image.len());
        own[words].chunks_exact_mut(4).for_each(<[u8]>::reverse);
    };
    let word = |at: usize| {
        let word = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_be_bytes(word)).ok()
    };
    let len = word(4).unwrap_or(0).min(LAYOUT_HEADER_BYTES);
    swap(4..len.max(8));
    if let (Some(len), Some(start), Some(size)) = (word(4), word(8), word(12)) {
        let start = len.saturating_add(start);
        swap(start..start.saturating_add(size));
    }
    Cow::Owned(own)
}

/// Little-endian words.
pub(super) struct Words<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Words<'a> {
    pub(super) fn next(&mut self) -> Result<u32, Error> {
        let end = self.at.saturating_add(4);
        let word = self.bytes.get(self.at..end).and_then(|word| word.try_into().ok());
        self.at = end;
        word.map(u32::from_le_bytes).ok_or_else(|| Error::damaged("BTF", "a type record is cut off"))
    }

    /// The number of words left.
    pub(super) fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at) / 4
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Error> {
        self.at = self.at.saturating_add(count);
        if self.at <= self.bytes.len() {
            Ok(())
        } else {
            Err(Error::damaged("BTF", "a type record is cut off"))
        }
    }
}
