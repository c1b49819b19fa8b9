//! The few functions of the emulator's plugin interface (version 1) that are used, as a table of
//! function pointers, so that only [`crate::link`] refers to symbols of the emulator.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// Names this plugin to the emulator.
pub(crate) type PluginId = u64;

/// A block being translated; opaque.
#[repr(C)]
pub(crate) struct Tb {
    _opaque: [u8; 0],
}

/// An instruction of such a block; opaque.
#[repr(C)]
pub(crate) struct Insn {
    _opaque: [u8; 0],
}

/// What the emulator tells about itself; only the leading fields, which version 1 fixes.
#[repr(C)]
pub(crate) struct Info {
    pub(crate) target_name: *const c_char,
    pub(crate) version_min: c_int,
    pub(crate) version_cur: c_int,
    pub(crate) system_emulation: bool,
}

pub(crate) type VcpuCallback = unsafe extern "C" fn(PluginId, c_uint);
pub(crate) type TranslateCallback = unsafe extern "C" fn(PluginId, *mut Tb);
pub(crate) type ExecCallback = unsafe extern "C" fn(c_uint, *mut c_void);
pub(crate) type MemCallback = unsafe extern "C" fn(c_uint, u32, u64, *mut c_void);
pub(crate) type SyscallCallback =
    unsafe extern "C" fn(PluginId, c_uint, i64, u64, u64, u64, u64, u64, u64, u64, u64);
pub(crate) type SyscallReturnCallback = unsafe extern "C" fn(PluginId, c_uint, i64, i64);
pub(crate) type ResetCallback = unsafe extern "C" fn(PluginId);
pub(crate) type ExitCallback = unsafe extern "C" fn(PluginId, *mut c_void);

/// `QEMU_PLUGIN_CB_NO_REGS`: the callback touches no guest register.
pub(crate) const NO_REGISTERS: c_int = 0;
/// `QEMU_PLUGIN_MEM_RW`. The emulator's own filter for loads or stores alone is wrong in 7.2 for `call`
/// and `ret`, so both are always asked for.
pub(crate) const READS_AND_WRITES: c_int = 3;
/// `QEMU_PLUGIN_INLINE_ADD_U64`.
pub(crate) const INLINE_ADD: c_int = 0;

/// The emulator's functions.
#[derive(Clone, Copy)]
pub(crate) struct Api {
    pub(crate) on_vcpu_init: unsafe extern "C" fn(PluginId, VcpuCallback),
    pub(crate) on_vcpu_exit: unsafe extern "C" fn(PluginId, VcpuCallback),
    pub(crate) on_translate: unsafe extern "C" fn(PluginId, TranslateCallback),
    pub(crate) on_syscall: unsafe extern "C" fn(PluginId, SyscallCallback),
    pub(crate) on_syscall_return: unsafe extern "C" fn(PluginId, SyscallReturnCallback),
    pub(crate) reset: unsafe extern "C" fn(PluginId, ResetCallback),
    pub(crate) on_exit: unsafe extern "C" fn(PluginId, ExitCallback, *mut c_void),
    pub(crate) block_exec: unsafe extern "C" fn(*mut Tb, ExecCallback, c_int, *mut c_void),
    pub(crate) block_exec_inline: unsafe extern "C" fn(*mut Tb, c_int, *mut c_void, u64),
    pub(crate) insn_exec: unsafe extern "C" fn(*mut Insn, ExecCallback, c_int, *mut c_void),
    pub(crate) insn_mem: unsafe extern "C" fn(*mut Insn, MemCallback, c_int, c_int, *mut c_void),
    pub(crate) block_insns: unsafe extern "C" fn(*const Tb) -> usize,
    pub(crate) block_insn: unsafe extern "C" fn(*const Tb, usize) -> *mut Insn,
    pub(crate) insn_data: unsafe extern "C" fn(*const Insn) -> *const c_void,
    pub(crate) insn_size: unsafe extern "C" fn(*const Insn) -> usize,
    pub(crate) insn_vaddr: unsafe extern "C" fn(*const Insn) -> u64,
    pub(crate) insn_haddr: unsafe extern "C" fn(*const Insn) -> *mut c_void,
    pub(crate) insn_text: unsafe extern "C" fn(*const Insn) -> *mut c_char,
    pub(crate) mem_is_store: unsafe extern "C" fn(u32) -> bool,
    pub(crate) mem_size_shift: unsafe extern "C" fn(u32) -> c_uint,
}
