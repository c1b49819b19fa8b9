//! The memory that is shared with the engine, see [`lineup_recording::native`], from the command's side.

use crate::error::{Doing, Result};
use crate::recorder::native::mapping::{MappedHead, Mapping};
use lineup_cache::{CacheLevel, CacheSpec, MostRecent};
use lineup_follow::images::EntryPlace;
use lineup_model::access::ProcessId;
use lineup_model::region::RegionId;
use lineup_recording::native::head::{self, CodeChange, Control, Entry, Region};
use lineup_recording::native::superblock::Superblock;
use lineup_recording::native::timed::{Arm, flushed, trial};
use lineup_recording::native::{
    CHILDREN, CHUNKS, DEFINITIONS, Definition, FILE_BYTES, HEAP, MAGIC, NOTES, RANGES, Refusal, SIEVES,
    THREAD_CALLS, WHOLE_FILE_BYTES, WRITES, child, chunk, note, region, sieve, state, thread_calls, timed,
    whole, write,
};
use lineup_recording::plan::Plan;
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::mem::offset_of;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering::{Acquire, Release};

/// The memory.
pub(super) struct Memory {
    file: File,
    head: MappedHead,
}

/// The offset of a process's request for memory; `None` when the number exceeds the table.
fn asked_at(number: u64) -> Option<u64> {
    (number < child::MOST as u64).then_some(CHILDREN.start + number * size_of::<head::Request>() as u64)
}

/// A chunk of the log.
pub(super) struct Chunk {
    pub(super) number: usize,
    /// Its place in the order of chunks.
    pub(super) order: u64,
    /// The thread that filled it.
    pub(super) thread: u64,
}

/// A sampled call that returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trial {
    /// The position of its region.
    pub region: usize,
    /// The intervention before it.
    pub arm: Arm,
    /// Its duration in cycles.
    pub cycles: u64,
}

impl Trial {
    /// Decodes the engine's words; `None` when they are not whole.
    fn read(tag: u64, cycles: u64) -> Option<Trial> {
        let arm = Arm::of_number(tag & 0xff)?;
        let region = (tag & u64::from(u32::MAX)) >> trial::REGION_AT;
        (tag >> trial::IS_WRITTEN_AT == 1).then_some(Trial { region: region as usize, arm, cycles })
    }
}

/// A change of the program's code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Change {
    /// Its address.
    pub(super) at: u64,
    /// The old bytes.
    pub(super) old: Vec<u8>,
    /// The new bytes.
    pub(super) new: Vec<u8>,
}

impl Change {
    /// True when a thread at `pc` would continue in the middle of the new code.
    pub(super) fn has_inside(&self, pc: u64) -> bool {
        self.at < pc && pc < self.at + self.new.len() as u64
    }
}

impl Memory {
    /// Makes it.
    pub(super) fn new() -> Result<Memory> {
        Memory::of_bytes(FILE_BYTES)
    }

    /// Makes it for a whole program with these caches; `has_windows` when windows of its run may be wanted.
    pub(super) fn of_whole_program(specs: &[CacheSpec], has_windows: bool) -> Result<Memory> {
        let memory = Memory::of_bytes(WHOLE_FILE_BYTES)?;
        memory.control().mode.store(whole::MODE, Release);
        memory.control().windows.store(has_windows.into(), Release);
        let control = memory.control();
        for (level, cache) in [(CacheLevel::L1d, &control.data_cache), (CacheLevel::L1i, &control.code_cache)]
        {
            let first = MostRecent::of_level(specs, level);
            cache.line_shift.store(first.line_bytes().trailing_zeros().into(), Release);
            cache.sets.store(first.sets(), Release);
            let spec = specs.iter().rfind(|spec| spec.level() == level);
            cache.ways.store(spec.map_or(0, |spec| spec.ways().into()), Release);
        }
        Ok(memory)
    }

    /// Makes it for a whole program that is logged completely.
    pub(super) fn of_logged_program() -> Result<Memory> {
        let memory = Memory::of_whole_program(&[], false)?;
        memory.control().logs_all.store(1, Release);
        Ok(memory)
    }

    fn of_bytes(bytes: u64) -> Result<Memory> {
        let memory = rustix::fs::memfd_create("lineup-engine", MemfdFlags::CLOEXEC);
        let file = File::from(memory.doing("making the engine's memory")?);
        file.set_len(bytes).doing("sizing the engine's memory")?;
        let head = MappedHead::new(&file)?;
        let memory = Memory { file, head };
        memory.control().magic.store(MAGIC, Release);
        Ok(memory)
    }

    /// Memory for another process, with the same settings.
    pub(super) fn like(other: &Memory) -> Result<Memory> {
        let is_whole = other.control().mode.load(Acquire) == whole::MODE;
        let memory = if is_whole { Memory::of_bytes(WHOLE_FILE_BYTES)? } else { Memory::new()? };
        memory.control().set_like(other.control());
        Ok(memory)
    }

