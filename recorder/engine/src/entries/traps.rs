//! Entries with room for one byte alone: a trap has the kernel send SIGTRAP to the thread, and a handler of ours moves
//! it to the entry's code.
//!
//! A trap ends a process that blocks SIGTRAP, or has no handler for it. So as long as traps may stand in the program's
//! code the kernel has our handler, and no thread blocks the signal: the C library's calls that set masks lead to the
//! engine ([`crate::signals::masks`]). The program's own handler and mask are kept here, and shown to it; a SIGTRAP
//! that is sent to a thread that blocks it waits here, and one that would end the program ends it.
//!
//! The engine's own code runs with all signals blocked. So no trap stands in a file whose functions it calls.

use crate::machine::{Abi, Context, Entries, Handler, Host, HostContext, HostRegisters, Registers};
use crate::signals::actions;
use crate::system::{self, lock};
use crate::threads::slots::SIGNAL_WORDS;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The signal, as a bit of a mask.
pub(crate) const BIT: u64 = 1 << (libc::SIGTRAP - 1);
/// Room for traps: more than for entries, so that few are far from the first place of their search.
const PLACES: usize = 1 << PLACES_SHIFT;
const PLACES_SHIFT: u32 = 12;
const _: () = assert!(PLACES > 2 * lineup_recording::native::entry::MOST);
/// Address of a present or former trap, and the code that it leads to, or 0.
struct TrapSlot {
    pc: AtomicU64,
    to: AtomicU64,
}

/// The handler reads it, so it has no lock.
static TRAPS: [TrapSlot; PLACES] =
    [const { TrapSlot { pc: AtomicU64::new(0), to: AtomicU64::new(0) } }; PLACES];
/// Set while traps may be in the program's code.
static ARE_ON: AtomicBool = AtomicBool::new(false);

/// From now on traps may stand in the program's code, or stand there no more.
pub(super) fn set_on(is_on: bool) {
    ARE_ON.store(is_on, Ordering::Release);
}

/// Whether traps may stand in the program's code.
pub(crate) fn are_on() -> bool {
    ARE_ON.load(Ordering::Acquire)
}

/// Places of the table, in the order of the search for an address.
fn places(pc: u64) -> impl Iterator<Item = &'static TrapSlot> {
    let first = (pc.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - PLACES_SHIFT)) as usize;
    (first..first + PLACES).map(|place| &TRAPS[place % PLACES])
}

/// A coming trap at this place leads to this code. False when there is no room for it.
pub(crate) fn lead(pc: u64, to: u64) -> bool {
    let is_fit = |place: &&TrapSlot| [0, pc].contains(&place.pc.load(Ordering::Acquire));
    let Some(place) = places(pc).find(is_fit) else { return false };
    place.to.store(to, Ordering::Release);
    place.pc.store(pc, Ordering::Release);
    true
}

/// The code that a trap leads to.
fn led_to(pc: u64) -> Option<u64> {
    let is_fit = |place: &&TrapSlot| [0, pc].contains(&place.pc.load(Ordering::Acquire));
    let place = places(pc).find(is_fit).filter(|place| place.pc.load(Ordering::Acquire) == pc)?;
    Some(place.to.load(Ordering::Acquire)).filter(|to| *to != 0)
}

/// Forgets those in code that is unmapped.
pub(crate) fn forget(range: &Range<u64>) {
    let own = TRAPS.iter().filter(|place| range.contains(&place.pc.load(Ordering::Relaxed)));
    own.for_each(|place| place.to.store(0, Ordering::Release));
}

/// Handles SIGTRAP before the program's handler: true when that is not to get it.
///
/// # Safety
/// From the kernel's handler for SIGTRAP, with the kernel's arguments.
pub(crate) unsafe fn takes(info: *mut libc::siginfo_t, context: *mut libc::ucontext_t) -> bool {
    // SAFETY: the caller's promise.
    let (code, registers) = unsafe { ((*info).si_code, HostContext::of(context)) };
    if let Some(to) = Host::trap_at(code, registers).and_then(led_to) {
        registers.set_pc(to);
        return true;
    }
    if !are_on() {
        return false;
    }
    // SAFETY: this thread's own.
    let own = unsafe { &mut (*Host::slots()).own.calls };
    let action = actions::programs(libc::SIGTRAP as usize);
    let is_of_instruction = code > 0;
    match own.blocks_trap != 0 {
        true if is_of_instruction => end_process(info),
        true if own.has_trap == 0 => {
            // SAFETY: the kernel's words, of this number.
            own.trap = unsafe { info.cast::<[u64; SIGNAL_WORDS]>().read() };
            own.has_trap = 1;
        }
        true => {}
        false if action.is_handled() => return false,
        false if action.handler == libc::SIG_IGN as u64 && !is_of_instruction => {}
        false => end_process(info),
    }
    true
}

/// Makes the kernel take its default action when this handler has returned.
fn end_process(info: *mut libc::siginfo_t) {
    actions::put(libc::SIGTRAP as usize, &actions::NO_ACTION);
    send(info as u64);
}

/// Sends the signal to this thread again.
fn send(info: u64) {
    let arguments = [system::process(), system::thread(), libc::SIGTRAP as u64, info, 0, 0];
    // SAFETY: the kernel's data of a signal.
    unsafe { system::own(libc::SYS_rt_tgsigqueueinfo, arguments) };
}

