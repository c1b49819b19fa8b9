//! Words of a log, packed: a predictable word takes no room.
//!
//! A part is packed by itself. Its first byte gives the form: 0, and its words follow; or 1, and four sections follow,
//! each with its length:
//!
//! - heads: four bytes for each record whose superblock and part are not those that followed the same ones last time,
//!   and all words of records that are no superblock's, each behind four bytes of 0;
//! - foretold: a bit for each record, the lowest of each byte first, set where that is so;
//! - lengths: four bits for each other word, the lower ones first: how many bytes it takes;
//! - bytes: of each such word its difference from the one at its place in the last record of its superblock (0 at
//!   first), with the sign in the lowest bit.
//!
//! The state of the predictor starts afresh with each part.

use crate::native::record;
use crate::native::superblock::named;
use crate::varint::{Cursor, put, put_bytes};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Words of one part at most.
pub const MOST_PART_WORDS: usize = 1 << 18;
/// Plain words.
const PLAIN: u8 = 0;
/// Words that are packed.
const PACKED: u8 = 1;
/// Places of a table of records that were looked for last, as a power of two.
const RECENT_BITS: u32 = 12;

/// A word, in any storage.
pub trait Word {
    /// Its value.
    fn get(&self) -> u64;
}

impl Word for u64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        *self
    }
}

/// In memory that another process has, too.
impl Word for AtomicU64 {
    #[inline(always)]
    fn get(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

/// A superblock and the part with which it was left.
#[derive(Clone, Copy, Default)]
struct Site {
    head: u32,
    /// The site that followed it last.
    next: u32,
    /// The part of the log in which it was seen last.
    seen: u32,
    /// Words of its record but for the first.
    words: u32,
    /// The position of the superblock's last words.
    last: u32,
    /// The superblock's place among all.
    superblock: u32,
}

/// The position and number of a superblock's last words, and the part of the log in which it was seen last.
#[derive(Clone, Copy)]
struct Last {
    at: u32,
    words: u32,
    seen: u32,
}

/// The remembered sites.
struct Memory {
    sites: Vec<Site>,
    by_head: HashMap<u32, u32>,
    /// Heads that were looked for, and their sites.
    recent: Vec<(u32, u32)>,
    superblocks: Vec<Last>,
    by_number: HashMap<u32, u32>,
    last: Vec<u64>,
    /// The part of the log, counted from 1.
    part: u32,
    /// The last site.
    now: usize,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            sites: vec![Site::default()],
            by_head: HashMap::new(),
            recent: vec![(0, 0); 1 << RECENT_BITS],
            superblocks: Vec::new(),
            by_number: HashMap::new(),
            last: Vec::new(),
            part: 0,
            now: 0,
        }
    }
}

impl Memory {
    /// Another part of the log begins.
    fn begin(&mut self) {
        self.part += 1;
        self.now = 0;
        self.sites[0].next = 0;
    }

    /// The predicted next site; the first where none is predicted.
    #[inline]
    fn foretold(&self) -> Site {
        self.sites[self.sites[self.now].next as usize]
    }

    /// The predicted site has arrived.
    #[inline]
    fn go_on(&mut self) {
        self.now = self.sites[self.now].next as usize;
    }

    /// Another site has arrived: the site of a head.
    fn turn(&mut self, head: u32, shape: &mut impl FnMut(u32) -> Option<Vec<u8>>) -> Option<Site> {
        let place = (head.wrapping_mul(0x9e37_79b1) >> (32 - RECENT_BITS)) as usize;
        let (recent, mut site) = self.recent[place];
        if recent != head {
            site = self.find(head, shape)?;
            self.recent[place] = (head, site);
        }
        self.sites[self.now].next = site;
        self.now = site as usize;
        if self.sites[self.now].seen != self.part {
            self.see();
        }
        Some(self.sites[self.now])
    }

    fn find(&mut self, head: u32, shape: &mut impl FnMut(u32) -> Option<Vec<u8>>) -> Option<u32> {
        if let Some(site) = self.by_head.get(&head) {
            return Some(*site);
        }
        let (number, part) = named(head.into());
        let parts = shape(number)?;
        let words = u32::from(parts.get(part)?.checked_sub(1)?);
        let all = u32::from(*parts.iter().max()?);
        let superblock = *self.by_number.entry(number).or_insert(self.superblocks.len() as u32);
        if superblock as usize == self.superblocks.len() {
            self.superblocks.push(Last { at: self.last.len() as u32, words: all, seen: 0 });
            self.last.resize(self.last.len() + all as usize, 0);
        }
        let last = self.superblocks[superblock as usize].at;
        let site = u32::try_from(self.sites.len()).ok()?;
        self.sites.push(Site { head, next: 0, seen: 0, words, last, superblock });
        self.by_head.insert(head, site);
        Some(site)
    }

