//! Restartable sequences (`rseq`): code that a thread must pass without losing its processor.
//!
//! A thread stores the address of a descriptor in memory that it shares with the kernel. The kernel may take the
//! processor away, or send a signal, while the thread is in the descriptor's range. Then the thread continues at
//! another place, which starts the sequence again. The kernel knows the range by address alone. In the code cache the
//! thread is never in it, and would lose the changes that another thread has made in the meantime.
//!
//! So a block of the cache ends before a store that may begin a sequence. The engine looks at the stored value. When it
//! is the address of a descriptor, the thread continues in a copy of the sequence. The copy has no added instructions,
//! and a descriptor of its own. Every exit of the copy leads back to the cache, also the one where the kernel aborts
//! it. Its instructions are not recorded, but counted.
//!
//! The descriptors in the data of the program's files show which stores these are. A signature lies before the place
//! that a sequence is aborted to. A signature without a known descriptor means that the program makes the descriptor
//! while it runs; then the engine looks at each store in the file's code. The same holds for code that the program may
//! change. There, the engine uses a copy only while its source code is unchanged.

use super::sequence::{Sequence, Zones};
use crate::entries::near_code::Near;
use crate::machine::{Host, Restarts};
use crate::system::address_tables::{Map, Set};
use crate::system::mappings::Mapping;
use crate::system::{self, holdings};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signature that Linux' own libraries register on this machine.
pub(super) const USUAL_SIGNATURE: u32 = 0x5305_3053;
/// The most bytes of a sequence: of one in a file's data, or of a copied one.
const MOST_SEQUENCE_BYTES: u64 = 4096;
/// Bytes of a descriptor.
pub(super) const DESCRIPTOR_BYTES: usize = 32;
/// Size of the memory that descriptors of copies are taken from, in bytes.
const PAGE_BYTES: usize = 4096;
/// The size of pieces in which code and data are read.
const PIECE_BYTES: usize = 1 << 20;

/// Code of a file that was searched.
struct Looked {
    mapping: Mapping,
    /// Addresses of the signatures in it.
    signatures: Vec<u64>,
}

/// A copy of a sequence.
pub(super) struct Placed {
    pub(super) sequence: Sequence,
    /// Its beginning and end.
    pub(super) range: Range<u64>,
    pub(super) places: Vec<(u64, u64)>,
    pub(super) instructions: u64,
    /// The store and the sequence, where the program may change them.
    pub(super) made_from: Option<[Vec<u8>; 2]>,
}

impl Placed {
    /// Whether the program's code is still the code that this was made from.
    fn is_current(&self, store: u64) -> bool {
        let Some(made_from) = &self.made_from else { return true };
        made_from.iter().zip([store, self.sequence.start]).all(|(bytes, at)| {
            let mut now = vec![0; bytes.len()];
            system::read_memory(at, &mut now) == now.len() && *bytes == now
        })
    }
}

/// The effect of a store that may begin a sequence.
pub(crate) enum Begun {
    /// It begins one: the thread continues at this place, outside the cache, for at most this many instructions.
    Copied(u64, u64),
    /// It begins one that cannot be copied.
    Natively,
    /// It begins none.
    Nothing,
}

/// The sequences of a program.
#[derive(Default)]
pub(crate) struct Sequences {
    pub(super) zones: Arc<Zones>,
    looked: Vec<Looked>,
    signatures: Vec<u32>,
    /// By where they begin.
    copies: BTreeMap<u64, Placed>,
    /// Copies by the store that begins them.
    by_store: Map<Vec<u64>>,
    /// Stores that begin sequences that are not copied.
    pub(super) natively: Set,
    pub(super) near: Vec<Near>,
    /// Room for descriptors.
    room: Range<usize>,
}

/// The range of the copies. A signal handler reads it before it takes the lock.
static COPIES: [AtomicU64; 2] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];

/// Whether a place may lie in a copy of a sequence.
pub(crate) fn may_hold(pc: u64) -> bool {
    COPIES[0].load(Ordering::Acquire) <= pc && pc < COPIES[1].load(Ordering::Acquire)
}

impl Sequences {
    /// The known places of stores that may begin a sequence.
    pub(crate) fn zones(&self) -> Arc<Zones> {
        self.zones.clone()
    }

    /// Looks for sequences in code of a file that is met for the first time.
    pub(crate) fn look(&mut self, mappings: &[Mapping], mapping: &Mapping) {
        let is_known = |looked: &Looked| looked.mapping == *mapping;
        if !mapping.is_of_file || self.looked.iter().any(is_known) {
            return;
        }
        let signatures = self.signatures_in(mapping);
        let has_some = !signatures.is_empty();
        self.looked.push(Looked { mapping: mapping.clone(), signatures });
        if has_some {
            self.look_for_descriptors(mappings, &mapping.path);
        }
    }