/// Notes whether the program blocks SIGTRAP in this thread. A waiting one arrives when it does not.
fn set_blocked(is_blocked: bool) {
    // SAFETY: this thread's own.
    let own = unsafe { &mut (*Host::slots()).own.calls };
    let is_so = own.blocks_trap == u64::from(is_blocked) && (is_blocked || own.has_trap == 0);
    if is_so || lock::is_borrowed() {
        return;
    }
    own.blocks_trap = is_blocked.into();
    if !is_blocked && std::mem::take(&mut own.has_trap) != 0 {
        send(own.trap.as_ptr() as u64);
    }
}

/// Runs a handler of the program's with these signals blocked; its context is as it would be natively.
///
/// # Safety
/// As the kernel would call it, with the kernel's arguments.
pub(crate) unsafe fn run(
    handler: Handler,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut libc::ucontext_t,
    blocked: u64,
) {
    if !are_on() {
        system::restore_signals(blocked);
        // SAFETY: the caller's promise.
        return unsafe { handler(signal, info, context) };
    }
    let runs_once = actions::programs(signal as usize).flags & libc::SA_RESETHAND as u64 != 0;
    if signal == libc::SIGTRAP && runs_once {
        // For other signals the kernel does so.
        actions::keep(libc::SIGTRAP as usize, &actions::NO_ACTION);
    }
    // SAFETY: this thread's own, and the kernel's context, whose mask has 64 bits.
    let (own, mask) =
        unsafe { (&mut (*Host::slots()).own.calls, (&raw mut (*context).uc_sigmask).cast::<u64>()) };
    let was_blocked = own.blocks_trap != 0;
    own.blocks_trap = u64::from(was_blocked || blocked & BIT != 0);
    // SAFETY: the kernel's context; the program's handler may change it. No other reference to it is used.
    unsafe {
        *mask |= if was_blocked { BIT } else { 0 };
        system::restore_signals(blocked & !BIT);
        handler(signal, info, context);
        set_blocked(*mask & BIT != 0);
        if are_on() {
            *mask &= !BIT;
        }
    }
}

/// Makes the system call `rt_sigprocmask` with these registers, but never lets the kernel block SIGTRAP.
pub(crate) fn set_mask(registers: &mut HostRegisters) {
    let [how, new, old, size, ..] = registers.arguments();
    let call = |new: u64| {
        // SAFETY: the program's own system call; `new` is the program's or a copy.
        unsafe { system::call(libc::SYS_rt_sigprocmask, [how, new, old, size, 0, 0]) }
    };
    let wanted = (new != 0 && size == 8 && are_on()).then(|| system::read_word(new)).flatten();
    // SAFETY: this thread's own.
    let was_blocked = unsafe { (*Host::slots()).own.calls.blocks_trap != 0 };
    let is_blocked = blocks(was_blocked, how as i32, wanted);
    if is_blocked {
        set_blocked(true);
    }
    let result = match wanted {
        Some(mask) => {
            let without = mask & !BIT;
            call(&raw const without as u64)
        }
        None => call(new),
    };
    set_blocked(if result == 0 { is_blocked } else { was_blocked });
    if result == 0 && old != 0 && was_blocked && are_on() {
        let old = old as *mut u64;
        // SAFETY: the kernel has just written there, wherever it lies.
        unsafe { old.write_unaligned(old.read_unaligned() | BIT) };
    }
    registers.set_result(result as u64);
}

/// Whether the program blocks SIGTRAP after a call that sets its mask.
fn blocks(was_blocked: bool, how: i32, wanted: Option<u64>) -> bool {
    let is_named = wanted.is_some_and(|mask| mask & BIT != 0);
    match how {
        _ if wanted.is_none() => was_blocked,
        libc::SIG_BLOCK => was_blocked || is_named,
        libc::SIG_UNBLOCK => was_blocked && !is_named,
        _ => is_named,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_leads_to_its_code_until_that_is_forgotten() {
        // The first place of the search is the same for several of these.
        let all: Vec<u64> = (0..2000).map(|number| 0x1000 + 3 * number).collect();
        assert!(all.iter().all(|pc| lead(*pc, pc + 1)));
        assert!(all.iter().all(|pc| led_to(*pc) == Some(pc + 1)));
        assert_eq!((led_to(0x1001), led_to(0)), (None, None));
        forget(&(0x1000..0x1004));
        assert_eq!([0x1000, 0x1003, 0x1006].map(led_to), [None, None, Some(0x1007)]);
        assert!(lead(0x1003, 5));
        assert_eq!(led_to(0x1003), Some(5));
    }

    #[test]
    fn what_the_program_blocks_follows_from_its_calls() {
        assert!(blocks(false, libc::SIG_BLOCK, Some(BIT | 1)) && !blocks(false, libc::SIG_BLOCK, Some(1)));
        assert!(!blocks(true, libc::SIG_UNBLOCK, Some(BIT)) && blocks(true, libc::SIG_UNBLOCK, Some(1)));
        assert!(!blocks(true, libc::SIG_SETMASK, Some(1)) && blocks(false, libc::SIG_SETMASK, Some(BIT)));
        assert!(blocks(true, libc::SIG_SETMASK, None), "it only asks");
    }
}
