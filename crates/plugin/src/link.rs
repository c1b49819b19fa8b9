//! Where the emulator finds us, and the only place that refers to its symbols. They are looked up by name when the plugin
//! is loaded: an emulator that lacks one of those in a list of imports would not load us at all, and could not be told why.

use crate::ffi::{Api, BlockCount, Info, InsnData, PluginId, ReadRegisters};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// The interface version that the emulator reads once we are loaded, and checks; [`choose`] has chosen it by then.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the emulator looks for this very name")]
pub(crate) static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// What only emulators with interface version 2 or later have.
const PER_CPU: &CStr = c"qemu_plugin_scoreboard_new";

/// Runs when the plugin is loaded, before the emulator asks for the version.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

/// Speaks version 2 to emulators that know it. Later versions have added to it, and are told apart by nothing we use.
extern "C" fn choose() {
    if symbol(PER_CPU).is_some() {
        qemu_plugin_version.store(2, Ordering::Relaxed);
    }
}

/// The emulator's symbol of this name.
fn symbol(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The emulator's function of this name.
///
/// # Safety
/// `F` must be the type of a pointer to that function.
unsafe fn find<F: Copy>(name: &CStr) -> Result<F, String> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    let found = symbol(name).ok_or_else(|| {
        format!("the emulator has no {}; QEMU 7.2 and 10.0 are known to work", name.to_string_lossy())
    })?;
    // SAFETY: the caller's promise; both are as large as a pointer.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

impl Api {
    /// The emulator's functions, as far as both interfaces have them, and those of its own.
    fn find(version: c_int) -> Result<Api, String> {
        // SAFETY: the types are those of the interface's description.
        unsafe {
            let (block_count, insn_data) = match version {
                1 => (
                    BlockCount::Shared(find(c"qemu_plugin_register_vcpu_tb_exec_inline")?),
                    InsnData::Shown(find(c"qemu_plugin_insn_data")?),
                ),
                _ => (
                    BlockCount::PerCpu {
                        new_board: find(PER_CPU)?,
                        add: find(c"qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu")?,
                        get: find(c"qemu_plugin_u64_get")?,
                    },
                    InsnData::Copied(find(c"qemu_plugin_insn_data")?),
                ),
            };
            Api::with(block_count, insn_data)
        }
    }

    /// The functions that both interfaces have, with those that they do not.
    ///
    /// # Safety
    /// The emulator's functions must have the types of the interface's description.
    unsafe fn with(block_count: BlockCount, insn_data: InsnData) -> Result<Api, String> {
        // SAFETY: the caller's promise.
        let api = unsafe {
            Api {
                on_vcpu_init: find(c"qemu_plugin_register_vcpu_init_cb")?,
                on_vcpu_exit: find(c"qemu_plugin_register_vcpu_exit_cb")?,
                on_translate: find(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
                on_syscall: find(c"qemu_plugin_register_vcpu_syscall_cb")?,
                on_syscall_return: find(c"qemu_plugin_register_vcpu_syscall_ret_cb")?,
                reset: find(c"qemu_plugin_reset")?,
                on_exit: find(c"qemu_plugin_register_atexit_cb")?,
                block_exec: find(c"qemu_plugin_register_vcpu_tb_exec_cb")?,
                insn_exec: find(c"qemu_plugin_register_vcpu_insn_exec_cb")?,
                insn_mem: find(c"qemu_plugin_register_vcpu_mem_cb")?,
                block_insns: find(c"qemu_plugin_tb_n_insns")?,
                block_insn: find(c"qemu_plugin_tb_get_insn")?,
                insn_size: find(c"qemu_plugin_insn_size")?,
                insn_vaddr: find(c"qemu_plugin_insn_vaddr")?,
                insn_haddr: find(c"qemu_plugin_insn_haddr")?,
                insn_text: find(c"qemu_plugin_insn_disas")?,
                mem_is_store: find(c"qemu_plugin_mem_is_store")?,
                mem_size_shift: find(c"qemu_plugin_mem_size_shift")?,
                mem_place: find(c"qemu_plugin_get_hwaddr")?,
                is_device: find(c"qemu_plugin_hwaddr_is_io")?,
                physical: find(c"qemu_plugin_hwaddr_phys_addr")?,
                block_count,
                insn_data,
                registers: ReadRegisters::find().ok(),
            }
        };
        Ok(api)
    }
}

impl ReadRegisters {
    /// The functions for it, where the emulator has them all.
    ///
    /// # Safety
    /// The emulator's functions must have the types of the interface's description.
    unsafe fn find() -> Result<ReadRegisters, String> {
        // SAFETY: the caller's promise.
        unsafe {
            Ok(ReadRegisters {
                list: find(c"qemu_plugin_get_registers")?,
                read: find(c"qemu_plugin_read_register")?,
                free_list: find(c"g_array_free")?,
                new_bytes: find(c"g_byte_array_new")?,
                resize: find(c"g_byte_array_set_size")?,
                free_bytes: find(c"g_byte_array_free")?,
            })
        }
    }
}

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
        let version = qemu_plugin_version.load(Ordering::Relaxed);
        if !versions.contains(&version) {
            return Err(format!(
                "the emulator speaks plugin interface {} to {}, not {version}; QEMU 6.0 to 10.0 are known to work",
                versions.start(),
                versions.end()
            ));
        }
        crate::install::install(Api::find(version)?, id, &target, info.system_emulation, &arguments)
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
