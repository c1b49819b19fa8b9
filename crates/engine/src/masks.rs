//! Where the program's files set which signals are blocked: system calls of that number lead to the engine while
//! traps may stand in the program's code. The C library's function for any call leads there always, see [`crate::guards`].

use crate::engine::Engine;
use crate::machine::{Entries, Host, HostRegisters, Registers, SpreadSite};
use crate::patch::{self, Near};
use crate::system::{self, File};
use crate::{maps, traps};

/// Leads all system calls that set masks to the engine, or those in the code that an address lies in.
pub(crate) fn lead(engine: &Engine, only: Option<u64>) {
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    for mapping in patch::others_code(maps::read(), lead as *const () as u64) {
        let range = mapping.range;
        if only.is_some_and(|only| !range.contains(&only)) {
            continue;
        }
        let mut code = vec![0; (range.end - range.start) as usize];
        let read = system::read_memory(range.start, &mut code);
        for site in Host::spread_sites(&code[..read], range.start, &[libc::SYS_rt_sigprocmask]) {
            lead_one(engine, (&memory, &mut near), &site);
        }
    }
    engine.code.with(|code| code.near = near);
}

fn lead_one(engine: &Engine, (memory, near): (&File, &mut Vec<Near>), site: &impl SpreadSite) {
    let at = site.at();
    let Ok(place) = patch::place_near(near, &(at..at + Host::JUMP_BYTES)) else { return };
    let Some(code) = site.code(place.next(), from_site as *const () as u64, false) else { return };
    if let Some(to) = place.put(memory, &code) {
        patch::write(engine, memory, at, &[Host::jump(at, to)], &[]);
    }
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