    /// Signatures in a mapping of code.
    fn signatures_in(&self, mapping: &Mapping) -> Vec<u64> {
        // The bytes before a signature, and its end, are in the same piece.
        const OVERLAP: u64 = 16;
        let all: Vec<u32> = self.signatures.iter().copied().chain([USUAL_SIGNATURE]).collect();
        let mut found = Vec::new();
        let mut at = mapping.range.start;
        while at < mapping.range.end {
            let from = at.saturating_sub(OVERLAP).max(mapping.range.start);
            let bytes = read(from, mapping.range.end);
            for signature in &all {
                found.extend(
                    Host::signatures(&bytes, *signature).into_iter().map(|place| from + place as u64),
                );
            }
            at = from + PIECE_BYTES as u64;
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Looks for descriptors in the data of a file.
    fn look_for_descriptors(&mut self, mappings: &[Mapping], path: &str) {
        let own = |mapping: &&Mapping| mapping.is_of_file && mapping.path == path;
        let code: Vec<&Mapping> = mappings.iter().filter(own).filter(|mapping| mapping.is_code).collect();
        let is_code = |pc: u64| code.iter().any(|mapping| mapping.range.contains(&pc));
        let signatures: BTreeSet<u64> =
            self.looked.iter().flat_map(|looked| looked.signatures.iter().copied()).collect();
        let mut known = self.zones.known.clone();
        for mapping in mappings.iter().filter(own).filter(|mapping| !mapping.is_code) {
            let mut at = mapping.range.start;
            while at < mapping.range.end {
                let bytes = read(at, mapping.range.end);
                let words: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
                for words in words.windows(DESCRIPTOR_BYTES / 8) {
                    let words = [words[0], words[1], words[2], words[3]];
                    let is_fit = |one: &Sequence| {
                        one.bytes <= MOST_SEQUENCE_BYTES
                            && is_code(one.start)
                            && signatures.contains(&one.signature_at())
                    };
                    if let Some(one) = Sequence::of(words).filter(is_fit)
                        && !known.contains(&one)
                    {
                        known.push(one);
                    }
                }
                at += (PIECE_BYTES - DESCRIPTOR_BYTES) as u64;
            }
        }
        self.set_known(known);
    }

    /// From now on these are known.
    pub(super) fn set_known(&mut self, known: Vec<Sequence>) {
        let is_known = |signature: &u64| known.iter().any(|one| one.signature_at() == *signature);
        let has_unknown = |looked: &&Looked| !looked.signatures.iter().all(is_known);
        let unknown =
            self.looked.iter().filter(has_unknown).map(|looked| looked.mapping.range.clone()).collect();
        let zones = Zones { known, unknown };
        if zones != *self.zones {
            self.zones = Arc::new(zones);
        }
    }

    /// The program has registered memory with this signature: returns the code that must be searched for it.
    pub(super) fn add_signature(&mut self, signature: u32) -> Vec<Range<u64>> {
        if self.signatures.contains(&signature) {
            return Vec::new();
        }
        self.signatures.push(signature);
        std::mem::take(&mut self.looked).into_iter().map(|looked| looked.mapping.range).collect()
    }

    /// Forgets those in code that is unmapped.
    pub(crate) fn forget(&mut self, range: &Range<u64>) {
        let is_gone = |mapping: &Mapping| mapping.range.start < range.end && range.start < mapping.range.end;
        self.looked.retain(|looked| !is_gone(&looked.mapping));
        self.by_store.retain(|store, _| !range.contains(store));
        let known = self.zones.known.iter().filter(|one| !range.contains(&one.start)).copied().collect();
        self.set_known(known);
    }

    /// The program's address for a thread at a place of a copy.
    pub(crate) fn program_pc(&self, place: u64) -> Option<u64> {
        let (_, copy) = self.copies.range(..=place).next_back()?;
        let at = copy.places.iter().rev().find(|(at, _)| *at <= place)?;
        copy.range.contains(&place).then_some(at.1)
    }

    /// The copy of a sequence that a store begins, and its instructions.
    pub(super) fn copy_of(&self, store: u64, sequence: &Sequence) -> Option<(u64, u64)> {
        let mut copies = self.by_store.get(&store)?.iter().filter_map(|start| self.copies.get(start));
        let is_fit = |copy: &&Placed| copy.sequence == *sequence && copy.is_current(store);
        copies.find(is_fit).map(|copy| (copy.range.start, copy.instructions))
    }

    /// Room for a descriptor where an instruction can name it as a number: the lowest 2 GB. It is never given back: the
    /// kernel may read it until the thread stores another.
    pub(super) fn descriptor(&mut self) -> Option<u32> {
        if self.room.is_empty() {
            let page = system::memory_where(PAGE_BYTES, libc::MAP_32BIT)? as usize;
            holdings::remove(page as u64);
            self.room = page..page + PAGE_BYTES;
        }
        let at = self.room.start;
        self.room.start += DESCRIPTOR_BYTES;
        u32::try_from(at).ok().filter(|at| i32::try_from(*at).is_ok())
    }

    /// Keeps a copy of the sequence that a store begins.
    pub(super) fn keep(&mut self, store: u64, copy: Placed) {
        COPIES[0].fetch_min(copy.range.start, Ordering::AcqRel);
        COPIES[1].fetch_max(copy.range.end, Ordering::AcqRel);
        self.by_store.entry(store).or_default().push(copy.range.start);
        self.copies.insert(copy.range.start, copy);
    }
}

/// A piece of memory from an address on, as far as it can be read.
fn read(at: u64, end: u64) -> Vec<u8> {
    let mut bytes = vec![0; PIECE_BYTES.min((end - at) as usize)];
    let read = system::read_memory(at, &mut bytes);
    bytes.truncate(read);
    bytes
}

pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}
