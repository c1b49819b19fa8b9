//! The program's system calls that block signals: they lead to the engine while traps may stand in the program's code.
//! The C library's function for any call leads there always, see [`crate::syscalls::guards`].

use crate::engine::Engine;
use crate::entries::{code_changes, traps};
use crate::machine::{Entries, Host, HostRegisters, Registers, SpreadSite};
use crate::system;

/// Redirects all system calls that set masks, or those in the code that holds an address, to the engine.
pub(crate) fn lead(engine: &Engine, only: Option<u64>) {
    code_changes::in_others_code(engine, only, |code, start, leader| {
        for site in Host::spread_sites(code, start, &[libc::SYS_rt_sigprocmask]) {
            leader.lead(site.at(), |at| site.code(at, from_site as *const () as u64, false));
        }
    });
}

/// From a system call that sets a mask.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of the system call.
pub(crate) unsafe extern "C" fn from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    registers.come_back_to_site();
    if traps::are_on() {
        return traps::set_mask(registers);
    }
    // SAFETY: the program's own system call.
    let result = unsafe { system::call(libc::SYS_rt_sigprocmask, registers.arguments()) };
    registers.set_result(result as u64);
}
