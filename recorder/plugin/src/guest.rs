//! Reading the guest's memory, which in user mode is the emulator's own.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};

/// The longest text that is read, the kernel's own limit for an argument, and most texts of a list.
const MOST_TEXT_BYTES: usize = 128 << 10;
const MOST_TEXTS: u64 = 1 << 20;

/// The guest's memory, read with the system's help, so that a wrong address is an error and no fault.
pub(crate) struct Memory {
    file: File,
    guest_base: u64,
    pointer_bytes: u8,
}

impl Memory {
    pub(crate) fn of(guest_base: &AtomicU64, pointer_bytes: u8) -> Option<Self> {
        let file = File::open("/proc/self/mem").ok()?;
        Some(Memory { file, guest_base: guest_base.load(Ordering::Relaxed), pointer_bytes })
    }

    /// The text at a guest address, up to its end; `None` where no memory is.
    pub(crate) fn text(&self, address: u64) -> Option<OsString> {
        let host = address.wrapping_add(self.guest_base);
        let mut bytes = Vec::new();
        // In steps that end with a page: the next page may not be mapped.
        while bytes.len() < MOST_TEXT_BYTES {
            let at = host.checked_add(bytes.len() as u64)?;
            let mut step = [0; 256];
            let length = step.len().min((4096 - at % 4096) as usize);
            self.file.read_exact_at(&mut step[..length], at).ok()?;
            match step[..length].iter().position(|byte| *byte == 0) {
                Some(end) => {
                    bytes.extend_from_slice(&step[..end]);
                    return Some(OsString::from_vec(bytes));
                }
                None => bytes.extend_from_slice(&step[..length]),
            }
        }
        None
    }

    /// The texts that a list of pointers leads to, up to a null pointer; none for no list. `None` where no memory is.
    pub(crate) fn texts(&self, list: u64) -> Option<Vec<OsString>> {
        let mut texts = Vec::new();
        if list == 0 {
            return Some(texts);
        }
        for index in 0..MOST_TEXTS {
            let at = list.checked_add(index * u64::from(self.pointer_bytes))?;
            match self.pointer(at)? {
                0 => return Some(texts),
                pointer => texts.push(self.text(pointer)?),
            }
        }
        None
    }

    fn pointer(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        let own = bytes.get_mut(..usize::from(self.pointer_bytes))?;
        self.file.read_exact_at(own, address.wrapping_add(self.guest_base)).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_texts_are_read_and_wrong_addresses_are_errors() {
        let memory = Memory::of(&AtomicU64::new(0), 8).unwrap();
        let (one, two) = (c"one", c"");
        let list = [one.as_ptr() as u64, two.as_ptr() as u64, 0];
        assert_eq!(memory.texts(list.as_ptr() as u64).unwrap(), ["one", ""]);
        assert_eq!(memory.texts(0).unwrap().len(), 0);
        assert!(memory.text(8).is_none() && memory.texts(8).is_none());
        let wrong = [8u64, 0];
        assert!(memory.texts(wrong.as_ptr() as u64).is_none());
    }
}
