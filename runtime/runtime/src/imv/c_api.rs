//! The functions behind `lineup/imv.h`, and the constructor that registers this image.

use super::lock::with_registry;
use super::record::{Image, own_image};
use super::{Mode, WritePath, trap};
use libc::{c_char, c_int, c_void};

/// One change, as C passes it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LineupImvChange {
    /// The variable's cell, or a mirror of it.
    pub cell: *mut c_void,
    /// The value, zero-extended.
    pub value: u64,
    /// Size of the variable: 1, 2, 4 or 8.
    pub size_bytes: u32,
}

fn image(definitions: [*const c_void; 2], sites: [*const c_void; 2]) -> Image {
    Image {
        definitions: definitions[0] as usize..definitions[1] as usize,
        sites: sites[0] as usize..sites[1] as usize,
    }
}

/// Registers the image whose sections these are. Called by a constructor of every C file that includes the header;
/// further calls for the same image do nothing.
///
/// # Safety
///
/// The addresses must be the bounds of the sections that `lineup/imv.h` fills, of an image that stays mapped until
/// it is unregistered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_imv_register(
    definitions_start: *const c_void,
    definitions_stop: *const c_void,
    sites_start: *const c_void,
    sites_stop: *const c_void,
) {
    let image = image([definitions_start, definitions_stop], [sites_start, sites_stop]);
    with_registry(|registry| registry.register(image));
}

/// Forgets the image whose sections these are.
///
/// # Safety
///
/// As [`lineup_imv_register`]; the image must still be mapped, and its code that reads a value must not run again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_imv_unregister(
    definitions_start: *const c_void,
    definitions_stop: *const c_void,
    sites_start: *const c_void,
    sites_stop: *const c_void,
) {
    let image = image([definitions_start, definitions_stop], [sites_start, sites_stop]);
    with_registry(|registry| registry.unregister(&image));
}

/// Makes `count` changes in one batch. Returns 0, or `ENOEXEC` when code patched earlier cannot be written any
/// more, or `EINVAL` for a size that is not 1, 2, 4 or 8.
///
/// # Safety
///
/// `changes` must point to `count` changes whose cells are variables defined by `DEFINE_IMV`, of their true sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_imv_apply(changes: *const LineupImvChange, count: usize) -> c_int {
    if changes.is_null() || count == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    let changes = unsafe { std::slice::from_raw_parts(changes, count) };
    if !changes.iter().all(|change| matches!(change.size_bytes, 1 | 2 | 4 | 8)) {
        return libc::EINVAL;
    }
    let values = changes.iter().map(|change| (change.cell as usize, change.size_bytes as u8, change.value));
    match with_registry(|registry| registry.set(values)) {
        Ok(_) => 0,
        Err(_) => libc::ENOEXEC,
    }
}

/// Chooses the protocol: 0 direct, 1 conservative. Returns 0, or `EINVAL`.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_imv_set_mode(mode: c_int) -> c_int {
    match mode {
        0 => super::set_mode(Mode::Direct),
        1 => super::set_mode(Mode::Conservative),
        _ => return libc::EINVAL,
    }
    0
}

/// Tries a way to write: 0 `/proc/self/mem`, 1 alias, 2 swap. Returns 0 when it works, `ENOEXEC` when values are
/// now read from ordinary variables, `EINVAL` for another number.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_imv_set_write_path(path: c_int) -> c_int {
    let path = match path {
        0 => WritePath::ProcMem,
        1 => WritePath::Alias,
        2 => WritePath::Swap,
        _ => return libc::EINVAL,
    };
    super::set_write_path(path);
    if super::status().writing == Ok(path) { 0 } else { libc::ENOEXEC }
}

/// Writes a sentence on how immediate values work here into `buffer`, always terminated; returns its full length.
///
/// # Safety
///
/// `buffer` must have room for `room` bytes, or `room` be 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_imv_status(buffer: *mut c_char, room: usize) -> usize {
    let text = super::status().to_string();
    if room > 0 && !buffer.is_null() {
        let len = text.len().min(room - 1);
        // SAFETY: the caller's promise; `len` is below `room`.
        unsafe {
            std::ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), len);
            buffer.add(len).write(0);
        }
    }
    text.len()
}

/// Opens the socket behind `lineup imv`. 0, or an errno value.
#[unsafe(no_mangle)]
pub extern "C" fn lineup_imv_serve() -> c_int {
    match super::serve() {
        Ok(_) => 0,
        Err(error) => error.raw_os_error().unwrap_or(libc::EACCES),
    }
}

// Early among the constructors, so that those of the program find values in the instruction stream already. Before
// it has run, and in code that runs after the destructor, sites read the ordinary variable.
#[used]
#[unsafe(link_section = ".init_array.00101")]
static CONSTRUCTOR: extern "C" fn() = construct;
#[used]
#[unsafe(link_section = ".fini_array.00101")]
static DESTRUCTOR: extern "C" fn() = destruct;

extern "C" fn construct() {
    with_registry(|_| ());
}

extern "C" fn destruct() {
    super::serve::clean_up();
    with_registry(|registry| {
        registry.unregister(&own_image());
        trap::uninstall();
    });
}