    /// Sees a site for the first time in this part of the log.
    fn see(&mut self) {
        let site = &mut self.sites[self.now];
        (site.seen, site.next) = (self.part, 0);
        let own = &mut self.superblocks[site.superblock as usize];
        if own.seen != self.part {
            own.seen = self.part;
            self.last[own.at as usize..(own.at + own.words) as usize].fill(0);
        }
    }

    #[inline]
    fn last_of(&mut self, site: Site) -> &mut [u64] {
        &mut self.last[site.last as usize..(site.last + site.words) as usize]
    }
}

/// The number of words of a record that is no superblock's; `None` for an unknown kind, or a cut-off record.
fn special_words(rest: &[impl Word]) -> Option<usize> {
    let words = match (rest.first()?.get() >> 32) as u32 {
        record::SYSTEM_CALL => record::SYSTEM_CALL_WORDS,
        record::LOST | record::LEAVE => record::LEAVE_WORDS,
        record::BEGIN => record::BEGIN_WORDS,
        record::RESUMED => record::RESUMED_WORDS,
        record::STACK => record::STACK_WORDS,
        record::INTERRUPTED => {
            record::INTERRUPTED_WORDS.checked_add(usize::try_from(rest.get(2)?.get()).ok()?)?
        }
        _ => return None,
    };
    (words <= rest.len()).then_some(words)
}

/// Packs parts of logs.
#[derive(Default)]
pub struct Packer {
    memory: Memory,
    words: usize,
    heads: Vec<u8>,
    foretold: Vec<u8>,
    bits: u8,
    bit: u32,
    lengths: Vec<u8>,
    length: usize,
    bytes: Vec<u8>,
    byte: usize,
}

impl Packer {
    /// A part begins.
    pub fn begin(&mut self) {
        self.memory.begin();
        (self.words, self.bits, self.bit, self.length, self.byte) = (0, 0, 0, 0, 0);
        self.heads.clear();
        self.foretold.clear();
    }

    /// Adds words of the part: whole records. `shape` gives the number of words in a superblock's records, for each of
    /// its parts. `None` when they are malformed.
    pub fn add<W: Word>(&mut self, words: &[W], mut shape: impl FnMut(u32) -> Option<Vec<u8>>) -> Option<()> {
        self.words += words.len();
        self.lengths.resize(self.length + words.len() + 1, 0);
        self.bytes.resize(self.byte + 8 * words.len() + 8, 0);
        let mut rest = words;
        while let Some(first) = rest.first() {
            let head = first.get();
            let mut site = self.memory.foretold();
            if site.head == head as u32 && site.head != 0 {
                self.memory.go_on();
                self.put_bit(1);
            } else {
                self.put_bit(0);
                self.heads.extend_from_slice(&(head as u32).to_le_bytes());
                if head as u32 == 0 {
                    let count = special_words(rest)?;
                    rest[..count].iter().for_each(|word| self.heads.extend(word.get().to_le_bytes()));
                    rest = &rest[count..];
                    continue;
                }
                site = self.memory.turn(head as u32, &mut shape)?;
            }
            if head >> 32 != 0 {
                return None;
            }
            let count = site.words as usize;
            let own = rest.get(1..1 + count)?;
            let lengths = &mut self.lengths[self.length..self.length + count];
            let bytes = &mut self.bytes[self.byte..self.byte + 8 * count + 8];
            let mut at = 0;
            for ((last, word), length) in self.memory.last_of(site).iter_mut().zip(own).zip(lengths) {
                let word = word.get();
                let difference = word.wrapping_sub(*last).cast_signed();
                *last = word;
                let turned = ((difference << 1) ^ (difference >> 63)).cast_unsigned();
                let own = (71 - turned.leading_zeros() as usize) / 8;
                *length = own as u8;
                bytes[at..at + 8].copy_from_slice(&turned.to_le_bytes());
                at += own;
            }
            self.length += count;
            self.byte += at;
            rest = &rest[1 + count..];
        }
        Some(())
    }

