//! The memory that is shared with the engine, mapped to be read.
#![allow(unsafe_code)]

use crate::error::{Doing, Result};
use std::fs::File;
use std::io::Error;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;

/// A part of a file that is memory.
pub(super) struct Mapping {
    at: *const AtomicU64,
    bytes: usize,
}

// SAFETY: the memory is only accessed as atomic words.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a part of a file, which has it and keeps it, from a page's beginning on.
    pub(super) fn new(file: &File, part: &Range<u64>) -> Result<Mapping> {
        let bytes = (part.end - part.start) as usize;
        // SAFETY: a new mapping, wherever there is room.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                part.start as i64,
            )
        };
        let mapped = if at == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(at) };
        Ok(Mapping { at: mapped.doing("mapping the engine's memory")?.cast(), bytes })
    }

    /// Its words.
    pub(super) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped as long as this lives, at a page's beginning; all bits are words, and atomic ones may change.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes / 8) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.at.cast_mut().cast(), self.bytes) };
    }
}
