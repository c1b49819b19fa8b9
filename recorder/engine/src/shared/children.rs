//! Memory of their own for processes that the program starts and forks off.

use super::memory::{MOST_ROUNDS_FOR_AN_ANSWER, ROUND_NS, Shared, map_chunks};
use crate::system::{self, File};
use lineup_recording::native::{
    DEFINITIONS, FILE_BYTES, HEAP, MAGIC, NOTES, RANGES, SIEVES, THREAD_CALLS, WRITES, child, heap, note,
    sieve, state,
};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// The path of the first process's memory.
static FIRST: OnceLock<Box<[u8]>> = OnceLock::new();

/// Keeps the path of the first process's memory, which forked processes use for their requests.
pub(crate) fn remember_first(path: &[u8]) {
    let _ = FIRST.set(path.into());
}

/// That path, where it is known.
pub(crate) fn first_path() -> Option<&'static [u8]> {
    FIRST.get().map(|path| &**path)
}

impl Shared {
    /// Asks the command, through the first process's memory, for memory of this process's own; `path` names it. `None`
    /// when the command gives no memory: then this process runs untouched.
    pub(crate) fn of_child(self, path: &[u8]) -> Option<Shared> {
        let own = Shared::open(&self.ask(path, system::process_in_proc()?)?)?;
        // All processes share one order of events, and one place for requests.
        own.is_first().then_some(Shared { first: self.first, asking: self.asking, ..own })
    }

    /// As [`Shared::of_child`], in a forked process: its own memory replaces the parent's, which had this many words of
    /// definitions then. When it fails, neither memory may be used.
    pub(crate) fn part_from_parent(&self, path: &[u8], definitions: u64) -> Option<()> {
        let parent = self.control().number.load(Ordering::Relaxed) + 1;
        let question = system::process_in_proc()? | parent << child::FORKED_BY_AT;
        let sieves = self.control().sieves.load(Ordering::Relaxed);
        let file = File::open(&self.ask(path, question)?, libc::O_RDWR)?;
        // Number 0 names none.
        let bytes = ((definitions + 1) * 8).min(DEFINITIONS.end - DEFINITIONS.start) as usize;
        // SAFETY: within the mapping.
        let known = unsafe { std::slice::from_raw_parts(self.definitions.cast::<u8>(), bytes) };
        file.write_at(known, DEFINITIONS.start).then_some(())?;
        let both = libc::PROT_READ | libc::PROT_WRITE;
        let map = |at: *const (), bytes: u64, offset| {
            (at.is_null() || file.map(Some(at as usize), bytes as usize, both, offset).is_some())
                .then_some(())
        };
        map(self.head.cast(), NOTES.start, 0)?;
        map(self.definitions.cast(), DEFINITIONS.end - DEFINITIONS.start, DEFINITIONS.start)?;
        map(self.notes.cast(), NOTES.end - NOTES.start, NOTES.start)?;
        map(self.changes.cast(), RANGES.end - WRITES, WRITES)?;
        map(self.thread_calls.cast(), FILE_BYTES - THREAD_CALLS, THREAD_CALLS)?;
        map(self.sieves.cast_const().cast(), sieve::COUNT as u64 * sieve::BYTES, SIEVES)?;
        map(self.heap.cast(), heap::BYTES, HEAP)?;
        map_chunks(&file, self.chunks)?;
        self.control().definitions.store(definitions, Ordering::Relaxed);
        self.control().sieves.store(sieves, Ordering::Relaxed);
        let is_ours = self.control().magic.load(Ordering::Acquire) == MAGIC && self.is_first();
        is_ours.then_some(())
    }

    /// Asks the command for memory for a process. Returns the terminated path to it. `path` is the path of the first
    /// process's.
    fn ask(&self, path: &[u8], process: u64) -> Option<Vec<u8>> {
        let mut number = self.first().children.load(Ordering::Acquire);
        // SAFETY: within the mapping, as checked.
        let request = |number: u64| unsafe { &*self.asking.add(number as usize) };
        loop {
            if number >= child::MOST as u64 {
                self.tell(note::TEXT, b"a process was not recorded, since there were too many");
                return None;
            }
            let taken =
                request(number).process.compare_exchange(0, process, Ordering::AcqRel, Ordering::Acquire);
            // A process that is killed in between keeps no other waiting.
            self.first().children.fetch_max(number + 1, Ordering::AcqRel);
            if taken.is_ok() {
                break;
            }
            number += 1;
        }
        let mut file = 0;
        for _ in 0..MOST_ROUNDS_FOR_AN_ANSWER {
            file = request(number).file.load(Ordering::Acquire);
            if file != 0 || self.first().is_gone.load(Ordering::Acquire) != 0 {
                break;
            }
            system::sleep_ns(ROUND_NS);
        }
        let folder = path.iter().rposition(|byte| *byte == b'/')?;
        let number = file.checked_sub(1)?.to_string();
        Some([&path[..=folder], number.as_bytes(), &[0]].concat())
    }

    /// Waits until the command has read the state of a forked process, and has given it its data. False when it does
    /// not answer.
    pub(crate) fn introduce_fork(&self) -> bool {
        self.control().state.store(state::ASKS, Ordering::Release);
        let is_answered = self.wait_for_answer();
        if is_answered {
            self.control().state.store(state::RUNS, Ordering::Release);
        }
        is_answered
    }
}
