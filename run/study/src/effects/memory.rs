//! Memory of a process that is stopped.

use super::ptrace::Tid;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use nix::unistd::Pid;
use std::io::IoSliceMut;

/// The bytes of one read.
const PART_BYTES: u64 = 1 << 20;

/// The longest text or list that is read.
const LONGEST_TEXT_BYTES: usize = 1 << 16;

/// Hands over the bytes of a range, part by part; ends early where the range cannot be read.
pub(super) fn each_part(tid: Tid, address: u64, size_bytes: u64, mut take: impl FnMut(&[u8])) {
    let mut buffer = vec![0; size_bytes.min(PART_BYTES) as usize];
    let mut done = 0;
    while done < size_bytes {
        let wanted = (size_bytes - done).min(PART_BYTES) as usize;
        let Some(got) = read_into(tid, address.wrapping_add(done), &mut buffer[..wanted]) else { return };
        take(&buffer[..got]);
        done += got as u64;
    }
}

/// The bytes of a range, as far as they can be read; at most 1 MiB.
pub(super) fn bytes(tid: Tid, address: u64, size_bytes: u64) -> Vec<u8> {
    let mut buffer = vec![0; size_bytes.min(PART_BYTES) as usize];
    let mut got = 0;
    while got < buffer.len() {
        let Some(more) = read_into(tid, address.wrapping_add(got as u64), &mut buffer[got..]) else { break };
        got += more;
    }
    buffer.truncate(got);
    buffer
}

/// 64-bit words.
pub(super) fn words(tid: Tid, address: u64, count: u64) -> Vec<u64> {
    let bytes = bytes(tid, address, count.saturating_mul(8));
    bytes
        .chunks_exact(8)
        .map(|word| word.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte)))
        .collect()
}

/// Text that ends with a zero byte.
pub(super) fn text(tid: Tid, address: u64) -> Vec<u8> {
    let mut text = Vec::new();
    let mut at = address;
    while address != 0 && text.len() < LONGEST_TEXT_BYTES {
        // Up to the end of a page: the next one need not be there.
        let part = bytes(tid, at, 4096 - at % 4096);
        if let Some(end) = memchr::memchr(0, &part) {
            text.extend_from_slice(&part[..end]);
            break;
        }
        if part.is_empty() {
            break;
        }
        at = at.wrapping_add(part.len() as u64);
        text.extend(part);
    }
    text
}

/// A list of texts that ends with a null pointer.
pub(super) fn texts(tid: Tid, address: u64) -> Vec<Vec<u8>> {
    let pointers = (0..LONGEST_TEXT_BYTES as u64).map(|index| words(tid, address.wrapping_add(8 * index), 1));
    let pointers = pointers.map_while(|word| word.first().copied()).take_while(|pointer| *pointer != 0);
    pointers.map(|pointer| text(tid, pointer)).collect()
}

fn read_into(tid: Tid, address: u64, buffer: &mut [u8]) -> Option<usize> {
    let there = RemoteIoVec { base: address as usize, len: buffer.len() };
    let got = process_vm_readv(Pid::from_raw(tid), &mut [IoSliceMut::new(buffer)], &[there]).ok()?;
    (got > 0).then_some(got)
}
