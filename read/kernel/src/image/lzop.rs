//! The frame of the program lzop, in which LZO kernels are packed.

/// The first bytes of an lzop file.
pub(super) const MAGIC: [u8; 9] = [0x89, b'L', b'Z', b'O', 0, 0x0d, 0x0a, 0x1a, 0x0a];

/// Bits of the flags: a checksum of each unpacked or packed block follows its lengths.
const ADLER_UNPACKED: u32 = 1;
const ADLER_PACKED: u32 = 1 << 1;
const CRC_UNPACKED: u32 = 1 << 8;
const CRC_PACKED: u32 = 1 << 9;
/// A filter's number follows the flags.
const FILTER: u32 = 1 << 11;

/// lzop's largest block.
const MAX_BLOCK_BYTES: usize = 64 << 20;

/// A reader of big-endian fields.
struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or("it is cut off")?;
        self.rest = rest;
        Ok(taken)
    }

    fn number(&mut self, bytes: usize) -> Result<u32, String> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }
}

pub(super) fn unpack(bytes: &[u8], max_bytes: u64) -> Result<Vec<u8>, String> {
    let mut fields = Fields { rest: bytes };
    let flags = header(&mut fields)?;
    let mut unpacked = Vec::new();
    loop {
        let length = fields.number(4)? as usize;
        if length == 0 {
            return Ok(unpacked);
        }
        let packed_length = fields.number(4)? as usize;
        if length > MAX_BLOCK_BYTES || packed_length > length || (unpacked.len() + length) as u64 > max_bytes
        {
            return Err(format!("a block of {length} bytes"));
        }
        for checksum in [ADLER_UNPACKED, CRC_UNPACKED] {
            fields.take(if flags & checksum != 0 { 4 } else { 0 })?;
        }
        if packed_length < length {
            for checksum in [ADLER_PACKED, CRC_PACKED] {
                fields.take(if flags & checksum != 0 { 4 } else { 0 })?;
            }
        }
        block(fields.take(packed_length)?, length, &mut unpacked)?;
    }
}

/// Reads over the header; the flags.
fn header(fields: &mut Fields<'_>) -> Result<u32, String> {
    fields.take(MAGIC.len())?;
    let version = fields.number(2)?;
    // Version of the library, version needed, method, level.
    fields.take(if version >= 0x940 { 6 } else { 3 })?;
    let flags = fields.number(4)?;
    if flags & FILTER != 0 {
        fields.take(4)?;
    }
    // Mode and the time; its upper half came later.
    fields.take(if version >= 0x940 { 12 } else { 8 })?;
    let name = fields.number(1)? as usize;
    fields.take(name + 4)?;
    Ok(flags)
}

fn block(packed: &[u8], length: usize, unpacked: &mut Vec<u8>) -> Result<(), String> {
    if packed.len() == length {
        unpacked.extend_from_slice(packed);
        return Ok(());
    }
    let start = unpacked.len();
    unpacked.resize(start + length, 0);
    match lzokay::decompress::decompress(packed, &mut unpacked[start..]) {
        Ok(written) if written == length => Ok(()),
        Ok(written) => Err(format!("a block of {written} bytes where {length} were announced")),
        Err(error) => Err(format!("{error:?}")),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::MAGIC;

    /// As lzop writes it: version 1.04, one checksum per block.
    pub(in crate::image) fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut packed = MAGIC.to_vec();
        packed.extend([0x10, 0x40, 0x20, 0xa0, 0x09, 0x40, 1, 5]);
        packed.extend(super::ADLER_UNPACKED.to_be_bytes());
        packed.extend([0; 12]);
        packed.extend([0; 5]);
        for block in bytes.chunks(256 << 10) {
            let smaller = lzokay::compress::compress(block).unwrap();
            packed.extend((block.len() as u32).to_be_bytes());
            packed.extend((smaller.len() as u32).to_be_bytes());
            packed.extend([0; 4]);
            packed.extend(smaller);
        }
        packed.extend([0; 4]);
        packed
    }
}
