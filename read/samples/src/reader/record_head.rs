//! The head of a record.

use crate::bytes::{Fields, u64_at};
use crate::numbers::AUXILIARY;

/// Bytes of a record's head.
pub(super) const HEAD_BYTES: usize = 8;

/// The head of a record.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) number: u32,
    pub(super) misc: u16,
    pub(super) body_bytes: usize,
}

impl Head {
    /// `None` for fewer bytes than a head has.
    pub(super) fn parse(bytes: &[u8]) -> Option<(Head, u16)> {
        let mut fields = Fields::new(bytes);
        let (number, misc, size) = (fields.u32()?, fields.u16()?, fields.u16()?);
        let body_bytes = usize::from(size).saturating_sub(HEAD_BYTES);
        Some((Head { number, misc, body_bytes }, size))
    }
}

/// The number of bytes behind a record that is longer than its head states.
pub(super) fn size_behind(number: u32, body: &[u8]) -> Option<u64> {
    match number {
        AUXILIARY => u64_at(body, 0),
        _ => Fields::new(body).u32().map(|size| u64::from(size).next_multiple_of(8)),
    }
}
