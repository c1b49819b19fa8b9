//! Blocks: how records are framed, compressed and checked.

use crate::error::RecordingError;
use std::cell::RefCell;
use std::io::Read;
use zstd::bulk::Compressor;

/// First bytes of every recording.
pub const MAGIC: &[u8; 8] = b"LINEUPRC";

/// The version this crate writes.
pub const VERSION: u32 = 11;

/// The oldest version that it reads. In version 9 no call has arguments; up to version 10, nothing is
/// known of pages.
pub const OLDEST_VERSION: u32 = 9;

/// The most bytes a block may expand to. A call that needs more must be truncated by its recorder.
pub const MAX_BLOCK_BYTES: usize = 16 << 20;

/// Bytes before a block's stored bytes: expanded length, stored length, checksum.
pub(crate) const FRAME_BYTES: usize = 12;

/// zstd's level: the lowest of the ordinary ones shrinks access streams fifteen-fold at memory speed.
const LEVEL: i32 = 1;
/// The compression level of logs: they are many times as long, and the program waits for their compression.
const LOG_LEVEL: i32 = -7;

/// In the expanded length: the block holds records of a log only.
const IS_LOG: u32 = 1 << 31;

thread_local! {
    /// The compressor of logs: creating one takes as long as compressing some of their blocks.
    static LOG_PACKER: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses records of a log.
fn compressed_log(records: &[u8]) -> std::io::Result<Vec<u8>> {
    LOG_PACKER.with_borrow_mut(|kept| {
        let mut packer = kept.take().map_or_else(|| Compressor::new(LOG_LEVEL), Ok)?;
        let stored = packer.compress(records);
        *kept = Some(packer);
        stored
    })
}

/// Frames `records`, which may be of a log alone.
pub(crate) fn seal(records: &[u8], is_log: bool) -> Result<Vec<u8>, RecordingError> {
    let expanded = u32::try_from(records.len()).ok().filter(|_| records.len() <= MAX_BLOCK_BYTES);
    let Some(expanded) = expanded else {
        return Err(RecordingError::TooLarge { bytes: records.len(), limit: MAX_BLOCK_BYTES });
    };
    let stored = if is_log { compressed_log(records)? } else { zstd::bulk::compress(records, LEVEL)? };
    let mut out = Vec::with_capacity(FRAME_BYTES + stored.len());
    let flag = if is_log { IS_LOG } else { 0 };
    out.extend_from_slice(&(expanded | flag).to_le_bytes());
    out.extend_from_slice(&(stored.len() as u32).to_le_bytes());
    out.extend_from_slice(&crc32fast::hash(&stored).to_le_bytes());
    out.extend_from_slice(&stored);
    Ok(out)
}

/// Passes over this many bytes; false when the input ends before.
pub(crate) type Skip<R> = fn(&mut R, u64) -> std::io::Result<bool>;

/// The result of reading a block.
pub(crate) enum Unsealed {
    /// Its records, none when they are of a log and that is passed over, and how many bytes of the file it took.
    Block(Vec<u8>, u64),
    /// The file ended where a block would have begun.
    End,
    /// It cannot be read.
    Damaged(String),
}

/// Reads one block. Errors are those of `input` alone; a damaged block is a value. Parts of a log may be
/// passed over: how, is given. In a file that cannot have a log, a block that claims to be part of one is damaged: passed
/// over it would be lost without a word.
pub(crate) fn unseal<R: Read>(
    input: &mut R,
    skip: Option<Skip<R>>,
    may_have_log: bool,
) -> std::io::Result<Unsealed> {
    let mut frame = [0u8; FRAME_BYTES];
    match fill(input, &mut frame)? {
        0 => return Ok(Unsealed::End),
        FRAME_BYTES => {}
        _ => return Ok(Unsealed::Damaged("the file ends inside the head of a block".into())),
    }
    let word = |at: usize| u32::from_le_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
    let (expanded, is_log) = ((word(0) & !IS_LOG) as usize, word(0) & IS_LOG != 0);
    let (stored_bytes, checksum) = (word(4) as usize, word(8));
    if expanded > MAX_BLOCK_BYTES || stored_bytes > zstd::zstd_safe::compress_bound(MAX_BLOCK_BYTES) {
        return Ok(Unsealed::Damaged("a block claims an impossible length".into()));
    }
    if is_log && !may_have_log {
        return Ok(Unsealed::Damaged(
            "a block claims to be part of a log, and the recording has none".into(),
        ));
    }
    const ENDS: &str = "the file ends inside a block";
    if let Some(skip) = skip.filter(|_| is_log) {
        let is_there = skip(input, stored_bytes as u64)?;
        let passed = Unsealed::Block(Vec::new(), (FRAME_BYTES + stored_bytes) as u64);
        return Ok(if is_there { passed } else { Unsealed::Damaged(ENDS.into()) });
    }
    let mut stored = Vec::new();
    input.take(stored_bytes as u64).read_to_end(&mut stored)?;
    if stored.len() != stored_bytes {
        return Ok(Unsealed::Damaged(ENDS.into()));
    }
    if crc32fast::hash(&stored) != checksum {
        return Ok(Unsealed::Damaged("a block's checksum does not match".into()));
    }
    match zstd::bulk::decompress(&stored, expanded) {
        Ok(records) if records.len() == expanded => {
            Ok(Unsealed::Block(records, (FRAME_BYTES + stored_bytes) as u64))
        }
        _ => Ok(Unsealed::Damaged("a block does not expand to its stated length".into())),
    }
}

/// Reads until `buffer` is full or the input ends; returns how much was read.
pub(crate) fn fill(input: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
