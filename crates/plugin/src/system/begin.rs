//! From the guest's boot to the marker at which the recording begins.

use super::get;
use super::{profile, translate};
use crate::ffi::{Api, NO_REGISTERS, PluginId, Tb};
use std::ffi::{c_uint, c_void};

/// Watches for the marker, and nothing else.
pub(crate) fn watch_for_marker(api: &Api, id: PluginId) {
    // SAFETY: `id` is ours, and the callbacks have the signatures that the interface asks for.
    unsafe {
        (api.on_translate)(id, on_translate_boot);
        (api.on_exit)(id, on_exit, std::ptr::null_mut());
    }
}

/// A block is translated while the guest boots.
unsafe extern "C" fn on_translate_boot(id: PluginId, tb: *mut Tb) {
    let Some(system) = get() else { return };
    // SAFETY: `tb` is valid for this callback, and a block has a first instruction.
    unsafe {
        let first = (system.api.block_insn)(tb, 0);
        if !first.is_null() && (system.api.insn_vaddr)(first) == system.kernel.entries.marker {
            (system.api.block_exec)(tb, on_first_marker, NO_REGISTERS, id as usize as *mut c_void);
        }
    }
}

/// The marker is reached for the first time: the translations made so far are dropped, once.
unsafe extern "C" fn on_first_marker(_vcpu: c_uint, data: *mut c_void) {
    let Some(system) = get() else { return };
    if system.begin_once() {
        // SAFETY: the number is our id, as handed over above. No callback on memory was asked for yet: QEMU 7.2 aborts
        // when a reset comes after one, or comes twice.
        unsafe { (system.api.reset)(data as usize as PluginId, on_reset) };
    }
}

/// The emulator has forgotten every callback: the recording begins.
unsafe extern "C" fn on_reset(id: PluginId) {
    let Some(system) = get() else { return };
    system.begin();
    let on_translate = if system.profile.is_some() { profile::on_translate } else { translate::on_translate };
    // SAFETY: as in `watch_for_marker`.
    unsafe {
        (system.api.on_translate)(id, on_translate);
        (system.api.on_exit)(id, on_exit, std::ptr::null_mut());
    }
}

unsafe extern "C" fn on_exit(_id: PluginId, _data: *mut c_void) {
    if let Some(system) = get() {
        system.finish(false);
    }
}
