//! The emulator's callbacks on a whole system.

use super::cpu::Cpu;
use super::cpus::current;
use super::shared::get;
use super::sites::{DataSite, NotedSite, Role, Run};
use std::ffi::{c_uint, c_void};

/// A run of instructions begins.
pub(crate) unsafe extern "C" fn on_run(vcpu: c_uint, data: *mut c_void) {
    // SAFETY: `data` is a run that was leaked when this callback was asked for.
    let run: &'static Run = unsafe { &*data.cast::<Run>() };
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(cpu) = unsafe { current(vcpu) }
        && !cpu.fetch_again(run)
    {
        fetch_slowly(cpu, run);
    }
}

/// A run at the beginning of a program's block begins.
pub(crate) unsafe extern "C" fn on_program_run(vcpu: c_uint, data: *mut c_void) {
    // SAFETY: as in `on_run`.
    let run: &'static Run = unsafe { &*data.cast::<Run>() };
    // SAFETY: as in `on_run`.
    if let Some(cpu) = unsafe { current(vcpu) }
        && !(cpu.stays_in_program() && cpu.fetch_again(run))
    {
        begin_slowly(cpu, run);
    }
}

/// A run at the beginning of a block of note begins.
pub(crate) unsafe extern "C" fn on_noted_run(vcpu: c_uint, data: *mut c_void) {
    // SAFETY: as in `on_run`.
    let run: &'static Run = unsafe { &*data.cast::<Run>() };
    if run.role == Role::Marker {
        // No reference to a CPU's state is alive here.
        if let Some(system) = get() {
            system.finish(true);
        }
        return;
    }
    // SAFETY: as in `on_run`.
    if let Some(cpu) = unsafe { current(vcpu) } {
        begin_slowly(cpu, run);
    }
}

/// An instruction accesses data, one of a program or of the kernel.
pub(crate) unsafe extern "C" fn on_data<const OF_PROGRAM: bool>(
    vcpu: c_uint,
    info: u32,
    address: u64,
    data: *mut c_void,
) {
    // SAFETY: this is a callback of that virtual CPU, and the only reference in it.
    if let Some(cpu) = unsafe { current(vcpu) }
        && !cpu.passes_over(OF_PROGRAM, address, info)
    {
        // SAFETY: `data` is a site that was leaked when this callback was asked for.
        access_slowly(cpu, unsafe { &*data.cast::<DataSite>() }, address, info);
    }
}

/// An instruction that moves control or stacks accesses data.
pub(crate) unsafe extern "C" fn on_transfer(vcpu: c_uint, info: u32, address: u64, data: *mut c_void) {
    let Some(system) = get() else { return };
    // SAFETY: as in `on_data`.
    let site: &'static DataSite = unsafe { &*data.cast::<DataSite>() };
    // SAFETY: as in `on_data`.
    let Some(cpu) = (unsafe { current(vcpu) }) else { return };
    let is_store = match cpu.passes_over(site.is_user, address, info) {
        true => cpu.is_store(info),
        false => cpu.access(system, site, address, info),
    };
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

// Calls in last place, so that the callbacks above save no registers for them.

#[inline(never)]
extern "C" fn fetch_slowly(cpu: &mut Cpu, run: &'static Run) {
    if let Some(system) = get() {
        cpu.fetch(system, run);
    }
}

#[inline(never)]
extern "C" fn begin_slowly(cpu: &mut Cpu, run: &'static Run) {
    if let Some(system) = get() {
        cpu.begin(system, run);
        cpu.fetch(system, run);
    }
}

#[inline(never)]
extern "C" fn access_slowly(cpu: &mut Cpu, site: &'static DataSite, address: u64, info: u32) {
    if let Some(system) = get() {
        cpu.access(system, site, address, info);
    }
}
