//! Little-endian fields of a run of bytes; a missing field is `None`.

use crate::error::SamplesError;
use std::io::Read;

/// The position of a reader of fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(crate) fn new(rest: &'a [u8]) -> Self {
        Fields { rest }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.bytes(2)?.try_into().ok()?))
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// A string with its length before it, padded with zeros, as perf writes them into its header.
    pub(crate) fn header_text(&mut self) -> Option<String> {
        let count = usize::try_from(self.u32()?).ok()?;
        Some(text(self.bytes(count)?))
    }
}

/// The text before the first zero.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

/// The `u64` that begins at a byte.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Fields::new(bytes.get(at..)?).u64()
}

/// Reads until `into` is full or the input ends. Returns the number of bytes.
pub(crate) fn read_full(input: &mut impl Read, into: &mut [u8]) -> Result<usize, SamplesError> {
    let mut got = 0;
    while let Some(rest) = into.get_mut(got..).filter(|rest| !rest.is_empty()) {
        match input.read(rest) {
            Ok(0) => break,
            Ok(count) => got += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(got)
}