    #[inline]
    fn put_bit(&mut self, bit: u8) {
        self.bits |= bit << self.bit;
        self.bit += 1;
        if self.bit == 8 {
            self.foretold.push(self.bits);
            (self.bits, self.bit) = (0, 0);
        }
    }

    /// The part, packed.
    pub fn finish(&mut self) -> Vec<u8> {
        if self.bit > 0 {
            self.foretold.push(self.bits);
        }
        let mut out = vec![PACKED];
        put(&mut out, self.words as u64);
        put_bytes(&mut out, &self.heads);
        put_bytes(&mut out, &self.foretold);
        let lengths = &mut self.lengths[..self.length.next_multiple_of(2)];
        lengths[self.length..].fill(0);
        put(&mut out, lengths.len() as u64 / 2);
        out.extend(lengths.as_chunks().0.iter().map(|[low, high]| low | high << 4));
        put_bytes(&mut out, &self.bytes[..self.byte]);
        out
    }
}

/// Plain words, in the form of a part.
pub fn plain<'a, W: Word + 'a>(words: impl IntoIterator<Item = &'a W>) -> Vec<u8> {
    let words = words.into_iter().flat_map(|word| word.get().to_le_bytes());
    [PLAIN].into_iter().chain(words).collect()
}

/// Unpacks parts of logs.
#[derive(Default)]
pub(super) struct Unpacker(Memory);

impl Unpacker {
    /// The words of a part. `None` when it is malformed.
    pub(super) fn unpack(
        &mut self,
        part: &[u8],
        shape: impl FnMut(u32) -> Option<Vec<u8>>,
    ) -> Option<Vec<u64>> {
        let Some((how, bytes)) = part.split_first() else { return Some(Vec::new()) };
        match (how, bytes) {
            (&PLAIN, bytes) => {
                let (words, rest) = bytes.as_chunks();
                let are_few = rest.is_empty() && words.len() <= MOST_PART_WORDS;
                are_few.then(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect())
            }
            (&PACKED, bytes) => self.packed(bytes, shape),
            _ => None,
        }
    }

    fn packed(&mut self, bytes: &[u8], mut shape: impl FnMut(u32) -> Option<Vec<u8>>) -> Option<Vec<u64>> {
        let mut cursor = Cursor::new(bytes);
        let count = usize::try_from(cursor.int()?).ok().filter(|count| *count <= MOST_PART_WORDS)?;
        let (mut heads, foretold) = (cursor.bytes()?, cursor.bytes()?);
        let (lengths, mut bytes) = (cursor.bytes()?, cursor.bytes()?);
        let is_foretold = |number: usize| Some(foretold.get(number / 8)? >> (number % 8) & 1 != 0);
        let mut lengths = lengths.iter().flat_map(|pair| [pair & 15, pair >> 4]);
        let mut words = Vec::new();
        self.0.begin();
        for number in 0.. {
            if words.len() >= count {
                break;
            }
            let site = if is_foretold(number)? {
                let site = self.0.foretold();
                self.0.go_on();
                (site.head != 0).then_some(site)?
            } else {
                let head = u32::from_le_bytes(*heads.split_off(..4)?.first_chunk()?);
                if head == 0 {
                    let (own, _) = heads.as_chunks();
                    let own: Vec<u64> =
                        own.iter().take(MOST_SPECIAL).map(|word| u64::from_le_bytes(*word)).collect();
                    let own = &own[..special_words(&own)?];
                    (own[0] as u32 == 0).then(|| words.extend_from_slice(own))?;
                    heads.split_off(..8 * own.len())?;
                    continue;
                }
                self.0.turn(head, &mut shape)?
            };
            words.push(site.head.into());
            for last in self.0.last_of(site) {
                let length = usize::from(lengths.next()?);
                let mut turned = [0; 8];
                turned.get_mut(..length)?.copy_from_slice(bytes.split_off(..length)?);
                let turned = u64::from_le_bytes(turned);
                *last = last.wrapping_add(turned >> 1 ^ (turned & 1).wrapping_neg());
                words.push(*last);
            }
        }
        let are_used = cursor.left() == 0 && heads.is_empty() && bytes.is_empty();
        (words.len() == count && are_used).then_some(words)
    }
}

/// Words of a record that is no superblock's, at most.
const MOST_SPECIAL: usize = record::INTERRUPTED_WORDS + 255;
