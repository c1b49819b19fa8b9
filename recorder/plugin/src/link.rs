//! The plugin's entry point for the emulator, and the only file that refers to the emulator's symbols. They are looked
//! up by name when the plugin is loaded: an emulator that lacks one of those in a list of imports would not load us at
//! all, and we could not report the reason.

use crate::ask::{Ask, Callbacks, Functions, POINTED_SINCE};
use crate::ffi::{Api, BlockCount, Info, InsnData, PluginId, ReadRegister, ReadRegisters};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

/// The interface version that the emulator reads once we are loaded, and checks; [`choose`] has chosen it by then.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "the emulator looks for this very name")]
pub(crate) static qemu_plugin_version: AtomicI32 = AtomicI32::new(1);

/// A function that only emulators with interface version 2 or later have.
const PER_CPU: &CStr = c"qemu_plugin_scoreboard_new";

/// Runs when the plugin is loaded, before the emulator asks for the version.
#[used]
#[unsafe(link_section = ".init_array")]
static CHOOSE: extern "C" fn() = choose;

/// The argument in which the command asks for a version. It knows that of the emulator.
const ASKED: &[u8] = b"interface=";

/// The first version whose functions return whether a register was read, and not its number of bytes.
const TELLS_READ_SINCE: c_int = 6;

/// The end of a message about another emulator.
const KNOWN_TO_WORK: &str = "QEMU 7.2, 8.2, 9.2, 10.0 to 10.2 and 11.1 are known to work";

/// Speaks the version that the command asks for, else version 2 to emulators that know it.
extern "C" fn choose() {
    let known = symbol(PER_CPU).map(|_| 2);
    if let Some(version) = asked().or(known) {
        qemu_plugin_version.store(version, Ordering::Relaxed);
    }
}

/// The version that the command has asked for. The emulator hands arguments over only after its check of the version,
/// so this looks for them in the emulator's own source.
fn asked() -> Option<c_int> {
    asked_in(&std::fs::read("/proc/self/cmdline").ok()?)
}

/// As [`asked`], of the words of an emulator's command, each with a null byte after it: the first plugin is ours.
fn asked_in(words: &[u8]) -> Option<c_int> {
    let mut words = words.split(|byte| *byte == 0).skip_while(|word| *word != b"-plugin");
    let mut parts = words.nth(1)?.split(|byte| *byte == b',');
    let number = parts.find_map(|part| part.strip_prefix(ASKED))?;
    std::str::from_utf8(number).ok()?.parse().ok()
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
    let found = symbol(name)
        .ok_or_else(|| format!("the emulator has no {}; {KNOWN_TO_WORK}", name.to_string_lossy()))?;
    // SAFETY: the caller's promise; both are as large as a pointer.
    Ok(unsafe { std::mem::transmute_copy(&found) })
}

impl Api {
    /// The functions of an emulator for which the plugin has this number, and which has this version at most.
    fn find(id: PluginId, version: c_int, current: c_int) -> Result<Api, String> {
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
            let ask = match version {
                POINTED_SINCE.. => Ask::Pointed(Functions::find()?),
                _ => Ask::Numbered(Functions::find()?),
            };
            Api::with(Callbacks { ask, id }, block_count, insn_data, current)
        }
    }

    /// The functions of all versions, together with these, which differ.
    ///
    /// # Safety
    /// The emulator's functions must have the types of the interface's description.
    unsafe fn with(
        callbacks: Callbacks,
        block_count: BlockCount,
        insn_data: InsnData,
        current: c_int,
    ) -> Result<Api, String> {
        // SAFETY: the caller's promise.
        let api = unsafe {
            Api {
                callbacks,
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
                registers: ReadRegisters::find(current).ok(),
            }
        };
        Ok(api)
    }
}

impl<Vcpu: Copy, Translate: Copy, Syscall: Copy, SyscallReturn: Copy, Reset: Copy, Exit: Copy>
    Functions<Vcpu, Translate, Syscall, SyscallReturn, Reset, Exit>
{
    /// # Safety
    /// The emulator's functions must have these types.
    unsafe fn find() -> Result<Self, String> {
        // SAFETY: the caller's promise.
        unsafe {
            Ok(Functions {
                vcpu_init: find(c"qemu_plugin_register_vcpu_init_cb")?,
                vcpu_exit: find(c"qemu_plugin_register_vcpu_exit_cb")?,
                translate: find(c"qemu_plugin_register_vcpu_tb_trans_cb")?,
                syscall: find(c"qemu_plugin_register_vcpu_syscall_cb")?,
                syscall_return: find(c"qemu_plugin_register_vcpu_syscall_ret_cb")?,
                reset: find(c"qemu_plugin_reset")?,
                exit: find(c"qemu_plugin_register_atexit_cb")?,
            })
        }
    }
}

impl ReadRegisters {
    /// The functions for reading registers, where the emulator has them all.
    ///
    /// # Safety
    /// The emulator's functions must have the types of the interface's description.
    unsafe fn find(current: c_int) -> Result<ReadRegisters, String> {
        const READ: &CStr = c"qemu_plugin_read_register";
        // SAFETY: the caller's promise.
        unsafe {
            Ok(ReadRegisters {
                list: find(c"qemu_plugin_get_registers")?,
                read: match current {
                    TELLS_READ_SINCE.. => ReadRegister::Told(find(READ)?),
                    _ => ReadRegister::Counted(find(READ)?),
                },
                element_bytes: find(c"g_array_get_element_size")?,
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
                "the emulator speaks plugin interface {} to {}, not {version}; {KNOWN_TO_WORK}",
                versions.start(),
                versions.end()
            ));
        }
        let api = Api::find(id, version, info.version_cur)?;
        crate::install::install(api, &target, info.system_emulation, &arguments)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_that_the_command_asks_for_stands_in_the_plugins_argument() {
        let asked = |line: &str| asked_in(line.replace(' ', "\0").as_bytes());
        assert_eq!(asked("qemu -smp 1 -plugin /p.so,interface=7,plan=/f -nodefaults "), Some(7));
        assert_eq!(asked("qemu -plugin /p.so,plan=/f -nodefaults "), None);
        assert_eq!(asked("qemu -plugin /p.so,plan=/f program -plugin x,interface=9 "), None);
        assert_eq!(asked("qemu -nodefaults "), None);
        assert_eq!(asked("qemu -plugin"), None);
        assert_eq!(asked("qemu -plugin p,interface=many "), None);
    }
}
