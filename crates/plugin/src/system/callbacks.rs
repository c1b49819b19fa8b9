//! What the emulator calls on a whole system.

use super::sites::{DataSite, NotedSite, Role, Run};
use super::{current, get};
use std::ffi::{c_uint, c_void};

/// A run of instructions begins.
pub(crate) unsafe extern "C" fn on_run(vcpu: c_uint, data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: `data` is a run that was leaked when this callback was asked for.
    let run: &'static Run = unsafe { &*data.cast::<Run>() };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(cpu) = unsafe { current(vcpu) } {
        cpu.fetch(system, run);
    }
}

/// A run begins that stands at the beginning of a block of note.
pub(crate) unsafe extern "C" fn on_noted_run(vcpu: c_uint, data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: as in `on_run`.
    let run: &'static Run = unsafe { &*data.cast::<Run>() };
    if run.role == Role::Marker {
        // No reference to a CPU's state is alive here.
        return system.finish(true);
    }
    // SAFETY: as in `on_run`.
    if let Some(cpu) = unsafe { current(vcpu) } {
        cpu.begin(system, run);
        cpu.fetch(system, run);
    }
}

/// An instruction accesses data.
pub(crate) unsafe extern "C" fn on_data(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: `data` is a site that was leaked when this callback was asked for.
    let site: &'static DataSite = unsafe { &*data.cast::<DataSite>() };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    let Some(cpu) = (unsafe { current(vcpu) }) else { return };
    cpu.access(system, site, address, info);
}

/// An instruction that moves control or stacks accesses data.
pub(crate) unsafe extern "C" fn on_transfer(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: as in `on_data`.
    let site: &'static DataSite = unsafe { &*data.cast::<DataSite>() };
    // SAFETY: as in `on_data`.
    let Some(cpu) = (unsafe { current(vcpu) }) else { return };
    let is_store = cpu.access(system, site, address, info);
    cpu.transfer(system, site, (address, info), is_store);
}

/// An instruction of note is about to be executed.
pub(crate) unsafe extern "C" fn on_noted(vcpu: c_uint, data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: `data` is a site that was leaked when this callback was asked for.
    let site: &'static NotedSite = unsafe { &*data.cast::<NotedSite>() };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(cpu) = unsafe { current(vcpu) } {
        cpu.note(system, site);
    }
}
