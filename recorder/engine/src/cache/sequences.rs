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

use crate::engine::Engine;
use crate::entries::patch;
use crate::entries::patch::Near;
use crate::machine::{Entries, Host, HostRegisters, Restarts, SequenceTask};
use crate::system;
use crate::system::File;
use crate::system::address_tables::{Map, Set};
use crate::system::mappings::Mapping;
use lineup_recording::native::note;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signature that Linux' own libraries register on this machine.
const USUAL_SIGNATURE: u32 = 0x5305_3053;
/// The most bytes of a sequence: of one in a file's data, or of a copied one.
const MOST_SEQUENCE_BYTES: u64 = 4096;
/// The most bytes of a store instruction.
const MOST_STORE_BYTES: u64 = 15;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: usize = 32;
/// Size of the memory that descriptors of copies are taken from, in bytes.
const PAGE_BYTES: usize = 4096;
/// The size of pieces in which code and data are read.
const PIECE_BYTES: usize = 1 << 20;

/// The content of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sequence {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// Address where an aborted thread continues.
    pub(crate) abort: u64,
    /// The first word: the version, which is 0, and flags.
    pub(crate) head: u64,
}

impl Sequence {
    /// From the words of a descriptor. `None` when the kernel would not take them.
    pub(crate) fn of(words: [u64; 4]) -> Option<Sequence> {
        let [head, start, bytes, abort] = words;
        let end = start.checked_add(bytes)?;
        let is_one = head as u32 == 0 && start != 0 && bytes != 0 && abort != 0;
        (is_one && !(start..end).contains(&abort)).then_some(Sequence { start, bytes, abort, head })
    }

    pub(crate) fn range(&self) -> Range<u64> {
        self.start..self.start + self.bytes
    }

    fn words(&self) -> [u64; 4] {
        [self.head, self.start, self.bytes, self.abort]
    }

    /// Address of the signature.
    fn signature_at(&self) -> u64 {
        self.abort - 4
    }
}

/// Places of stores that may begin a sequence.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Zones {
    known: Vec<Sequence>,
    /// Code of files with unknown sequences.
    unknown: Vec<Range<u64>>,
}

impl Zones {
    #[cfg(test)]
    pub(crate) fn with(known: &[Sequence]) -> Zones {
        Zones { known: known.to_vec(), unknown: Vec::new() }
    }

    /// Whether the engine looks at a store that is followed by the instruction at `next`.
    pub(crate) fn may_begin(&self, next: u64) -> bool {
        self.known.iter().any(|one| one.range().contains(&next))
            || self.unknown.iter().any(|code| code.contains(&next))
    }

    /// Whether code there may have unknown sequences.
    pub(crate) fn are_unknown_at(&self, pc: u64) -> bool {
        self.unknown.iter().any(|code| code.contains(&pc))
    }

    /// Whether a known sequence begins there.
    pub(crate) fn begin_at(&self, pc: u64) -> bool {
        self.known.iter().any(|one| one.start == pc)
    }

    /// Whether an instruction cannot be executed elsewhere, since it is part of a known sequence, or begins it.
    pub(crate) fn hold(&self, instruction: &Range<u64>) -> bool {
        self.known
            .iter()
            .any(|one| one.range().contains(&instruction.start) || one.range().contains(&instruction.end))
    }
}

/// Code of a file that was searched.
struct Looked {
    mapping: Mapping,
    /// Addresses of the signatures in it.
    signatures: Vec<u64>,
}

