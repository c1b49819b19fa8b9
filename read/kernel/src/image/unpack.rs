//! The compressions that kernels come in.

use super::lzop;
use crate::compression::Compression;
use crate::error::Error;
use crate::scan::u32_at;
use std::io::Read;

/// No kernel is larger: a file that unpacks to more is no kernel.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;
/// A small file may unpack to this, plus the next constant's number of bytes per byte of the file. Kernels are packed
/// to a third or a tenth of their length; Deflate's greatest ratio is 1032.
const FREE_BYTES: u64 = 32 << 20;
const MOST_RATIO: u64 = 64;

/// The bytes that may still be unpacked from one file, through all its layers and everything in it that begins like a
/// compressed kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    allowed_bytes: u64,
    left_bytes: u64,
}

impl Budget {
    /// For a file of this length.
    pub(super) fn of_file(file_bytes: usize) -> Budget {
        let justified = FREE_BYTES.saturating_add((file_bytes as u64).saturating_mul(MOST_RATIO));
        let allowed_bytes = justified.min(MAX_UNPACKED_BYTES);
        Budget { allowed_bytes, left_bytes: allowed_bytes }
    }

    fn take(&mut self, bytes: usize) -> Result<(), String> {
        match self.left_bytes.checked_sub(bytes as u64) {
            Some(left) => {
                self.left_bytes = left;
                Ok(())
            }
            None => {
                self.left_bytes = 0;
                Err(self.too_large())
            }
        }
    }

    fn too_large(&self) -> String {
        format!(
            "it unpacks to more than {} MiB, which no kernel of its length does",
            self.allowed_bytes >> 20
        )
    }
}

/// The largest window that `zstd -22`, which kernels are packed with, asks for: 128 MiB.
const ZSTD_WINDOW_LOG: u32 = 27;

/// The start of a legacy LZ4 stream, and the size of its blocks.
const LZ4_LEGACY: u32 = 0x184c_2102;
const LZ4_BLOCK_BYTES: usize = 8 << 20;

/// The memory that an LZMA stream may ask for: 128 MiB, more than any preset needs to unpack.
const LZMA_MEMORY_KIB: u32 = 128 << 10;

impl Compression {
    /// Each with the bytes that it begins with.
    pub(crate) const MAGICS: [(Compression, &'static [u8]); 7] = [
        (Compression::Gzip, &[0x1f, 0x8b, 0x08]),
        (Compression::Xz, &[0xfd, b'7', b'z', b'X', b'Z', 0]),
        (Compression::Bzip2, b"BZh"),
        (Compression::Lz4, &LZ4_LEGACY.to_le_bytes()),
        (Compression::Lzo, &lzop::MAGIC),
        (Compression::Zstd, &[0x28, 0xb5, 0x2f, 0xfd]),
        (Compression::Lzma, &[0x5d, 0, 0]),
    ];

    /// The compression that bytes begin like.
    pub fn of(bytes: &[u8]) -> Option<Compression> {
        Self::MAGICS.iter().find(|(_, magic)| bytes.starts_with(magic)).map(|(compression, _)| *compression)
    }

    /// Unpacks a stream. Bytes after its end are ignored, since images append sizes and code.
    ///
    /// # Errors
    ///
    /// When the stream is damaged, cut off, or unpacks to more than any kernel of its length has.
    pub fn unpack(self, bytes: &[u8]) -> Result<Vec<u8>, Error> {
        self.unpack_within(bytes, &mut Budget::of_file(bytes.len()))
    }

    /// Unpacks a stream of a file that has this budget left.
    pub(super) fn unpack_within(self, bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, Error> {
        let unpacked = match self {
            Compression::Gzip => read(flate2::bufread::GzDecoder::new(bytes), budget),
            Compression::Xz => {
                read(lzma_rust2::XzReader::new_mem_limit(bytes, false, LZMA_MEMORY_KIB), budget)
            }
            Compression::Lzma => lzma_rust2::LzmaReader::new_mem_limit(bytes, LZMA_MEMORY_KIB, None)
                .map_err(|error| error.to_string())
                .and_then(|reader| read(reader, budget)),
            Compression::Bzip2 => read(bzip2::bufread::BzDecoder::new(bytes), budget),
            Compression::Lz4 => lz4_legacy(bytes, budget),
            Compression::Lzo => lzop::unpack(bytes, budget.left_bytes)
                .and_then(|unpacked| budget.take(unpacked.len()).map(|()| unpacked)),
            Compression::Zstd => zstd(bytes, budget),
        };
        unpacked.map_err(|why| Error::Payload { compression: self, why })
    }
}

fn read(reader: impl Read, budget: &mut Budget) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let read = reader.take(budget.left_bytes + 1).read_to_end(&mut unpacked);
    // Bytes before a failure were unpacked too.
    budget.take(unpacked.len())?;
    read.map(|_| unpacked).map_err(|error| error.to_string())
}

fn zstd(bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, String> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|error| error.to_string())?;
    decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(|error| error.to_string())?;
    read(decoder.single_frame(), budget)
}

