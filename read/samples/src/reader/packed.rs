//! Records that perf has compressed: `perf record -z`.

use super::record_head::{HEAD_BYTES, Head};
use crate::error::SamplesError;
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

/// Bytes that are unpacked at once: input is unpacked as it is needed, since few bytes may become many.
const CHUNK_BYTES: usize = 128 << 10;

/// One stream, which runs through all compressed records of a file: a record may begin in one and end in another.
#[derive(Default)]
pub(super) struct Packed {
    decoder: Option<Decoder<'static>>,
    /// The compressed record read last.
    packed: Vec<u8>,
    packed_at: usize,
    /// Records, from the first that was not taken on.
    unpacked: Vec<u8>,
    unpacked_at: usize,
}

impl std::fmt::Debug for Packed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Packed").finish_non_exhaustive()
    }
}

impl Packed {
    /// Sets the contents of a compressed record. All of the one before was unpacked.
    pub(super) fn feed(&mut self, packed: &[u8]) {
        (self.packed, self.packed_at) = (packed.to_vec(), 0);
    }

    /// The next whole record's head, when there is one; its body is the first of [`Self::rest`].
    pub(super) fn next_head(&mut self, at: u64) -> Result<Option<Head>, SamplesError> {
        let damaged = |what| SamplesError::Damaged { what, at };
        loop {
            let rest = self.unpacked.get(self.unpacked_at..).unwrap_or_default();
            if let Some((head, size)) = Head::parse(rest) {
                if usize::from(size) < HEAD_BYTES {
                    return Err(damaged("a record shorter than its head, among compressed ones,"));
                }
                if rest.len() >= usize::from(size) {
                    self.unpacked_at += HEAD_BYTES;
                    return Ok(Some(head));
                }
            }
            if !self.unpack().map_err(|_| damaged("a compressed record"))? {
                return Ok(None);
            }
        }
    }

    /// From the body on of the record whose head was given last.
    pub(super) fn rest(&self) -> &[u8] {
        self.unpacked.get(self.unpacked_at..).unwrap_or_default()
    }

    /// Passes over a body.
    pub(super) fn pass(&mut self, body_bytes: usize) {
        self.unpacked_at += body_bytes;
    }

    /// True when a record has begun and its end is missing.
    pub(super) fn is_amid_record(&self) -> bool {
        self.unpacked_at < self.unpacked.len()
    }

    /// Unpacks some more; false when all input is unpacked.
    fn unpack(&mut self) -> std::io::Result<bool> {
        self.unpacked.drain(..self.unpacked_at.min(self.unpacked.len()));
        self.unpacked_at = 0;
        let decoder = match &mut self.decoder {
            Some(decoder) => decoder,
            unmade => unmade.insert(Decoder::new()?),
        };
        let start = self.unpacked.len();
        self.unpacked.resize(start + CHUNK_BYTES, 0);
        let mut input = InBuffer::around(self.packed.get(self.packed_at..).unwrap_or_default());
        let mut output = OutBuffer::around_pos(&mut self.unpacked[..], start);
        let result = decoder.run(&mut input, &mut output);
        let (read, written) = (input.pos(), output.pos());
        self.packed_at += read;
        self.unpacked.truncate(written);
        result.map(|_| written > start || read > 0)
    }
}
