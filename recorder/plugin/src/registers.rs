//! Registers of the guest, which emulators of version 9.0 and later let plugins read.
//!
//! They are read only at the beginning of a call that goes into the recording. The block there has a callback that asks
//! for them, so that the emulator updates its own copy.

use crate::ffi::{Api, ByteArray, ReadRegisters, Register};
use lineup_model::access::Arguments;
use lineup_model::machine::EmulatorRegisters;
use std::ffi::CStr;

/// The registers of one virtual CPU that matter at the beginning of a call.
#[derive(Default)]
pub(crate) enum Registers {
    /// The emulator was not asked for them yet.
    #[default]
    NotAsked,
    /// It does not give them.
    Unreadable,
    /// It gives them.
    Readable(Handles),
}

/// The emulator's handles of registers.
pub(crate) struct Handles {
    read: ReadRegisters,
    stack_pointer: *mut Register,
    base: Option<*mut Register>,
    arguments: Vec<*mut Register>,
    bytes: *mut ByteArray,
}

/// The registers' values at the beginning of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtEntry {
    pub(crate) stack_pointer: u64,
    /// The base from which variables of the thread, or of the CPU, are found.
    pub(crate) base: Option<u64>,
    pub(crate) arguments: Arguments,
}

impl Registers {
    /// The registers' values at the beginning of the function at `entry`; `None` where the emulator does not give them.
    /// Variables that are not shared are those of a CPU with `is_system`, else of a thread.
    ///
    /// # Safety
    /// Only in a callback of the registers' own virtual CPU, at the beginning of a block, that was asked for with
    /// [`crate::ffi::READS_REGISTERS`].
    pub(crate) unsafe fn read(
        &mut self,
        api: &Api,
        names: &EmulatorRegisters,
        is_system: bool,
        entry: u64,
    ) -> Option<AtEntry> {
        if matches!(self, Registers::NotAsked) {
            let read = api.registers;
            // SAFETY: the caller's promise.
            let handles = read.and_then(|read| unsafe { Handles::of_this_cpu(read, names, is_system) });
            *self = handles.map_or(Registers::Unreadable, Registers::Readable);
        }
        match self {
            // SAFETY: as above.
            Registers::Readable(handles) => unsafe { handles.read(entry) },
            Registers::NotAsked | Registers::Unreadable => None,
        }
    }
}

impl Handles {
    /// # Safety
    /// Only in a callback of that virtual CPU.
    unsafe fn of_this_cpu(
        read: ReadRegisters,
        names: &EmulatorRegisters,
        is_system: bool,
    ) -> Option<Handles> {
        // SAFETY: this is a virtual CPU's callback.
        let all = unsafe { (read.list)() };
        if all.is_null() {
            return None;
        }
        // SAFETY: the array gives the number and the size of its descriptions, which stay until it is freed below.
        let described = |number: usize| unsafe {
            let apart = (read.element_bytes)(all) as usize;
            &*(*all).data.byte_add(number * apart)
        };
        // SAFETY: as above.
        let told: Vec<_> = (0..unsafe { (*all).count } as usize).map(described).collect();
        let find = |name: &str| {
            let is_named = |text| {
                // SAFETY: a name is a string that the emulator never frees.
                unsafe { CStr::from_ptr(text) }.to_bytes().eq_ignore_ascii_case(name.as_bytes())
            };
            told.iter().find(|one| !one.name.is_null() && is_named(one.name)).map(|one| one.handle)
        };
        let base = find(if is_system { names.cpu_base } else { names.thread_base });
        let arguments: Option<Vec<_>> = names.arguments.iter().map(|name| find(name)).collect();
        let found = find(names.stack_pointer).zip(arguments);
        // SAFETY: the array is ours to free; handles and names outlive it.
        unsafe { (read.free_list)(all, 1) };
        let (stack_pointer, arguments) = found?;
        // SAFETY: the function takes nothing.
        let bytes = unsafe { (read.new_bytes)() };
        Some(Handles { read, stack_pointer, base, arguments, bytes })
    }

    /// # Safety
    /// As for [`Registers::read`].
    unsafe fn read(&mut self, entry: u64) -> Option<AtEntry> {
        let mut values = [0; Arguments::MOST];
        for (value, register) in values.iter_mut().zip(&self.arguments) {
            // SAFETY: the caller's promise.
            *value = unsafe { self.value(*register) }?;
        }
        let count = self.arguments.len().min(Arguments::MOST);
        // SAFETY: as above.
        let stack_pointer = unsafe { self.value(self.stack_pointer) }?;
        // SAFETY: as above.
        let base = self.base.and_then(|base| unsafe { self.value(base) });
        Some(AtEntry { stack_pointer, base, arguments: Arguments::new(entry, &values[..count]) })
    }

    /// # Safety
    /// As for [`Registers::read`].
    unsafe fn value(&self, register: *mut Register) -> Option<u64> {
        // SAFETY: the bytes are ours, and the handle was given by the emulator for this virtual CPU.
        let told = unsafe {
            (self.read.resize)(self.bytes, 0);
            if !self.read.read.add(register, self.bytes) {
                return None;
            }
            std::slice::from_raw_parts((*self.bytes).data, (*self.bytes).count as usize)
        };
        number(told)
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        // SAFETY: the bytes are ours, and no other code uses them any more.
        unsafe { (self.read.free_bytes)(self.bytes, 1) };
    }
}

/// The number in a register of 4 or 8 bytes. They are in the guest's order, which is little-endian on every machine
/// here.
fn number(bytes: &[u8]) -> Option<u64> {
    match bytes.len() {
        4 => Some(u64::from(u32::from_le_bytes(bytes.try_into().ok()?))),
        8 => Some(u64::from_le_bytes(bytes.try_into().ok()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_register_has_four_or_eight_bytes_with_the_lowest_first() {
        assert_eq!(number(&[0x78, 0x56, 0x34, 0x12]), Some(0x1234_5678));
        assert_eq!(number(&[1, 0, 0, 0, 0, 0, 0, 0x80]), Some(1 | 1 << 63));
        assert_eq!((number(&[]), number(&[0; 16])), (None, None));
    }
}