/// Blocks of 8 MiB, the last one shorter, each behind its packed length. Data that an image appends looks like one more
/// length.
fn lz4_legacy(bytes: &[u8], budget: &mut Budget) -> Result<Vec<u8>, String> {
    let mut unpacked = Vec::new();
    let mut block = vec![0; LZ4_BLOCK_BYTES];
    let mut at = 4;
    loop {
        let packed_bytes = u32_at(bytes, at).map(|length| length as usize);
        at += 4;
        match packed_bytes {
            Some(length) if length as u32 == LZ4_LEGACY => continue,
            Some(length) if length <= lz4_flex::block::get_maximum_output_size(LZ4_BLOCK_BYTES) => {
                let packed = bytes.get(at..at + length).ok_or("it is cut off")?;
                let length = lz4_flex::block::decompress_into(packed, &mut block)
                    .map_err(|error| error.to_string())?;
                budget.take(length)?;
                unpacked.extend_from_slice(&block[..length]);
                at += packed.len();
                if length < LZ4_BLOCK_BYTES {
                    return Ok(unpacked);
                }
            }
            _ if unpacked.is_empty() => return Err("it is cut off".into()),
            _ => return Ok(unpacked),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::Write;

    /// Packs with every compression, as a kernel's build does.
    pub(crate) fn pack(compression: Compression, bytes: &[u8]) -> Vec<u8> {
        match compression {
            Compression::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Xz => {
                let mut options = lzma_rust2::XzOptions::with_preset(1);
                options.prepend_pre_filter(lzma_rust2::FilterType::BcjX86, 0);
                let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap()
            }
            Compression::Lzma => {
                let options = lzma_rust2::LzmaOptions::with_preset(1);
                let mut writer = lzma_rust2::LzmaWriter::new_use_header(Vec::new(), &options, None).unwrap();
                writer.write_all(bytes).unwrap();
                writer.finish().unwrap()
            }
            Compression::Bzip2 => {
                let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            }
            Compression::Lz4 => {
                let mut packed = LZ4_LEGACY.to_le_bytes().to_vec();
                for block in bytes.chunks(LZ4_BLOCK_BYTES) {
                    let block = lz4_flex::block::compress(block);
                    packed.extend_from_slice(&(block.len() as u32).to_le_bytes());
                    packed.extend(block);
                }
                packed
            }
            Compression::Lzo => lzop::tests::pack(bytes),
            Compression::Zstd => zstd::stream::encode_all(bytes, 1).unwrap(),
        }
    }

    /// Text that repeats, but not at once.
    pub(crate) fn sample(length: usize) -> Vec<u8> {
        (0..length).map(|n| (n / 7 % 251) as u8 ^ (n % 13) as u8).collect()
    }

    #[test]
    fn every_compression_is_recognised_and_unpacked_with_a_size_appended() {
        let sample = sample(300_000);
        for (compression, _) in Compression::MAGICS {
            let mut packed = pack(compression, &sample);
            packed.extend_from_slice(&(sample.len() as u32).to_le_bytes());
            assert_eq!(Compression::of(&packed), Some(compression));
            assert!(compression.unpack(&packed).unwrap() == sample, "{compression}");
        }
    }

    #[test]
    fn lz4_blocks_are_joined() {
        let sample = sample(LZ4_BLOCK_BYTES + 5);
        assert!(Compression::Lz4.unpack(&pack(Compression::Lz4, &sample)).unwrap() == sample);
    }

    /// Zeros are packed to a thousandth or less: no kernel is.
    #[test]
    fn a_small_stream_may_not_unpack_to_much() {
        let zeros = vec![0; 64 << 20];
        for compression in [Compression::Gzip, Compression::Bzip2, Compression::Zstd] {
            let packed = pack(compression, &zeros);
            let error = compression.unpack(&packed).unwrap_err();
            assert!(error.to_string().contains("which no kernel of its length does"), "{error}");
        }
    }

    /// A stream that a file holds twice is unpacked twice, from one budget.
    #[test]
    fn streams_of_one_file_share_its_budget() {
        let packed = pack(Compression::Zstd, &vec![0; 20 << 20]);
        let mut budget = Budget::of_file(packed.len());
        assert!(Compression::Zstd.unpack_within(&packed, &mut budget).is_ok());
        assert!(Compression::Zstd.unpack_within(&packed, &mut budget).is_err());
    }

    #[test]
    fn what_is_cut_off_is_an_error() {
        let sample = sample(300_000);
        for (compression, _) in Compression::MAGICS {
            let packed = pack(compression, &sample);
            let error = compression.unpack(&packed[..packed.len() / 2]).unwrap_err();
            assert!(error.to_string().contains(&compression.to_string()), "{error}");
        }
    }
}
