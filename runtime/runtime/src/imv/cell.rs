//! The ordinary variable behind an immediate value: `_imv_read` reads it and every set writes it first.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::SeqCst};

/// The value at `address`, zero-extended. `size_bytes` is 1, 2, 4 or 8.
pub(super) fn load(address: usize, size_bytes: u8) -> u64 {
    // SAFETY: addresses come from records that the macros emit for a live variable of this size, aligned to it;
    // every other access to it is atomic or, from C, one aligned load of at most a word.
    unsafe {
        match size_bytes {
            1 => u64::from(AtomicU8::from_ptr(address as *mut u8).load(SeqCst)),
            2 => u64::from(AtomicU16::from_ptr(address as *mut u16).load(SeqCst)),
            4 => u64::from(AtomicU32::from_ptr(address as *mut u32).load(SeqCst)),
            _ => AtomicU64::from_ptr(address as *mut u64).load(SeqCst),
        }
    }
}

/// Stores the low `size_bytes` bytes of `value`.
pub(super) fn store(address: usize, size_bytes: u8, value: u64) {
    // SAFETY: as in `load`.
    unsafe {
        match size_bytes {
            1 => AtomicU8::from_ptr(address as *mut u8).store(value as u8, SeqCst),
            2 => AtomicU16::from_ptr(address as *mut u16).store(value as u16, SeqCst),
            4 => AtomicU32::from_ptr(address as *mut u32).store(value as u32, SeqCst),
            _ => AtomicU64::from_ptr(address as *mut u64).store(value, SeqCst),
        }
    }
}
