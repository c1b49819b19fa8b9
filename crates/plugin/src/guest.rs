//! Reading the guest's memory, which in user mode is the emulator's own.

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
