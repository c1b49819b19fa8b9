//! The engine's side of the memory that it shares with the command, see [`lineup_recording::native`].

use super::frame_rules::rule_at;
use crate::system::{self, File};
use crate::threads::owned;
use lineup_recording::native::head::{Chunk, CodeChange, Control, Entry, Head, Region, Request};
use lineup_recording::native::heap::{self, Allocator, FrameRule};
use lineup_recording::native::timed::{self, flushed, trial};
use lineup_recording::native::{
    CHILDREN, CHUNKS, DEFINITIONS, FILE_BYTES, HEAP, MAGIC, NOTES, RANGES, Refusal, SIEVES, THREAD_CALLS,
    WRITES, chunk, entry, note, region, sieve, state, thread_calls, whole, write,
};
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Each chunk is mapped at a multiple of this, so that a byte of the log's pointer shows when it is full.
const CHUNK_STRIDE: usize = 1 << 24;

/// The command counts at least this often; otherwise it is gone.
const PATIENCE_ROUNDS: u32 = 4_000;
pub(super) const ROUND_NS: i64 = 100_000;
/// After some short rounds the command has much to read, and many threads may wait for it.
const SHORT_ROUNDS: u32 = 20;
const LONG_ROUND_NS: i64 = 1_000_000;
/// Threads that may wait at a time; with more of them, each waits proportionally longer.
const WAITING_AT_ONCE: u32 = 32;
const MOST_TURNS: u32 = 32;
/// Threads that wait for a chunk.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// The most rounds of waiting for the command.
pub(super) const MOST_ROUNDS_FOR_AN_ANSWER: u32 = 100_000;

/// The memory.
pub(crate) struct Shared {
    pub(super) head: *const Head,
    /// The first process's first words, with the order of events and the processes' requests. Those stay in place in
    /// forked processes.
    pub(super) first: *const Control,
    pub(super) asking: *const Request,
    pub(super) definitions: *const AtomicU64,
    pub(super) notes: *const AtomicU64,
    /// Changes of the program's code, and behind them the list of the engine's memory.
    pub(super) changes: *const CodeChange,
    pub(super) chunks: *mut u8,
    /// Calls of threads.
    pub(super) thread_calls: *const AtomicU64,
    /// Null unless the whole program is recorded.
    pub(super) sieves: *mut u8,
    /// The words about allocations; null as the sieves.
    pub(super) heap: *const AtomicU64,
}

// SAFETY: the mappings live as long as the process; words are atomic, and each chunk is one thread's at a time.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

/// Maps the file's chunks.
pub(super) fn map_chunks(file: &File, chunks: *mut u8) -> Option<()> {
    let both = libc::PROT_READ | libc::PROT_WRITE;
    for number in 0..chunk::COUNT {
        let at = chunks as usize + number * CHUNK_STRIDE;
        file.map(Some(at), chunk::BYTES as usize, both, CHUNKS + number as u64 * chunk::BYTES)?;
    }
    Some(())
}

impl Shared {
    /// Maps the file that a terminated path names.
    pub(crate) fn open(path: &[u8]) -> Option<Shared> {
        let file = File::open(path, libc::O_RDWR)?;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let map = |bytes: u64, offset| -> Option<*const AtomicU64> {
            file.map(None, bytes as usize, both, offset).map(|at| at.cast_const().cast())
        };
        let head = map(NOTES.start, 0)?.cast();
        let definitions = map(DEFINITIONS.end - DEFINITIONS.start, DEFINITIONS.start)?;
        let notes = map(NOTES.end - NOTES.start, NOTES.start)?;
        let changes = map(RANGES.end - WRITES, WRITES)?.cast();
        let asking = map(CHILDREN.end - CHILDREN.start, CHILDREN.start)?.cast();
        let thread_calls = map(FILE_BYTES - THREAD_CALLS, THREAD_CALLS)?;
        let addresses = system::addresses(CHUNK_STRIDE * (chunk::COUNT + 1))?;
        let chunks =
            addresses.wrapping_add((addresses as usize).next_multiple_of(CHUNK_STRIDE) - addresses as usize);
        map_chunks(&file, chunks)?;
        let first = map(size_of::<Control>() as u64, 0)?.cast();
        let (sieves, heap) = (std::ptr::null_mut(), std::ptr::null());
        let mut shared =
            Shared { head, first, asking, definitions, notes, changes, chunks, thread_calls, sieves, heap };
        if shared.control().mode.load(Ordering::Relaxed) == whole::MODE {
            shared.sieves = file.map(None, sieve::COUNT * sieve::BYTES as usize, both, SIEVES)?;
            shared.heap = map(heap::BYTES, HEAP)?;
        }
        (shared.control().magic.load(Ordering::Acquire) == MAGIC).then_some(shared)
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is larger, begins at a page's beginning, and stays; all bits are words.
        unsafe { &*self.head }
    }

