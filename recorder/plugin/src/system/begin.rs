//! From the guest's boot to the marker at which the recording begins.

use super::shared::get;
use super::{profile, translate};
use crate::ask::{OnEvent, OnTranslate};
use crate::ffi::{Api, NO_REGISTERS, Tb};
use std::ffi::{c_uint, c_void};

/// Watches only for the marker.
pub(crate) fn watch_for_marker(api: &Api) {
    api.callbacks.on_translate::<Boots>();
    api.callbacks.on_exit::<Exits>();
}

/// A block is translated while the guest boots.
struct Boots;

impl OnTranslate for Boots {
    unsafe fn call(tb: *mut Tb) {
        let Some(system) = get() else { return };
        // SAFETY: `tb` is valid for this callback, and a block has a first instruction.
        unsafe {
            let first = (system.api.block_insn)(tb, 0);
            if !first.is_null() && (system.api.insn_vaddr)(first) == system.kernel.entries.marker {
                (system.api.block_exec)(tb, on_first_marker, NO_REGISTERS, std::ptr::null_mut());
            }
        }
    }
}

/// The marker is reached for the first time: the translations made so far are dropped, once. No callback on memory was
/// asked for yet: QEMU 7.2 aborts when a reset comes after one, or comes twice.
unsafe extern "C" fn on_first_marker(_vcpu: c_uint, _data: *mut c_void) {
    let Some(system) = get() else { return };
    if system.begin_once() {
        system.api.callbacks.reset::<Forgotten>();
    }
}

/// The emulator has forgotten every callback: the recording begins.
struct Forgotten;

impl OnEvent for Forgotten {
    fn call() {
        let Some(system) = get() else { return };
        system.begin();
        match system.profile.is_some() {
            true => system.api.callbacks.on_translate::<profile::Translates>(),
            false => system.api.callbacks.on_translate::<translate::Translates>(),
        }
        system.api.callbacks.on_exit::<Exits>();
    }
}

/// The emulator ends.
struct Exits;

impl OnEvent for Exits {
    fn call() {
        if let Some(system) = get() {
            system.finish(false);
        }
    }
}
