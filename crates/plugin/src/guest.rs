//! Reading the guest's memory, which in user mode is the emulator's own.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Longest path that is read.
const MOST_PATH_BYTES: usize = 4096;

/// The text at a host address, up to its end; `None` where no memory is. The system copies it, so that a wrong address
/// is an error and no fault.
pub(crate) fn read_text(host: u64) -> Option<String> {
    let memory = File::open("/proc/self/mem").ok()?;
    let mut bytes = Vec::new();
    // In steps that end with a page: what follows may not be mapped.
    while bytes.len() < MOST_PATH_BYTES {
        let at = host.checked_add(bytes.len() as u64)?;
        let mut step = [0; 256];
        let length = step.len().min((4096 - at % 4096) as usize);
        memory.read_exact_at(&mut step[..length], at).ok()?;
        match step[..length].iter().position(|byte| *byte == 0) {
            Some(end) => {
                bytes.extend_from_slice(&step[..end]);
                return String::from_utf8(bytes).ok();
            }
            None => bytes.extend_from_slice(&step[..length]),
        }
    }
    None
}

/// Reads bytes at a host address; `None` where not all of them are mapped.
pub(crate) fn read_bytes(host: u64, size_bytes: usize) -> Option<Vec<u8>> {
    let memory = File::open("/proc/self/mem").ok()?;
    let mut bytes = vec![0; size_bytes];
    memory.read_exact_at(&mut bytes, host).ok()?;
    Some(bytes)
}

/// Reads a naturally aligned value of 4 or 8 bytes that the guest just accessed at a host address.
///
/// # Safety
/// `host` must be the address of memory that the guest accessed in the instruction under way.
pub(crate) unsafe fn read_value(host: u64, size_bytes: u8) -> Option<u64> {
    // SAFETY: the guest just accessed the bytes, so they are mapped, and the caller's address is aligned. Another guest
    // thread may unmap them at this very moment; the emulator itself would then fault on the guest's access as well.
    // Volatile: another guest thread may write at the same time, and whichever value is read was there.
    unsafe {
        match size_bytes {
            4 => Some(u64::from((host as *const u32).read_volatile())),
            8 => Some((host as *const u64).read_volatile()),
            _ => None,
        }
    }
}
