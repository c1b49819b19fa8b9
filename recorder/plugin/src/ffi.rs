//! The used functions of the emulator's plugin interface, as a table of function pointers, so that only [`crate::link`]
//! refers to symbols of the emulator.
//!
//! Three forms of the interface are known: version 1 (QEMU 6.0 to 8.2), version 2 with those after it that keep its
//! functions (QEMU 9.0 to 11.0), and version 7 (QEMU 11.1). [`InsnData`], [`BlockCount`], [`ReadRegisters`] and
//! [`Callbacks`] cover their differences.

use crate::ask::Callbacks;
pub(crate) use crate::handles::{Insn, MemPlace, PluginId, Register, Tb};
use std::ffi::{c_char, c_int, c_uint, c_void};

/// The emulator's description of a register: the leading fields of `qemu_plugin_reg_descriptor`, which every version
/// has.
#[repr(C)]
pub(crate) struct DescribedRegister {
    pub(crate) handle: *mut Register,
    pub(crate) name: *const c_char,
    pub(crate) feature: *const c_char,
}

/// Descriptions of registers: the public part of glib's `GArray`.
#[repr(C)]
pub(crate) struct RegisterArray {
    pub(crate) data: *const DescribedRegister,
    pub(crate) count: c_uint,
}

/// Bytes: the public part of glib's `GByteArray`.
#[repr(C)]
pub(crate) struct ByteArray {
    pub(crate) data: *const u8,
    pub(crate) count: c_uint,
}

/// The emulator's description of itself; only the leading fields, which every version has.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) target_name: *const c_char,
    pub(crate) version_min: c_int,
    pub(crate) version_cur: c_int,
    pub(crate) system_emulation: bool,
}

