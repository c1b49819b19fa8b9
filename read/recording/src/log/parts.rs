//! The records of a log: superblocks and parts, to and from bytes.

use crate::native::superblock::Superblock;
use crate::varint::{Cursor, put, put_bytes};

/// The description of a superblock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogBlock {
    /// Its number in the parts.
    pub number: u32,
    /// The superblock.
    pub superblock: Superblock,
}

/// A stretch of execution of one thread.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogPart {
    /// The thread: they are counted from 0 in the order in which they began.
    pub thread: u64,
    /// Words of the log, packed.
    pub packed: Vec<u8>,
}

impl LogPart {
    /// The last one of all, when everything was written.
    pub const END: LogPart = LogPart { thread: 0, packed: Vec::new() };
}

/// Packs the description of a superblock.
pub(crate) fn put_block(out: &mut Vec<u8>, number: u32, words: &[u64]) {
    put(out, number.into());
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    put_bytes(out, &bytes);
}

/// Packs a part.
pub(crate) fn put_part(out: &mut Vec<u8>, thread: u64, packed: &[u8]) {
    put(out, thread);
    put_bytes(out, packed);
}

pub(crate) fn block(cursor: &mut Cursor<'_>) -> Option<LogBlock> {
    let number = u32::try_from(cursor.int()?).ok()?;
    let (words, rest) = cursor.bytes()?.as_chunks();
    let word = |number: usize| words.get(number).map(|word| u64::from_le_bytes(*word));
    let (superblock, count) = Superblock::read(word)?;
    (rest.is_empty() && count == words.len()).then_some(LogBlock { number, superblock })
}

pub(crate) fn part(cursor: &mut Cursor<'_>) -> Option<LogPart> {
    let thread = cursor.int()?;
    Some(LogPart { thread, packed: cursor.bytes()?.to_vec() })
}
