//! Threads that begin a restartable sequence: they continue in a copy of it.

use super::blocks::Blocks;
use super::sequence::{Sequence, Zones};
use super::sequences::{Begun, DESCRIPTOR_BYTES, Placed, USUAL_SIGNATURE, word};
use crate::engine::Engine;
use crate::entries::near_code;
use crate::machine::{Entries, Host, HostRegisters, Restarts, SequenceTask};
use crate::system::{self, File};
use lineup_recording::native::note;
use std::ops::Range;
use std::sync::Arc;

/// The most bytes of a store instruction.
const MOST_STORE_BYTES: u64 = 15;

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

impl Blocks {
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
        let at = near_code::place_near(&mut near, &jump).ok().map(|place| place.next());
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
            let place = near_code::place_near(&mut near, &jump).ok()?;
            (copy.code.len() as u64 <= near_code::MOST_BYTES).then_some(())?;
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