    /// Settings, progress and sums.
    pub(crate) fn control(&self) -> &Control {
        &self.head().control
    }

    /// Those of the first process.
    pub(super) fn first(&self) -> &Control {
        // SAFETY: as for the head.
        unsafe { &*self.first }
    }

    /// The words for sampled calls, when calls are timed.
    pub(crate) fn trials(&self) -> *const AtomicU64 {
        self.definitions.wrapping_add((trial::PLACE - DEFINITIONS.start) as usize / 8)
    }

    /// Lines of code that are flushed before sampled calls of a region; none where the function's own are.
    pub(crate) fn flushed(&self, region: usize) -> Vec<u64> {
        let first = (flushed::PLACE - DEFINITIONS.start) as usize / 8 + region * flushed::WORDS;
        assert!(region < timed::REGIONS);
        // SAFETY: within the mapping, since the region has words there.
        let word = |number: usize| unsafe { &*self.definitions.add(first + number) }.load(Ordering::Relaxed);
        (1..=(word(0) as usize).min(flushed::MOST)).map(word).collect()
    }

    /// A region.
    pub(crate) fn region(&self, number: u64) -> Option<&Region> {
        self.head().regions.get(usize::try_from(number).ok()?)
    }

    /// All regions.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.head().regions
    }

    /// Whether one more call of a region may be recorded; it counts against the limit then.
    pub(crate) fn takes_one(&self, number: u64) -> bool {
        let Some(region) = self.region(number) else { return false };
        let allowed = region.allowed.load(Ordering::Relaxed);
        let next = |taken: u64| (taken < allowed).then_some(taken + 1);
        region.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    /// The counter of a thread's calls of a region; no other thread counts there.
    pub(crate) fn thread_count(&self, thread: u64, number: u64) -> Option<&AtomicU64> {
        let (thread, number) = (thread as usize, number as usize);
        let is_there = thread < thread_calls::MOST && number < region::MOST;
        // SAFETY: within the mapping, as checked.
        is_there.then(|| unsafe { &*self.thread_calls.add(thread * region::MOST + number) })
    }

    /// A thread makes a call of a region.
    pub(crate) fn count_in_thread(&self, thread: u64, number: u64) {
        if let Some(count) = self.thread_count(thread, number) {
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// An entry.
    pub(crate) fn entry(&self, number: usize) -> &Entry {
        &self.head().entries[number]
    }

    /// The entries that the command has asked for so far.
    pub(crate) fn entries(&self) -> &[Entry] {
        let asked = self.control().entries.load(Ordering::Acquire) as usize;
        &self.head().entries[..asked.min(entry::MOST)]
    }

    /// Entries in this range are gone.
    pub(crate) fn forget_entries(&self, range: &Range<u64>) {
        for entry in self.entries() {
            let holds = |address: &AtomicU64| range.contains(&address.load(Ordering::Relaxed));
            if holds(&entry.address) || holds(&entry.chooser) {
                entry.address.store(0, Ordering::Release);
            }
        }
    }

    fn chunk(&self, number: usize) -> &Chunk {
        &self.head().chunks[number]
    }

    /// The next position in the order of events.
    pub(crate) fn tick(&self) -> u64 {
        self.first().clock.fetch_add(1, Ordering::Relaxed)
    }

    /// Registers a block's definition. Returns its number, by which the log names it; `None` when there is no room
    /// left.
    pub(crate) fn define(&self, words: &[u64]) -> Option<u32> {
        let room = (DEFINITIONS.end - DEFINITIONS.start) / 8;
        // Number 0 names none.
        let at = self.control().definitions.fetch_add(words.len() as u64, Ordering::Relaxed) + 1;
        if at + words.len() as u64 >= room {
            return None;
        }
        for (word, place) in words.iter().zip(at..) {
            // SAFETY: within the mapping, as checked.
            unsafe { &*self.definitions.add(place as usize) }.store(*word, Ordering::Relaxed);
        }
        u32::try_from(at).ok()
    }

    /// Gives the user a note; text that does not fit is dropped.
    pub(crate) fn note(&self, text: &str) {
        self.tell(note::TEXT, text.as_bytes());
    }

    /// As [`Shared::note`], but only once.
    pub(crate) fn note_once(&self, was_told: &AtomicU8, text: &str) {
        if was_told.swap(1, Ordering::Relaxed) == 0 {
            self.note(text);
        }
    }

    /// As [`Shared::note`], of any kind. Takes no memory and no lock.
    pub(crate) fn tell(&self, kind: u64, text: &[u8]) {
        let words = text.len().div_ceil(8) as u64 + 1;
        let at = self.control().notes.fetch_add(words, Ordering::Relaxed);
        if (at + words) * 8 > NOTES.end - NOTES.start {
            return;
        }
        let put = |place: u64, value: u64| {
            // SAFETY: within the mapping, as checked.
            unsafe { &*self.notes.add(place as usize) }.store(value, Ordering::Relaxed);
        };
        for (bytes, place) in text.chunks(8).zip(at + 1..) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            put(place, u64::from_le_bytes(word));
        }
        put(at, text.len() as u64 | kind << 32);
    }

    /// This process is the one that is recorded: the first that asks. Others run untouched.
    pub(crate) fn is_first(&self) -> bool {
        self.control().state.compare_exchange(0, state::STARTS, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Words of definitions in use.
    pub(crate) fn number_of_definitions(&self) -> u64 {
        self.control().definitions.load(Ordering::Relaxed)
    }

    /// Whether threads should give their chunks back between calls: there may be more threads than chunks.
    pub(crate) fn is_scarce(&self) -> bool {
        self.control().next_thread.load(Ordering::Relaxed) as usize > chunk::COUNT / 2
    }

    /// A sieve that no thread has had, for a whole program's; `None` when all are taken.
    pub(crate) fn take_sieve(&self) -> Option<u64> {
        let number = self.control().sieves.fetch_add(1, Ordering::Relaxed) as usize;
        let is_there = !self.sieves.is_null() && number < sieve::COUNT;
        is_there.then(|| self.sieves as u64 + number as u64 * sieve::BYTES)
    }

    /// A word about allocations; 0 where the command gave none.
    fn heap_word(&self, number: usize) -> u64 {
        if self.heap.is_null() || number as u64 >= heap::BYTES / 8 {
            return 0;
        }
        // SAFETY: within the mapping, as checked.
        unsafe { &*self.heap.add(number) }.load(Ordering::Relaxed)
    }

    /// Whether the command gave any allocator.
    pub(crate) fn has_allocators(&self) -> bool {
        self.control().allocators.load(Ordering::Acquire) > 0
    }

    /// The number of the allocators' functions.
    pub(crate) fn count_allocators(&self) -> usize {
        (self.control().allocators.load(Ordering::Acquire) as usize).min(heap::MOST_ALLOCATORS)
    }

    /// The functions of allocators.
    pub(crate) fn allocators(&self) -> impl Iterator<Item = (u64, Allocator)> {
        (0..self.count_allocators()).filter_map(|number| {
            let at = heap::ALLOCATORS + 2 * number;
            Some((self.heap_word(at), Allocator::of_number(self.heap_word(at + 1))?))
        })
    }

    /// The allocator that begins at an address.
    pub(crate) fn allocator_at(&self, pc: u64) -> Option<Allocator> {
        self.allocators().find(|(address, _)| *address == pc).map(|(_, allocator)| allocator)
    }

    /// The rule that leads from a place in the code to its function's caller.
    pub(crate) fn frame_rule(&self, pc: u64) -> Option<FrameRule> {
        let files = (self.control().unwound.load(Ordering::Acquire) as usize).min(heap::file::MOST);
        // The latest first: an earlier one may have been unmapped.
        let at =
            |number: usize, field: usize| self.heap_word(heap::FILES + number * heap::file::WORDS + field);
        let holds =
            |number: &usize| (at(*number, heap::file::START)..at(*number, heap::file::END)).contains(&pc);
        let file = (0..files).rev().find(holds)?;
        let first = heap::RULES + at(file, heap::file::FIRST) as usize;
        let word = |number: usize| self.heap_word(first + number);
        rule_at(at(file, heap::file::RULES) as usize, at(file, heap::file::START), pc, word)
    }

    /// A free chunk in its last state, for a thread; `None` when all are taken.
    pub(crate) fn take_table(&self) -> Option<(usize, *mut u8)> {
        let is_free = |number: &usize| {
            let state = &self.chunk(*number).state;
            state.compare_exchange(0, chunk::IS_OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let number = (0..chunk::COUNT).find(is_free)?;
        Some((number, self.chunks.wrapping_add(number * CHUNK_STRIDE)))
    }

    /// Gives back a chunk of [`Shared::take_table`].
    pub(crate) fn leave_table(&self, at: u64) {
        if let Some(number) = self.number_of_table(at) {
            self.chunk(number).state.store(0, Ordering::Release);
        }
    }

    /// The number of a chunk of [`Shared::take_table`].
    pub(crate) fn number_of_table(&self, at: u64) -> Option<usize> {
        let number = (at.wrapping_sub(self.chunks as u64) / CHUNK_STRIDE as u64) as usize;
        (number < chunk::COUNT).then_some(number)
    }

    /// Whether the command still reads.
    pub(crate) fn is_read(&self) -> bool {
        self.control().is_gone.load(Ordering::Acquire) == 0
    }

    /// A free chunk, for a thread: its number and address. Waits for one while the command reads, but at most
    /// `most_rounds` in which none is given back; `None` when all stay taken.
    pub(crate) fn take_chunk(&self, thread: u64, most_rounds: u32) -> Option<(usize, *mut u8)> {
        if let Some(taken) = self.take_free_chunk(thread) {
            return Some(taken);
        }
        WAITING.fetch_add(1, Ordering::Relaxed);
        let taken = self.wait_for_chunk(thread, most_rounds);
        WAITING.fetch_sub(1, Ordering::Relaxed);
        taken
    }

    fn take_free_chunk(&self, thread: u64) -> Option<(usize, *mut u8)> {
        let is_ours = |number: &usize| {
            let state = &self.chunk(*number).state;
            state.load(Ordering::Relaxed) == 0
                && state.compare_exchange(0, chunk::IS_OWNED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let number = (0..chunk::COUNT).find(is_ours)?;
        self.chunk(number).length.store(0, Ordering::Relaxed);
        let order = self.control().submitted.fetch_add(1, Ordering::Relaxed);
        self.chunk(number).order.store(order, Ordering::Relaxed);
        self.chunk(number).thread.store(thread, Ordering::Release);
        Some((number, self.chunks.wrapping_add(number * CHUNK_STRIDE)))
    }

    fn wait_for_chunk(&self, thread: u64, most_rounds: u32) -> Option<(usize, *mut u8)> {
        let mut last_beat = self.control().heartbeat.load(Ordering::Relaxed);
        let mut last_given = 0;
        let (mut rounds, mut waited, mut slept) = (0, 0, 0);
        while waited < most_rounds {
            if !self.is_read() {
                return None;
            }
            slept += 1;
            // Threads that poll without a pause would keep the command from the processors.
            let turns = (WAITING.load(Ordering::Relaxed) / WAITING_AT_ONCE).clamp(1, MOST_TURNS);
            let round_ns = if slept < SHORT_ROUNDS { ROUND_NS } else { LONG_ROUND_NS };
            system::sleep_ns(round_ns * i64::from(turns));
            let beat = self.control().heartbeat.load(Ordering::Relaxed);
            rounds = if beat == last_beat { rounds + turns } else { 0 };
            last_beat = beat;
            let given = self.control().given_back.load(Ordering::Relaxed);
            waited = if given == last_given { waited.saturating_add(turns) } else { 0 };
            last_given = given;
            if rounds > PATIENCE_ROUNDS {
                self.control().is_gone.store(1, Ordering::Release);
            }
            if let Some(taken) = self.take_free_chunk(thread) {
                return Some(taken);
            }
        }
        None
    }

    /// This many bytes of a chunk are whole records.
    pub(crate) fn commit_chunk(&self, number: usize, bytes: u64) {
        self.chunk(number).length.store(bytes, Ordering::Release);
    }

    /// Hands a chunk over.
    pub(crate) fn submit_chunk(&self, number: usize, bytes: u64) {
        self.commit_chunk(number, bytes);
        self.chunk(number).state.store(chunk::IS_FULL, Ordering::Release);
    }

    /// Waits until the command has answered. False when it does not.
    pub(crate) fn wait_for_answer(&self) -> bool {
        for _ in 0..MOST_ROUNDS_FOR_AN_ANSWER {
            if self.control().state.load(Ordering::Acquire) == state::ANSWERED {
                return true;
            }
            // In such a program the command, which injected the engine, ends the program once the engine has returned.
            let is_refused =
                owned::is_alone() && self.control().state.load(Ordering::Acquire) == state::REFUSED;
            if is_refused || !self.is_read() {
                return false;
            }
            system::sleep_ns(ROUND_NS);
        }
        false
    }

    /// Whether an entry cannot be patched.
    pub(crate) fn has_refused(&self) -> bool {
        self.entries().iter().any(|entry| Refusal::of(entry.answer.load(Ordering::Relaxed)).is_some())
    }

    /// Notes a change of the program's code that is to be taken back. False when there is no room. True when no note is
    /// needed, since the engine stays as long as the program.
    pub(crate) fn note_write(&self, at: u64, old: &[u8], new: &[u8]) -> bool {
        if self.control().is_attached.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let number = self.control().writes.load(Ordering::Relaxed);
        if number as usize >= write::MOST || new.len() > 8 {
            return false;
        }
        let as_word = |bytes: &[u8]| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        };
        // SAFETY: within the mapping, since there is room for as many.
        let change = unsafe { &*self.changes.add(number as usize) };
        change.address.store(at, Ordering::Relaxed);
        change.length.store(new.len() as u64, Ordering::Relaxed);
        change.old.store(as_word(old), Ordering::Relaxed);
        change.new.store(as_word(new), Ordering::Relaxed);
        self.control().writes.store(number + 1, Ordering::Release);
        true
    }

    /// Lists memory of the engine's; there is room for it.
    pub(crate) fn list_range(&self, number: u64, start: u64, bytes: u64) {
        let first = (RANGES.start - WRITES) / 8 + 2 * number;
        for (place, value) in [(first, start), (first + 1, bytes)] {
            // SAFETY: within the mapping, as the caller has seen.
            unsafe { &*self.changes.cast::<AtomicU64>().add(place as usize) }.store(value, Ordering::Relaxed);
        }
    }

    /// As [`Shared::has_refused`]; then the program's own code does not run until it is ended, or the command is gone.
    pub(crate) fn refuses(&self) -> bool {
        let refuses = self.has_refused();
        if refuses {
            self.control().state.store(state::REFUSED, Ordering::Release);
            let mut rounds = 0;
            while self.is_read() && rounds < MOST_ROUNDS_FOR_AN_ANSWER {
                rounds += 1;
                system::sleep_ns(ROUND_NS);
            }
        }
        refuses
    }

    /// The engine gives up, and reports the reason, unless the command has already refused.
    pub(crate) fn give_up(&self, why: &str) {
        if self.control().state.load(Ordering::Acquire) == state::REFUSED {
            return;
        }
        self.note(why);
        self.control().state.store(state::GAVE_UP, Ordering::Release);
    }
}
