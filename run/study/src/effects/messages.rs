//! Vectors and messages in the memory of a process that is stopped.

use super::memory;
use super::ptrace::Tid;

/// The most parts of one vector.
pub(super) const MOST_PARTS: u64 = 1024;

/// The bytes from one header of several messages to the next: each is followed by the size of its message.
pub(super) const MESSAGE_BYTES: u64 = 64;

/// The size of one of several messages, which stands behind its header.
pub(super) fn message_size(tid: Tid, header: u64) -> u64 {
    let size = memory::bytes(tid, header.wrapping_add(56), 4);
    size.first_chunk::<4>().map_or(0, |size| u64::from(u32::from_ne_bytes(*size)))
}

/// True when a call leaves the bytes that it shows to be read again.
pub(super) fn is_peek(flags: u64) -> bool {
    flags as i32 & libc::MSG_PEEK != 0
}

/// Hands over the bytes of all parts, each with its address and size.
pub(super) fn each_part_of(tid: Tid, parts: &[(u64, u64)], mut take: impl FnMut(&[u8])) {
    for (address, size_bytes) in parts {
        memory::each_part(tid, *address, *size_bytes, &mut take);
    }
}

/// The place from which `sendfile` takes bytes: at the given address, else the open file's own.
pub(super) fn file_offset(tid: Tid, number: u64, address: u64) -> u64 {
    if address != 0 {
        return memory::words(tid, address, 1).first().copied().unwrap_or(0);
    }
    let about = std::fs::read_to_string(format!("/proc/{tid}/fdinfo/{number}")).unwrap_or_default();
    about.lines().find_map(|line| line.strip_prefix("pos:")?.trim().parse().ok()).unwrap_or(0)
}

/// The parts of a vector (`struct iovec`: address, size), cut to at most `bytes` bytes in all.
pub(super) fn parts(tid: Tid, list: u64, count: u64, bytes: u64) -> Vec<(u64, u64)> {
    let words = memory::words(tid, list, 2 * count.min(MOST_PARTS));
    let mut left = bytes;
    let mut parts = Vec::new();
    for part in words.chunks_exact(2) {
        let size_bytes = part[1].min(left);
        left -= size_bytes;
        parts.push((part[0], size_bytes));
    }
    parts
}
