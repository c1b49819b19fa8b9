//! The program's signal actions. The kernel gets a handler of ours ([`crate::signals::delivery`]) for each that the
//! program handles.

use super::actions::{self, Action, HANDLERS, SIGNALS, current, keep, programs, put};
use crate::engine;
use crate::entries::traps;
use crate::machine::{Abi, Host, HostRegisters, Registers};
use crate::signals::delivery;
use crate::system::{self, lock};
use std::ops::Range;

/// `SA_RESTORER`: the kernel returns from a handler through the code that the action names.
const HAS_RESTORER: u64 = 0x0400_0000;

/// Our handler: no signal interrupts it until it has the program's state.
pub(crate) fn our_action() -> Action {
    Action { handler: delivery::on_signal as *const () as u64, flags: 0, restorer: 0, mask: u64::MAX }
}

/// From a system call of the C library.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of a system call.
pub(crate) unsafe extern "C" fn from_site(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    registers.come_back_to_site();
    set_handler(registers);
}

/// Makes the system call with these registers, but gives the kernel our handler.
pub(crate) fn set_handler(registers: &mut HostRegisters) {
    let blocked = system::block_signals();
    let [signal, new, old, size, ..] = registers.arguments();
    registers.set_result(actions::while_still(|| set(signal, new, old, size)) as u64);
    system::restore_signals(blocked);
}

fn set(signal: u64, new: u64, old: u64, size: u64) -> i64 {
    let call = |new: u64| {
        // SAFETY: the program's own system call; `new` is the program's or a copy with our handler.
        unsafe { system::call(libc::SYS_rt_sigaction, [signal, new, old, size, 0, 0]) }
    };
    let Some(known) = HANDLERS.get(signal as usize).filter(|_| size == 8) else { return call(new) };
    let before = known.get();
    let ours = our_action().handler;
    let is_trap = signal == libc::SIGTRAP as u64 && traps::are_on();
    let mut is_handled = false;
    let result = match read(new) {
        // Ours is there until the process becomes another program.
        Some(_) if is_trap && lock::is_borrowed() => call(0),
        Some(action) if is_trap || action.is_handled() && !engine::leaves() => {
            // Set before the kernel knows it: a signal may come at once, on another thread.
            keep(signal as usize, &action);
            is_handled = true;
            let flags = action.flags | libc::SA_SIGINFO as u64;
            let ours = match is_trap {
                true => kernels(&action),
                false => Action { flags, restorer: action.restorer, ..our_action() },
            };
            call(&raw const ours as u64)
        }
        _ => call(new),
    };
    if result != 0 && is_handled {
        known.put(before);
    }
    if result == 0 && old != 0 {
        let old = old as *mut Action;
        // SAFETY: the kernel has just written there.
        unsafe {
            if (*old).handler == ours {
                [(*old).handler, (*old).flags, (*old).mask] = before;
            }
        }
    }
    result
}

/// Sets ours for all handlers that the program has set before the engine came.
pub(crate) fn take_over() {
    let blocked = system::block_signals();
    actions::while_still(|| {
        let is_programs = |action: &Action| action.is_handled() && action.handler != our_action().handler;
        for signal in 1..SIGNALS {
            let Some(action) = current(signal).filter(is_programs) else { continue };
            keep(signal, &action);
            let flags = action.flags | libc::SA_SIGINFO as u64;
            put(signal, &Action { flags, restorer: action.restorer, ..our_action() });
        }
    });
    system::restore_signals(blocked);
}

/// Sets the program's handlers in place of ours. While traps may be in its code, ours for SIGTRAP stays.
pub(crate) fn give_back() {
    let blocked = system::block_signals();
    let stays = |signal: &usize| *signal == libc::SIGTRAP as usize && traps::are_on();
    actions::while_still(|| (1..SIGNALS).filter(|signal| !stays(signal)).for_each(put_programs));
    system::restore_signals(blocked);
}

/// Sets the program's handler for a signal, where ours is.
pub(crate) fn put_programs(signal: usize) {
    let is_ours = |action: &Action| action.handler == our_action().handler;
    if let Some(action) = current(signal).filter(is_ours) {
        put(signal, &Action { restorer: action.restorer, ..programs(signal) });
    }
}

/// Whether the program handles any signal, except those that the C library keeps for itself.
pub(crate) fn are_set() -> bool {
    const OF_LIBRARY: Range<usize> = 32..34;
    let is_ours = |signal: usize| signal == libc::SIGTRAP as usize && traps::are_on();
    let is_handled = |signal: usize| current(signal).is_some_and(|action| action.is_handled());
    let mut programs = (1..SIGNALS).filter(|signal| !OF_LIBRARY.contains(signal) && !is_ours(*signal));
    programs.any(is_handled)
}

/// The action that a pointer of the program points to; `None` when it is null or unreadable, which the kernel then
/// reports.
fn read(at: u64) -> Option<Action> {
    let mut action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let bytes = size_of::<Action>();
    let to = libc::iovec { iov_base: (&raw mut action).cast(), iov_len: bytes };
    let from = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: bytes };
    let arguments = [system::process(), &raw const to as u64, 1, &raw const from as u64, 1, 0];
    // SAFETY: the kernel checks whether the memory is readable.
    let read = unsafe { system::own(libc::SYS_process_vm_readv, arguments) };
    (at != 0 && read == bytes as i64).then_some(action)
}

/// The kernel's action when the program has set this one.
pub(crate) fn kernels(program: &Action) -> Action {
    const ALWAYS: u64 = libc::SA_SIGINFO as u64 | HAS_RESTORER;
    // Flags where the program has no handler: ours must not interrupt its system calls for good, nor need its stack.
    const OURS: u64 = (libc::SA_RESTART | libc::SA_ONSTACK) as u64;
    let own = if program.is_handled() { program.flags & !(libc::SA_RESETHAND as u64) } else { OURS };
    let has_restorer = program.is_handled() && program.flags & HAS_RESTORER != 0;
    let restorer = if has_restorer { program.restorer } else { Host::return_from_signal() };
    Action { flags: own | ALWAYS, restorer, ..our_action() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_keeps_our_handler_whatever_the_program_sets() {
        let programs = Action { handler: 0x1234, flags: libc::SA_RESETHAND as u64, restorer: 7, mask: 1 };
        let once = kernels(&programs);
        assert_eq!(once.handler, our_action().handler);
        assert_eq!(once.flags & (libc::SA_RESETHAND | libc::SA_ONSTACK) as u64, 0);
        assert_eq!(once.restorer, Host::return_from_signal());
        let own = Action { flags: HAS_RESTORER, ..programs };
        assert_eq!(kernels(&own).restorer, 7);
        assert_ne!(kernels(&actions::NO_ACTION).flags & libc::SA_ONSTACK as u64, 0);
    }
}
