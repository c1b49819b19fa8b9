//! Where the emulator finds us, and the only place that refers to its symbols.

use crate::ffi::{
    Api, ExecCallback, ExitCallback, Info, Insn, MemCallback, PluginId, ResetCallback, SyscallCallback,
    SyscallReturnCallback, Tb, TranslateCallback, VcpuCallback,
};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

/// The interface version this plugin was written for; the emulator checks it when loading.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the emulator looks for this very name")]
pub(crate) static qemu_plugin_version: c_int = 1;

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_init_cb(id: PluginId, callback: VcpuCallback);
    fn qemu_plugin_register_vcpu_exit_cb(id: PluginId, callback: VcpuCallback);
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: PluginId, callback: TranslateCallback);
    fn qemu_plugin_register_vcpu_syscall_cb(id: PluginId, callback: SyscallCallback);
    fn qemu_plugin_register_vcpu_syscall_ret_cb(id: PluginId, callback: SyscallReturnCallback);
    fn qemu_plugin_register_atexit_cb(id: PluginId, callback: ExitCallback, data: *mut c_void);
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        callback: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_tb_exec_inline(tb: *mut Tb, operation: c_int, data: *mut c_void, value: u64);
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
        callback: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_reset(id: PluginId, callback: ResetCallback);
    fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        callback: MemCallback,
        flags: c_int,
        filter: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const Tb, index: usize) -> *mut Insn;
    fn qemu_plugin_insn_data(insn: *const Insn) -> *const c_void;
    fn qemu_plugin_insn_size(insn: *const Insn) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    fn qemu_plugin_insn_haddr(insn: *const Insn) -> *mut c_void;
    fn qemu_plugin_insn_disas(insn: *const Insn) -> *mut c_char;
    fn qemu_plugin_mem_is_store(info: u32) -> bool;
    fn qemu_plugin_mem_size_shift(info: u32) -> c_uint;
}

const API: Api = Api {
    on_vcpu_init: qemu_plugin_register_vcpu_init_cb,
    on_vcpu_exit: qemu_plugin_register_vcpu_exit_cb,
    on_translate: qemu_plugin_register_vcpu_tb_trans_cb,
    on_syscall: qemu_plugin_register_vcpu_syscall_cb,
    on_syscall_return: qemu_plugin_register_vcpu_syscall_ret_cb,
    reset: qemu_plugin_reset,
    on_exit: qemu_plugin_register_atexit_cb,
    block_exec: qemu_plugin_register_vcpu_tb_exec_cb,
    block_exec_inline: qemu_plugin_register_vcpu_tb_exec_inline,
    insn_exec: qemu_plugin_register_vcpu_insn_exec_cb,
    insn_mem: qemu_plugin_register_vcpu_mem_cb,
    block_insns: qemu_plugin_tb_n_insns,
    block_insn: qemu_plugin_tb_get_insn,
    insn_data: qemu_plugin_insn_data,
    insn_size: qemu_plugin_insn_size,
    insn_vaddr: qemu_plugin_insn_vaddr,
    insn_haddr: qemu_plugin_insn_haddr,
    insn_text: qemu_plugin_insn_disas,
    mem_is_store: qemu_plugin_mem_is_store,
    mem_size_shift: qemu_plugin_mem_size_shift,
};

/// Called once when the emulator has loaded the plugin. The one argument is `plan=FILE`. A result other
/// than 0 makes the emulator refuse to start.
///
/// # Safety
/// `info` and the `argc` strings of `argv` must be valid for the call, as the emulator guarantees.
#[unsafe(no_mangle)]
unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the emulator passes a valid `info` and `argc` valid strings.
    let arguments = (0..usize::try_from(argc).unwrap_or(0))
        .map(|index| unsafe { CStr::from_ptr(*argv.add(index)) }.to_string_lossy().into_owned())
        .collect::<Vec<String>>();
    // SAFETY: as above.
    let info = unsafe { &*info };
    // SAFETY: as above; the name is a static string of the emulator.
    let target = unsafe { CStr::from_ptr(info.target_name) }.to_string_lossy().into_owned();
    let versions = info.version_min..=info.version_cur;
    let result = std::panic::catch_unwind(|| {
        crate::install::install(API, id, &target, versions, info.system_emulation, &arguments)
    });
    match result {
        Ok(Ok(())) => 0,
        Ok(Err(message)) => {
            eprintln!("lineup: {message}");
            1
        }
        Err(_) => 1,
    }
}