pub(crate) type ExecCallback = unsafe extern "C" fn(c_uint, *mut c_void);
pub(crate) type MemCallback = unsafe extern "C" fn(c_uint, u32, u64, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback touches no guest register.
pub(crate) const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_CB_R_REGS`: the callback reads registers.
pub(crate) const READS_REGISTERS: c_int = 1;
/// `QEMU_PLUGIN_MEM_RW`. The emulator's own filter for loads or stores alone is wrong in 7.2 for `call`
/// and `ret`, so both are always asked for.
pub(crate) const READS_AND_WRITES: c_int = 3;
/// `QEMU_PLUGIN_INLINE_ADD_U64`.
pub(crate) const INLINE_ADD: c_int = 0;

/// The bytes of an instruction.
#[derive(Clone, Copy)]
pub(crate) enum InsnData {
    /// Version 1 shows them where they are.
    Shown(unsafe extern "C" fn(*const Insn) -> *const c_void),
    /// Version 2 copies them, as many as fit.
    Copied(unsafe extern "C" fn(*const Insn, *mut c_void, usize) -> usize),
}

/// Counters of version 2 for each virtual CPU: `qemu_plugin_u64`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct PerCpu {
    pub(crate) board: *mut c_void,
    pub(crate) offset: usize,
}

/// Counting the executions of a block without a callback.
#[derive(Clone, Copy)]
pub(crate) enum BlockCount {
    /// Version 1 adds to a number of ours.
    Shared(unsafe extern "C" fn(*mut Tb, c_int, *mut c_void, u64)),
    /// Version 2 adds to one of its own for each virtual CPU.
    PerCpu {
        new_board: unsafe extern "C" fn(usize) -> *mut c_void,
        add: unsafe extern "C" fn(*mut Tb, c_int, PerCpu, u64),
        get: unsafe extern "C" fn(PerCpu, c_uint) -> u64,
    },
}

/// Adding a register's bytes to others.
#[derive(Clone, Copy)]
pub(crate) enum ReadRegister {
    /// Versions 2 to 5 return the number of bytes, or a negative number.
    Counted(unsafe extern "C" fn(*mut Register, *mut ByteArray) -> c_int),
    /// Version 6 and later return whether the register was read.
    Told(unsafe extern "C" fn(*mut Register, *mut ByteArray) -> bool),
}

impl ReadRegister {
    /// Adds the register's bytes; false when they cannot be read.
    ///
    /// # Safety
    /// Both must be valid, in a callback of the virtual CPU that may read registers.
    pub(crate) unsafe fn add(self, register: *mut Register, bytes: *mut ByteArray) -> bool {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                ReadRegister::Counted(read) => read(register, bytes) >= 0,
                ReadRegister::Told(read) => read(register, bytes),
            }
        }
    }
}

/// Reading registers, which QEMU 9.0 and later do, with the functions of its glib for that.
#[derive(Clone, Copy)]
pub(crate) struct ReadRegisters {
    pub(crate) list: unsafe extern "C" fn() -> *mut RegisterArray,
    pub(crate) read: ReadRegister,
    /// The size of an array's element, in bytes.
    pub(crate) element_bytes: unsafe extern "C" fn(*const RegisterArray) -> c_uint,
    pub(crate) free_list: unsafe extern "C" fn(*mut RegisterArray, c_int) -> *mut c_char,
    pub(crate) new_bytes: unsafe extern "C" fn() -> *mut ByteArray,
    pub(crate) resize: unsafe extern "C" fn(*mut ByteArray, c_uint) -> *mut ByteArray,
    pub(crate) free_bytes: unsafe extern "C" fn(*mut ByteArray, c_int) -> *mut u8,
}

/// The emulator's functions.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    pub(crate) callbacks: Callbacks,
    pub(crate) block_exec: unsafe extern "C" fn(*mut Tb, ExecCallback, c_int, *mut c_void),
    pub(crate) block_count: BlockCount,
    pub(crate) insn_exec: unsafe extern "C" fn(*mut Insn, ExecCallback, c_int, *mut c_void),
    pub(crate) insn_mem: unsafe extern "C" fn(*mut Insn, MemCallback, c_int, c_int, *mut c_void),
    pub(crate) block_insns: unsafe extern "C" fn(*const Tb) -> usize,
    pub(crate) block_insn: unsafe extern "C" fn(*const Tb, usize) -> *mut Insn,
    pub(crate) insn_data: InsnData,
    pub(crate) insn_size: unsafe extern "C" fn(*const Insn) -> usize,
    pub(crate) insn_vaddr: unsafe extern "C" fn(*const Insn) -> u64,
    pub(crate) insn_haddr: unsafe extern "C" fn(*const Insn) -> *mut c_void,
    pub(crate) insn_text: unsafe extern "C" fn(*const Insn) -> *mut c_char,
    pub(crate) mem_is_store: unsafe extern "C" fn(u32) -> bool,
    pub(crate) mem_size_shift: unsafe extern "C" fn(u32) -> c_uint,
    /// The place of an access: only for whole systems, and only in the callback on that access.
    pub(crate) mem_place: unsafe extern "C" fn(u32, u64) -> *mut MemPlace,
    /// Whether that is a device.
    pub(crate) is_device: unsafe extern "C" fn(*const MemPlace) -> bool,
    /// Its physical address.
    pub(crate) physical: unsafe extern "C" fn(*const MemPlace) -> u64,
    /// `None` where the emulator offers plugins no registers.
    pub(crate) registers: Option<ReadRegisters>,
}

/// The most bytes that an instruction has, on any machine.
const LONGEST_INSN: usize = 16;

/// An instruction's bytes.
#[derive(Clone, Copy)]
pub(crate) struct InsnBytes {
    bytes: [u8; LONGEST_INSN],
    count: usize,
}

impl std::ops::Deref for InsnBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

impl Api {
    /// The flag for asking for the callback at the beginning of a block.
    pub(crate) fn at_block(&self, is_entry: bool) -> c_int {
        if is_entry && self.registers.is_some() { READS_REGISTERS } else { NO_REGISTERS }
    }

    /// The bytes of an instruction; none where the emulator cannot give them.
    ///
    /// # Safety
    /// `insn` must be of the block under translation.
    pub(crate) unsafe fn insn_bytes(&self, insn: *const Insn) -> InsnBytes {
        let mut bytes = [0; LONGEST_INSN];
        // SAFETY: the caller's promise.
        let size = unsafe { (self.insn_size)(insn) }.min(LONGEST_INSN);
        let count = match self.insn_data {
            InsnData::Shown(data) => {
                // SAFETY: the caller's promise; a place that is not null holds as many bytes as the instruction has.
                let data = unsafe { data(insn) }.cast::<u8>();
                if data.is_null() {
                    0
                } else {
                    // SAFETY: as above, and both hold `size` bytes.
                    unsafe { std::ptr::copy_nonoverlapping(data, bytes.as_mut_ptr(), size) };
                    size
                }
            }
            // SAFETY: the caller's promise; at most `size` bytes are written.
            InsnData::Copied(copy) => unsafe { copy(insn, bytes.as_mut_ptr().cast(), size) }.min(size),
        };
        InsnBytes { bytes, count }
    }
}
