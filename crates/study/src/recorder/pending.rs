//! The journal of a recording, see [`lineup_recording::journal`]: memory that outlives the emulator.

use anyhow::{Context, Result};
use lineup_recording::journal::{JOURNAL_BYTES, Journal};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// How long processes that the program forked off may run on when it has ended.
const PATIENCE: Duration = Duration::from_secs(5);

/// Memory for a journal.
pub(super) struct JournalFile(File);

impl JournalFile {
    /// Makes one.
    pub(super) fn new() -> Result<JournalFile> {
        let memory = rustix::fs::memfd_create("lineup-journal", MemfdFlags::CLOEXEC);
        let file = File::from(memory.context("making the recorder's journal")?);
        file.set_len(JOURNAL_BYTES).context("sizing the recorder's journal")?;
        Ok(JournalFile(file))
    }

    /// The path by which other processes open it while this one lives.
    pub(super) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// What it holds.
    pub(super) fn read(&self) -> Result<Journal> {
        let read = |at, buffer: &mut [u8]| self.0.read_at(buffer, at);
        Journal::read(JOURNAL_BYTES, read).context("reading the recorder's journal")
    }

    /// Waits until every process of a group has ended, and ends those that do not. How many these were.
    pub(super) fn wait_for_children(&self, group: Pid) -> Result<u64> {
        let begun = Instant::now();
        loop {
            let alive = self.read()?.alive;
            if alive == 0 || test_kill_process_group(group).is_err() {
                return Ok(0);
            }
            if begun.elapsed() > PATIENCE {
                // They may have ended just now.
                let _ = kill_process_group(group, Signal::KILL);
                return Ok(alive);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
