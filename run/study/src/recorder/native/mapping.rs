//! The memory that is shared with the engine, mapped.
#![allow(unsafe_code)]

use crate::error::{Doing, Result};
use lineup_recording::native::head::Head;
use std::fs::File;
use std::io::Error;
use std::ops::{Deref, Range};
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
        Ok(Mapping { at: map(file, bytes, libc::PROT_READ, part.start)?.cast(), bytes })
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

/// The first pages, of which both sides write words.
pub(super) struct MappedHead(*const Head);

// SAFETY: the memory is only accessed as atomic words.
unsafe impl Send for MappedHead {}
// SAFETY: as above.
unsafe impl Sync for MappedHead {}

impl MappedHead {
    /// Maps the first pages of a file, which has them and keeps them.
    pub(super) fn new(file: &File) -> Result<MappedHead> {
        Ok(MappedHead(map(file, size_of::<Head>(), libc::PROT_READ | libc::PROT_WRITE, 0)?.cast()))
    }
}

impl Deref for MappedHead {
    type Target = Head;

    fn deref(&self) -> &Head {
        // SAFETY: mapped as long as this lives, at a page's beginning; all bits are words, and atomic ones may change.
        unsafe { &*self.0 }
    }
}

impl Drop for MappedHead {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing refers to it any more.
        unsafe { libc::munmap(self.0.cast_mut().cast(), size_of::<Head>()) };
    }
}

/// A new mapping of a part of a file, wherever there is room.
fn map(file: &File, bytes: usize, access: i32, from: u64) -> Result<*mut libc::c_void> {
    // SAFETY: it replaces no other mapping.
    let at = unsafe {
        libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), from as i64)
    };
    let mapped = if at == libc::MAP_FAILED { Err(Error::last_os_error()) } else { Ok(at) };
    mapped.doing("mapping the engine's memory")
}
