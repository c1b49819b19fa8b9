//! Memory that the engine maps for itself.

use super::calls::own;
use super::holdings;

/// Maps memory, and lists it unless it replaces memory of ours.
pub(super) fn map(
    at: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    file: i32,
    offset: u64,
) -> Option<*mut u8> {
    let arguments =
        [at as u64, bytes as u64, protection as u64, flags as u64, i64::from(file) as u64, offset];
    // SAFETY: a new mapping, or one over memory that the caller reserved.
    let mapped = unsafe { own(libc::SYS_mmap, arguments) };
    if mapped > 0 && flags & libc::MAP_FIXED == 0 {
        holdings::add(mapped as u64, bytes as u64);
    }
    (mapped > 0).then_some(mapped as *mut u8)
}

/// Memory of our own, zeroed, at any free place.
pub(crate) fn memory(bytes: usize) -> Option<*mut u8> {
    memory_where(bytes, 0)
}

/// As [`memory`], with flags for its place.
pub(crate) fn memory_where(bytes: usize, place: i32) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | place;
    map(0, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
}

/// As [`memory`], at exactly this address, if it is free.
pub(crate) fn memory_at(at: usize, bytes: usize) -> Option<*mut u8> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
    let mapped = map(at, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)?;
    if mapped as usize == at {
        return Some(mapped);
    }
    unmap(mapped, bytes);
    None
}

/// Addresses without memory.
pub(crate) fn addresses(bytes: usize) -> Option<*mut u8> {
    map(0, bytes, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE, -1, 0)
}

/// Gives mapped memory back.
pub(crate) fn unmap(at: *mut u8, bytes: usize) {
    holdings::remove(at as u64);
    // SAFETY: the caller mapped it, and no code uses it any more.
    unsafe { own(libc::SYS_munmap, [at as u64, bytes as u64, 0, 0, 0, 0]) };
}

/// Changes the protection of our own memory.
pub(crate) fn protect(at: *mut u8, bytes: usize, protection: i32) -> bool {
    // SAFETY: the caller's own memory.
    unsafe { own(libc::SYS_mprotect, [at as u64, bytes as u64, protection as u64, 0, 0, 0]) == 0 }
}

/// Replaces other memory by our own, atomically for all threads.
pub(crate) fn move_over(from: *mut u8, bytes: usize, to: u64) -> bool {
    let flags = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
    // SAFETY: the caller's own memory replaces memory with the same content.
    let moved = unsafe { own(libc::SYS_mremap, [from as u64, bytes as u64, bytes as u64, flags, to, 0]) };
    if moved == to as i64 {
        // From now on it is the program's.
        holdings::remove(from as u64);
    }
    moved == to as i64
}

/// Sets our memory to all zeros.
pub(crate) fn forget(at: *mut u8, bytes: usize) {
    // SAFETY: private memory that was mapped here for us. If the kernel does not take it back, it is overwritten.
    unsafe {
        if own(libc::SYS_madvise, [at as u64, bytes as u64, libc::MADV_DONTNEED as u64, 0, 0, 0]) != 0 {
            std::ptr::write_bytes(at, 0, bytes);
        }
    }
}

/// Makes a page empty in forked processes.
pub(crate) fn wipe_on_fork(at: *mut u8, bytes: usize) -> bool {
    // SAFETY: the caller's own memory.
    unsafe { own(libc::SYS_madvise, [at as u64, bytes as u64, libc::MADV_WIPEONFORK as u64, 0, 0, 0]) == 0 }
}
