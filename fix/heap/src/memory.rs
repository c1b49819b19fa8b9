//! Memory from the system. Nothing here changes `errno`: callers are in the middle of a program's own call.

use std::ffi::c_int;
use std::ptr;

/// Reserves addresses at a multiple of `alignment`, a power of two; they can be used once they are opened.
pub(crate) fn reserve(bytes: usize, alignment: usize) -> Option<usize> {
    let at = map(bytes + alignment, libc::PROT_NONE)?;
    Some(at.next_multiple_of(alignment))
}

/// Memory of zeros that is never given back.
pub(crate) fn zeroed(bytes: usize) -> Option<usize> {
    map(bytes, libc::PROT_READ | libc::PROT_WRITE)
}

fn map(bytes: usize, protection: c_int) -> Option<usize> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let keeping = Errno::keep();
    // SAFETY: new memory at a place of the kernel's choice; nothing refers to it yet.
    let at = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
    drop(keeping);
    (at != libc::MAP_FAILED).then_some(at as usize)
}

/// Gives zeroed memory back that `zeroed` made.
///
/// # Safety
/// Nothing refers to it any more.
pub(crate) unsafe fn unmap(at: usize, bytes: usize) {
    let _keeping = Errno::keep();
    // SAFETY: the caller's promise.
    unsafe { libc::munmap(at as *mut _, bytes) };
}

/// Opens reserved addresses for reading and writing.
///
/// # Safety
/// They are part of what [`reserve`] returned.
pub(crate) unsafe fn open(at: usize, bytes: usize) -> bool {
    let _keeping = Errno::keep();
    // SAFETY: more rights for memory that is ours.
    unsafe { libc::mprotect(at as *mut _, bytes, libc::PROT_READ | libc::PROT_WRITE) == 0 }
}

/// Advises the kernel; false where it does not follow.
///
/// # Safety
/// With `MADV_DONTNEED`, no object lies there.
pub(crate) unsafe fn advise(at: usize, bytes: usize, advice: c_int) -> bool {
    let _keeping = Errno::keep();
    // SAFETY: the caller's promise; other advice changes no content.
    unsafe { libc::madvise(at as *mut _, bytes, advice) == 0 }
}

/// Restores `errno` when it is dropped.
pub(crate) struct Errno(c_int);

impl Errno {
    pub(crate) fn keep() -> Self {
        // SAFETY: the C library's own place of this thread.
        Errno(unsafe { *libc::__errno_location() })
    }

    pub(crate) fn number(&self) -> c_int {
        self.0
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        set_errno(self.0);
    }
}

pub(crate) fn set_errno(to: c_int) {
    // SAFETY: the C library's own place of this thread.
    unsafe { *libc::__errno_location() = to };
}