    /// The process that asks for memory, by the number of its request, and the process that forked it; `None` before it
    /// has identified itself.
    pub(super) fn asking(&self, number: u64) -> Option<(u64, Option<ProcessId>)> {
        let question = self.at(asked_at(number)? + offset_of!(head::Request, process) as u64);
        let parent = (question >> child::FORKED_BY_AT) as u32;
        let process = question & ((1 << child::FORKED_BY_AT) - 1);
        (process != 0).then_some((process, parent.checked_sub(1).map(ProcessId)))
    }

    /// Gives memory to a process that has asked.
    pub(super) fn give(&self, number: u64, memory: &Memory) {
        if let Some(at) = asked_at(number) {
            let file = memory.file.as_raw_fd() as u64 + 1;
            let _ = self.file.write_all_at(&file.to_le_bytes(), at + offset_of!(head::Request, file) as u64);
        }
    }

    /// The path by which the engine opens it while this process lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    fn at(&self, at: u64) -> u64 {
        let mut bytes = [0; 8];
        // The file has its whole length, so reading memory does not fail.
        let _ = self.file.read_exact_at(&mut bytes, at);
        u64::from_le_bytes(bytes)
    }

    /// Settings, progress and sums.
    pub(super) fn control(&self) -> &Control {
        &self.head.control
    }

    /// A region.
    pub(super) fn region(&self, number: usize) -> &Region {
        &self.head.regions[number]
    }

    /// An entry.
    fn entry(&self, number: usize) -> &Entry {
        &self.head.entries[number]
    }

    /// Asks for an entry, or for a part of a function.
    pub(super) fn set_entry(&self, number: usize, place: &EntryPlace, is_part: bool) {
        let part = if is_part { timed::PART } else { 0 };
        let entry = self.entry(number);
        entry.answer.store(0, Release);
        entry.address.store(place.pc, Release);
        entry.region.store(u64::from(place.region) | part, Release);
        entry.size.store(place.size_bytes, Release);
        entry.room.store(place.room_bytes, Release);
        entry.chooser.store(if place.is_chooser { place.pc } else { 0 }, Release);
    }

    /// The address of the function that chooses an entry's target; 0 where there is none.
    pub(super) fn chooser_of(&self, number: usize) -> u64 {
        self.entry(number).chooser.load(Acquire)
    }

    /// True when an entry was chosen, and its code is still to be looked for.
    pub(super) fn is_just_chosen(&self, number: usize) -> bool {
        let chooser = self.chooser_of(number);
        let is_chosen = chooser != 0 && ![0, chooser].contains(&self.address_of(number));
        is_chosen && self.entry(number).room.load(Acquire) == 0
    }

    /// Sends the engine the size of a chosen function.
    pub(super) fn set_chosen(&self, number: usize, place: &EntryPlace) {
        self.entry(number).size.store(place.size_bytes, Release);
        self.entry(number).room.store(place.room_bytes, Release);
    }

    /// An entry's address; 0 when its file was unmapped.
    pub(super) fn address_of(&self, number: usize) -> u64 {
        self.entry(number).address.load(Acquire)
    }

    /// The region of an entry.
    pub(super) fn region_of(&self, number: usize) -> u64 {
        self.entry(number).region.load(Acquire)
    }

    /// Calls of a region that each thread made which made any, where they are counted.
    pub(super) fn thread_calls(&self, region: usize) -> Vec<u64> {
        let threads = self.control().next_thread.load(Acquire).min(thread_calls::MOST as u64);
        let calls = |thread| self.at(THREAD_CALLS + 8 * (thread * region::MOST as u64 + region as u64));
        (0..threads).map(calls).filter(|calls| *calls > 0).collect()
    }

    /// The engine's answer to an entry.
    pub(super) fn answer(&self, number: usize) -> u64 {
        self.entry(number).answer.load(Acquire)
    }

    /// Writes words of the tables by which the engine sees allocations.
    pub(super) fn set_heap(&self, first: usize, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let _ = self.file.write_all_at(&bytes, HEAP + 8 * first as u64);
    }

    /// Chunks that can be read, in their order; at the end those as well that threads were filling.
    pub(super) fn chunks(&self, is_over: bool) -> Vec<Chunk> {
        let is_readable = |state| state == chunk::IS_FULL || (is_over && state == chunk::IS_OWNED);
        let chunk = |(number, chunk): (usize, &head::Chunk)| {
            let read =
                || Chunk { number, order: chunk.order.load(Acquire), thread: chunk.thread.load(Acquire) };
            is_readable(chunk.state.load(Acquire)).then(read)
        };
        let mut chunks: Vec<Chunk> = self.head.chunks.iter().enumerate().filter_map(chunk).collect();
        chunks.sort_by_key(|chunk| chunk.order);
        chunks
    }

    /// The words of a chunk, which is free after that.
    pub(super) fn take(&self, chunk: &Chunk) -> Vec<u64> {
        let mut words = Vec::new();
        self.take_into(chunk, &mut words);
        words
    }

    /// As [`Memory::take`], in memory that is there.
    pub(super) fn take_into(&self, chunk: &Chunk, words: &mut Vec<u64>) {
        let length = self.length(chunk);
        let mut bytes = vec![0; length as usize];
        let _ = self.file.read_exact_at(&mut bytes, CHUNKS + chunk.number as u64 * chunk::BYTES);
        self.give_back(chunk);
        words.clear();
        words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
    }

    /// A chunk's content, as words of [`Memory::mapped_chunks`].
    pub(super) fn place(&self, chunk: &Chunk) -> Range<usize> {
        let start = chunk.number * (chunk::BYTES / 8) as usize;
        start..start + (self.length(chunk) / 8) as usize
    }

    /// Bytes of whole records in a chunk.
    fn length(&self, chunk: &Chunk) -> u64 {
        self.head.chunks[chunk.number].length.load(Acquire).min(chunk::BYTES)
    }

    /// A chunk was read, and is free.
    pub(super) fn give_back(&self, chunk: &Chunk) {
        self.head.chunks[chunk.number].state.store(0, Release);
        self.control().given_back.store(self.control().given_back.load(Acquire).wrapping_add(1), Release);
    }

    /// All chunks.
    pub(super) fn mapped_chunks(&self) -> Result<Mapping> {
        Mapping::new(&self.file, &(CHUNKS..CHUNKS + chunk::COUNT as u64 * chunk::BYTES))
    }

    /// The definitions of blocks.
    pub(super) fn mapped_definitions(&self) -> Result<Mapping> {
        Mapping::new(&self.file, &DEFINITIONS)
    }

    /// The number of executions of each of a whole program's first `blocks` blocks, by all threads.
    pub(super) fn counts(&self, blocks: u32) -> Vec<u64> {
        let mut sums = vec![0_u64; blocks as usize];
        let mut bytes = vec![0; 8 * sums.len()];
        let sieves = (self.control().sieves.load(Acquire) as usize).min(sieve::COUNT);
        for number in 0..sieves as u64 {
            let at = SIEVES + number * sieve::BYTES + sieve::COUNTS as u64;
            let _ = self.file.read_exact_at(&mut bytes, at);
            let counts = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
            sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        sums
    }

    /// The words of a region in a table of times.
    pub(super) fn times(&self, number: usize, region: usize) -> Vec<u64> {
        let mut bytes = vec![0; 8 * timed::WORDS];
        let at = CHUNKS + number as u64 * chunk::BYTES + 8 * (region * timed::WORDS) as u64;
        let _ = self.file.read_exact_at(&mut bytes, at);
        bytes.chunks_exact(8).filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))).collect()
    }

    /// Sends the engine the lines of code that are flushed before sampled calls of a region.
    pub(super) fn set_flushed(&self, region: u16, lines: &[u64]) {
        let lines = &lines[..lines.len().min(flushed::MOST)];
        let words = [lines.len() as u64].into_iter().chain(lines.iter().copied());
        let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
        let _ =
            self.file.write_all_at(&bytes, flushed::PLACE + 8 * u64::from(region) * flushed::WORDS as u64);
    }

    /// Sampled calls that have ended.
    pub(super) fn trials(&self) -> Vec<Trial> {
        let count = (self.control().trials.load(Acquire) as usize).min(trial::MOST);
        let mut bytes = vec![0; 8 * trial::WORDS * count];
        let _ = self.file.read_exact_at(&mut bytes, trial::PLACE);
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        // The last may have been cut off.
        words
            .chunks_exact(trial::WORDS)
            .filter_map(|one| Trial::read(one[trial::TAG], one[trial::CYCLES]))
            .collect()
    }

    /// The changes of the program's code that the engine wants, or has made.
    pub(super) fn changes(&self) -> Vec<Change> {
        let count = (self.control().writes.load(Acquire) as usize).min(write::MOST);
        let change = |number: usize| {
            let at = WRITES + (number * size_of::<CodeChange>()) as u64;
            let word = |offset: usize| self.at(at + offset as u64);
            let length = (word(offset_of!(CodeChange, length)) as usize).min(8);
            let bytes = |offset| word(offset).to_le_bytes()[..length].to_vec();
            Change {
                at: word(offset_of!(CodeChange, address)),
                old: bytes(offset_of!(CodeChange, old)),
                new: bytes(offset_of!(CodeChange, new)),
            }
        };
        (0..count).map(change).collect()
    }

    /// The memory that the engine holds, once it has listed it.
    pub(super) fn ranges(&self) -> Vec<Range<u64>> {
        let count = self.control().ranges.load(Acquire).min((RANGES.end - RANGES.start) / 16);
        let range = |number: u64| {
            let (start, bytes) =
                (self.at(RANGES.start + 16 * number), self.at(RANGES.start + 16 * number + 8));
            start..start.saturating_add(bytes)
        };
        (0..count).map(range).collect()
    }

    /// A block's definition.
    pub(super) fn definition(&self, number: u32) -> Option<Definition> {
        // More than any has.
        const WORDS: u64 = 512;
        let words = (DEFINITIONS.end - DEFINITIONS.start) / 8;
        let here = words.checked_sub(u64::from(number))?.min(WORDS);
        let mut bytes = vec![0; 8 * here as usize];
        self.file.read_exact_at(&mut bytes, DEFINITIONS.start + 8 * u64::from(number)).ok()?;
        let words = bytes.as_chunks().0;
        Definition::read(|word| words.get(word).map(|word| u64::from_le_bytes(*word)))
    }

    /// The definitions of superblocks from a word on: their numbers, and their words. `next` advances past them.
    pub(super) fn superblocks(&self, next: &mut u32) -> Vec<(u32, Vec<u64>)> {
        let end = self.control().definitions.load(Acquire).min((DEFINITIONS.end - DEFINITIONS.start) / 8 - 1)
            as u32;
        let mut bytes = vec![0; 8 * (end + 1).saturating_sub(*next) as usize];
        let _ = self.file.read_exact_at(&mut bytes, DEFINITIONS.start + 8 * u64::from(*next));
        let words: Vec<u64> = bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let mut rest = words.as_slice();
        let mut all = Vec::new();
        // A superblock that is still being written does not count yet.
        while let Some((_, count)) = Superblock::read(|number| rest.get(number).copied()) {
            let (own, others) = rest.split_at(count);
            all.push((*next, own.to_vec()));
            *next += count as u32;
            rest = others;
        }
        all
    }

    /// The engine's notes for the user.
    pub(super) fn notes(&self) -> Vec<String> {
        let told = self.told().into_iter().filter(|(kind, _)| *kind == note::TEXT).map(|(_, text)| text);
        told.chain(self.note_of_sequences()).collect()
    }

    /// A note with the number of restartable sequences that were executed and not recorded.
    pub(super) fn note_of_sequences(&self) -> Option<String> {
        let length = self.control().sequence_instructions.load(Acquire);
        match self.control().sequences.load(Acquire) {
            0 => None,
            1 => Some(format!(
                "1 restartable sequence (rseq) was executed and not recorded: {length} instructions from begin to end"
            )),
            many => Some(format!(
                "{many} restartable sequences (rseq) were executed and not recorded: {length} instructions, each sequence from begin to end once"
            )),
        }
    }

    /// The engine's notes, with their kinds: see [`note`].
    pub(super) fn told(&self) -> Vec<(u64, String)> {
        let end = (NOTES.start + 8 * self.control().notes.load(Acquire)).min(NOTES.end);
        let mut notes = Vec::new();
        let mut at = NOTES.start;
        while at < end {
            let (kind, length) = (self.at(at) >> 32, self.at(at) & 0xffff_ffff);
            let length = length.min(end - at);
            let mut text = vec![0; length as usize];
            let _ = self.file.read_exact_at(&mut text, at + 8);
            notes.push((kind, String::from_utf8_lossy(&text).into_owned()));
            at += 8 * (1 + length.div_ceil(8));
        }
        notes
    }
}

/// The reason why a region cannot be recorded, in words; `None` before the engine has answered, and when all can.
pub(super) fn refused(memory: &Memory, plan: &Plan) -> Option<String> {
    match memory.control().state.load(Acquire) {
        state::RUNS | state::REFUSED => {}
        state::GAVE_UP => return Some(memory.notes().join("; ")),
        _ => return None,
    }
    let entries = memory.control().entries.load(Acquire) as usize;
    let own = |id: RegionId| (0..entries).filter(move |number| memory.region_of(*number) == u64::from(id.0));
    let watched = plan.header.regions.iter().find_map(|(id, region)| {
        let why = own(id).map(|number| memory.answer(number)).find_map(Refusal::of)?;
        Some(format!("the native engine cannot watch {}: {why}", region.name))
    });
    let is_refused = memory.control().state.load(Acquire) == state::REFUSED;
    watched.or_else(|| {
        let missing = |(id, _): &(RegionId, _)| is_refused && own(*id).next().is_none();
        let (_, region) = plan.header.regions.iter().find(missing)?;
        Some(format!("neither the program nor a library that it has mapped has a function {}", region.name))
    })
}
