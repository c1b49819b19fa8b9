//! The recorder's data in memory that outlives it and that forked processes share, see [`lineup_recording::journal`].

use lineup_recording::journal::{
    COUNTER_BYTES, MAGIC, MOST_REGIONS, SLOT_BYTES, SLOTS, counter, slot, slot_at,
};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counters, and the source of slots.
pub(crate) struct Journal {
    counters: *const AtomicU64,
    /// The journal's path. It is opened anew for each slot, since the guest may close any descriptor. Empty without a
    /// journal: then the counters are shared, but do not outlive the program.
    path: String,
}

// SAFETY: the counters are atomic and mapped for as long as the process runs.
unsafe impl Send for Journal {}
// SAFETY: as above.
unsafe impl Sync for Journal {}

impl Journal {
    /// Opens the journal of a plan, or makes counters alone when it names none.
    pub(crate) fn open(path: &str) -> io::Result<Journal> {
        let file = (!path.is_empty()).then(|| open(path)).transpose()?;
        let counters = map(file.as_ref(), 0, COUNTER_BYTES)?.cast::<AtomicU64>().cast_const();
        let journal = Journal { counters, path: path.to_owned() };
        journal.counter(counter::MAGIC).store(MAGIC, Ordering::Relaxed);
        Ok(journal)
    }

    fn counter(&self, number: usize) -> &AtomicU64 {
        debug_assert!(number < COUNTER_BYTES as usize / 8);
        // SAFETY: within the mapping, by the constants of the format and `count_call`'s check; page-aligned; never
        // unmapped.
        unsafe { &*self.counters.add(number) }
    }

    fn next(&self, number: usize) -> u64 {
        self.counter(number).fetch_add(1, Ordering::Relaxed)
    }

    /// The next position in the order of events.
    pub(crate) fn tick(&self) -> u64 {
        self.next(counter::CLOCK)
    }

    /// A thread's number.
    pub(crate) fn thread(&self) -> u32 {
        self.next(counter::NEXT_THREAD) as u32
    }

    /// The number of a process that begins.
    pub(crate) fn begin_process(&self) -> u32 {
        self.next(counter::ALIVE);
        self.next(counter::NEXT_PROCESS) as u32
    }

    /// Whether a process that begins gets an address space of its own.
    pub(crate) fn has_space(&self) -> bool {
        self.counter(counter::NEXT_PROCESS).load(Ordering::Relaxed) <= u64::from(u16::MAX)
    }

    /// A process has written its last words.
    pub(crate) fn end_process(&self) {
        self.counter(counter::ALIVE).fetch_sub(1, Ordering::Relaxed);
    }

    /// Counts a call of a region, and returns its number over all processes. `None` for a region beyond those that fit.
    pub(crate) fn count_call(&self, region: u16) -> Option<u64> {
        let region = usize::from(region);
        (region < MOST_REGIONS).then(|| self.next(counter::FIRST_REGION + region))
    }

    /// Writing the recording failed.
    pub(crate) fn note_failure(&self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or(libc::EIO);
        self.counter(counter::FAILURE).store(number as u64, Ordering::Relaxed);
    }

    /// A slot for a thread; `None` when there is no journal, no memory, or no slot left.
    pub(crate) fn slot(&self) -> Option<Slot> {
        if self.path.is_empty() {
            return None;
        }
        let file = open(&self.path).ok()?;
        let number = self.next(counter::NEXT_SLOT);
        if number >= SLOTS {
            return None;
        }
        let base = map(Some(&file), slot_at(number), SLOT_BYTES).ok()?;
        Some(Slot { base })
    }
}

/// A thread's own part of the journal.
pub(crate) struct Slot {
    base: *mut u8,
}

// SAFETY: the mapping belongs to the slot alone in this process, and the slot to one thread at a time.
unsafe impl Send for Slot {}

impl Slot {
    fn word(&self, number: usize) -> &AtomicU64 {
        // SAFETY: the two words at the start of the mapping, which is page-aligned and lives as long as the slot.
        unsafe { &*self.base.cast::<AtomicU64>().add(number) }
    }

    /// Adds whole records. False when they do not fit.
    pub(crate) fn append(&mut self, records: &[u8]) -> bool {
        let length = self.word(slot::LENGTH).load(Ordering::Relaxed);
        let end = slot::HEAD_BYTES + length + records.len() as u64;
        if end > SLOT_BYTES {
            return false;
        }
        // SAFETY: the bytes after the present content are within the mapping, as checked, and no other code writes to
        // them.
        unsafe {
            let to = self.base.add((slot::HEAD_BYTES + length) as usize);
            ptr::copy_nonoverlapping(records.as_ptr(), to, records.len());
        }
        self.word(slot::LENGTH).store(length + records.len() as u64, Ordering::Release);
        true
    }

    /// Its records are about to be written to the recording.
    pub(crate) fn begin_writing(&mut self) {
        self.word(slot::IS_WRITTEN).store(1, Ordering::Release);
    }

    /// They were written.
    pub(crate) fn clear(&mut self) {
        self.word(slot::LENGTH).store(0, Ordering::Release);
        self.word(slot::IS_WRITTEN).store(0, Ordering::Release);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: mapped in `Journal::slot` with this length, and nothing refers to it any more. Its memory is given
        // back first: the file keeps it otherwise.
        unsafe {
            libc::madvise(self.base.cast(), SLOT_BYTES as usize, libc::MADV_REMOVE);
            libc::munmap(self.base.cast(), SLOT_BYTES as usize);
        }
    }
}

fn open(path: &str) -> io::Result<File> {
    File::options().read(true).write(true).open(path)
}

/// Maps a part of a file, or memory without one, for this process and those it forks.
fn map(file: Option<&File>, at: u64, bytes: u64) -> io::Result<*mut u8> {
    let (flags, number) = match file {
        Some(file) => (libc::MAP_SHARED, file.as_raw_fd()),
        None => (libc::MAP_SHARED | libc::MAP_ANONYMOUS, -1),
    };
    // SAFETY: a new mapping that the system places where nothing lies.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes as usize,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            number,
            at as libc::off_t,
        )
    };
    match base == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(base.cast()),
    }
}
