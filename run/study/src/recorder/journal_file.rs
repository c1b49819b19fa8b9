//! The journal of a recording, see [`lineup_recording::journal`]: memory that outlives the emulator.

use crate::error::{Doing, Result};
use lineup_recording::journal::{JOURNAL_BYTES, Journal, counter};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// Memory for a journal.
pub(super) struct JournalFile(File);

impl JournalFile {
    /// Makes one.
    pub(super) fn new() -> Result<JournalFile> {
        let memory = rustix::fs::memfd_create("lineup-journal", MemfdFlags::CLOEXEC);
        let file = File::from(memory.doing("making the recorder's journal")?);
        file.set_len(JOURNAL_BYTES).doing("sizing the recorder's journal")?;
        Ok(JournalFile(file))
    }

    /// The path by which other processes open it while this one lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// True when this many calls of each of the first regions were seen until now.
    pub(super) fn has_seen(&self, calls: u64, regions: usize) -> bool {
        (0..regions).all(|region| {
            let mut word = [0; 8];
            let at = 8 * (counter::FIRST_REGION + region) as u64;
            self.0.read_exact_at(&mut word, at).is_ok() && u64::from_le_bytes(word) >= calls
        })
    }

    /// The journal's content.
    pub(super) fn read(&self) -> Result<Journal> {
        let read = |at, buffer: &mut [u8]| self.0.read_at(buffer, at);
        Journal::read(JOURNAL_BYTES, read).doing("reading the recorder's journal")
    }
}