/// A copy of a sequence.
struct Placed {
    sequence: Sequence,
    /// Its beginning and end.
    range: Range<u64>,
    places: Vec<(u64, u64)>,
    instructions: u64,
    /// The store and the sequence, where the program may change them.
    made_from: Option<[Vec<u8>; 2]>,
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
    zones: Arc<Zones>,
    looked: Vec<Looked>,
    signatures: Vec<u32>,
    /// By where they begin.
    copies: BTreeMap<u64, Placed>,
    /// Copies by the store that begins them.
    by_store: Map<Vec<u64>>,
    /// Stores that begin sequences that are not copied.
    natively: Set,
    near: Vec<Near>,
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
    fn set_known(&mut self, known: Vec<Sequence>) {
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
    fn add_signature(&mut self, signature: u32) -> Vec<Range<u64>> {
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
    fn copy_of(&self, store: u64, sequence: &Sequence) -> Option<(u64, u64)> {
        let mut copies = self.by_store.get(&store)?.iter().filter_map(|start| self.copies.get(start));
        let is_fit = |copy: &&Placed| copy.sequence == *sequence && copy.is_current(store);
        copies.find(is_fit).map(|copy| (copy.range.start, copy.instructions))
    }

    /// Room for a descriptor where an instruction can name it as a number: the lowest 2 GB. It is never given back: the
    /// kernel may read it until the thread stores another.
    fn descriptor(&mut self) -> Option<u32> {
        if self.room.is_empty() {
            let page = system::memory_where(PAGE_BYTES, libc::MAP_32BIT)? as usize;
            crate::system::holdings::remove(page as u64);
            self.room = page..page + PAGE_BYTES;
        }
        let at = self.room.start;
        self.room.start += DESCRIPTOR_BYTES;
        u32::try_from(at).ok().filter(|at| i32::try_from(*at).is_ok())
    }

    /// Keeps a copy of the sequence that a store begins.
    fn keep(&mut self, store: u64, copy: Placed) {
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

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// The program has registered memory with this signature.
pub(crate) fn add_signature(engine: &Engine, signature: u32) {
    if signature == USUAL_SIGNATURE {
        return;
    }
    let signals = system::block_signals();
    engine.code.with(|code| {
        for range in code.sequences.add_signature(signature) {
            code.forget_blocks(engine, &range);
        }
    });
    system::restore_signals(signals);
}

impl crate::cache::blocks::Blocks {
    /// Places of stores that may begin a sequence in the code that holds an address.
    pub(crate) fn zones_at(&mut self, pc: u64) -> Arc<Zones> {
        let _ = self.bytes(pc);
        self.sequences.zones()
    }

    /// The thread is before a store that may begin a sequence.
    pub(crate) fn begin_sequence(&mut self, engine: &Engine, pc: u64, registers: &HostRegisters) -> Begun {
        let stored = Host::stored(&self.bytes_of_store(pc), pc, registers);
        let found = stored.and_then(|(value, next)| Some((descriptor_at(value)?, next)));
        let begun = found.filter(|(sequence, next)| sequence.range().contains(next));
        let Some((sequence, next)) = begun else { return Begun::Nothing };
        if let Some((at, instructions)) = self.sequences.copy_of(pc, &sequence) {
            return Begun::Copied(at, instructions);
        }
        // Other words may look like a descriptor, such as a program's arguments; these do not lead to code.
        if [sequence.start, sequence.abort].iter().any(|place| self.bytes(*place).is_none()) {
            return Begun::Nothing;
        }
        let Some((code, is_fixed)) = self.bytes(pc) else { return Begun::Nothing };
        if is_fixed {
            self.learn(engine, &sequence);
        }
        let copied = self.copy_sequence(engine, (pc, next, &code), &sequence);
        match copied {
            Some((at, instructions)) => Begun::Copied(at, instructions),
            None => {
                if self.sequences.natively.insert(pc) {
                    let text = format!(
                        "{pc:x} mov begins a restartable sequence (rseq) that runs at its own place alone: recording of \
                         its call ended there"
                    );
                    engine.shared.tell(note::INSTRUCTION, text.as_bytes());
                }
                Begun::Natively
            }
        }
    }

    /// The program's code at a store, up to the length of an instruction.
    fn bytes_of_store(&mut self, pc: u64) -> Vec<u8> {
        if self.is_fixed_code(pc) {
            return self.bytes(pc).map(|(code, _)| code).unwrap_or_default();
        }
        let mut code = vec![0; MOST_STORE_BYTES as usize];
        let read = system::read_memory(pc, &mut code);
        code.truncate(read);
        self.unpatch(pc, &mut code);
        code
    }

    /// A new sequence was found: blocks end before it from now on.
    fn learn(&mut self, engine: &Engine, sequence: &Sequence) {
        if self.sequences.zones.known.contains(sequence) {
            return;
        }
        let known = [&self.sequences.zones.known[..], &[*sequence]].concat();
        let before = self.sequences.zones();
        self.sequences.set_known(known);
        let range = sequence.start.saturating_sub(MOST_STORE_BYTES)..sequence.range().end;
        self.forget_blocks(engine, &range);
        let is_known = |code: &&Range<u64>| !self.sequences.zones.unknown.contains(code);
        let freed: Vec<Range<u64>> = before.unknown.iter().filter(is_known).cloned().collect();
        freed.iter().for_each(|range| self.forget_blocks(engine, range));
    }

    /// Makes a copy of a sequence that a store begins. Returns its address and its number of instructions.
    fn copy_sequence(
        &mut self,
        engine: &Engine,
        store: (u64, u64, &[u8]),
        sequence: &Sequence,
    ) -> Option<(u64, u64)> {
        let (code, is_fixed) = self.bytes(sequence.start)?;
        let own = code.get(..sequence.bytes as usize)?.to_vec();
        let made_from = match is_fixed {
            true => None,
            false => Some([store.2.get(..(store.1 - store.0) as usize)?.to_vec(), own]),
        };
        let mut signature = [0; 4];
        (system::read_memory(sequence.signature_at(), &mut signature) == signature.len()).then_some(())?;
        let descriptor = self.sequences.descriptor()?;
        let mut near = std::mem::take(&mut self.sequences.near);
        let jump = store.0..store.0 + Host::JUMP_BYTES;
        let at = patch::place_near(&mut near, &jump).ok().map(|place| place.next());
        let task = at.map(|at| SequenceTask {
            store: (store.2, store.0),
            sequence: *sequence,
            code: &code,
            signature: u32::from_le_bytes(signature),
            at,
            descriptor,
        });
        let copy = task.and_then(|task| {
            let copy = Host::copy_sequence(&task, &mut |pc| self.way_in(engine.slots, pc))?;
            let memory = File::open(b"/proc/self/mem\0", libc::O_RDWR)?;
            let place = patch::place_near(&mut near, &jump).ok()?;
            (copy.code.len() as u64 <= patch::MOST_BYTES).then_some(())?;
            place.put(&memory, &copy.code).map(|at| (at, copy))
        });
        self.sequences.near = near;
        let (at, copy) = copy?;
        // SAFETY: room of our own for a descriptor, which no thread uses yet.
        unsafe { (descriptor as usize as *mut [u64; 4]).write(copy.sequence.words()) };
        let placed = Placed {
            sequence: *sequence,
            range: at..at + copy.code.len() as u64,
            places: copy.places.iter().map(|(place, pc)| (at + *place as u64, *pc)).collect(),
            instructions: copy.instructions,
            made_from,
        };
        self.sequences.keep(store.0, placed);
        Some((at, copy.instructions))
    }
}

/// The descriptor at an address; `None` if the memory holds no descriptor.
fn descriptor_at(at: u64) -> Option<Sequence> {
    let mut bytes = [0; DESCRIPTOR_BYTES];
    (at != 0 && system::read_memory(at, &mut bytes) == bytes.len()).then_some(())?;
    let words: Vec<u64> = bytes.chunks_exact(8).map(word).collect();
    Sequence::of([words[0], words[1], words[2], words[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_is_what_the_kernel_takes() {
        let one = Sequence::of([0, 0x1000, 0x20, 0x2000]).unwrap();
        assert_eq!((one.range(), one.signature_at()), (0x1000..0x1020, 0x1ffc));
        assert!(Sequence::of([1 << 32, 0x1000, 0x20, 0x2000]).is_some(), "flags");
        assert_eq!(Sequence::of([1, 0x1000, 0x20, 0x2000]), None, "another version");
        assert_eq!(Sequence::of([0, 0x1000, 0x20, 0x1010]), None, "it is aborted to itself");
        assert_eq!(Sequence::of([0, 0x1000, u64::MAX, 0x2000]), None);
    }

    #[test]
    fn stores_before_and_in_a_sequence_may_begin_it() {
        let known = vec![Sequence { start: 0x1000, bytes: 0x20, abort: 0x2000, head: 0 }];
        let unknown = std::iter::once(0x8000..0x9000).collect();
        let zones = Zones { known, unknown };
        assert!(zones.may_begin(0x1000) && zones.may_begin(0x101f) && zones.may_begin(0x8800));
        assert!(!zones.may_begin(0xfff) && !zones.may_begin(0x1020) && !zones.may_begin(0x9000));
        assert!(zones.hold(&(0xff9..0x1000)) && zones.hold(&(0x101c..0x1020)));
        assert!(!zones.hold(&(0xff0..0xff9)) && !zones.hold(&(0x1020..0x1025)));
    }
}
