//! Reading little-endian numbers at offsets, where the offset may be anywhere.

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(bytes.get(at..at.checked_add(2)?)?.try_into().ok()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

/// A number as wide as a pointer.
pub(crate) fn word_at(bytes: &[u8], at: usize, width_bytes: usize) -> Option<u64> {
    match width_bytes {
        4 => u32_at(bytes, at).map(u64::from),
        _ => u64_at(bytes, at),
    }
}

/// The next multiple of `alignment`, a power of two.
pub(crate) fn align(at: usize, alignment: usize) -> usize {
    at.next_multiple_of(alignment)
}
