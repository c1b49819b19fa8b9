//! The program's signal actions. The kernel gets a handler of ours ([`crate::signals::delivery`]) for each that the program
//! handles.

use crate::engine;
use crate::entries::traps;
use crate::machine::{HostRegisters, Registers};
use crate::signals::delivery;
use crate::system;
use crate::system::lock;
use crate::system::lock::Lock;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A signal action as the kernel takes it.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Action {
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) restorer: u64,
    pub(crate) mask: u64,
}

impl Action {
    /// Whether it is a handler of the program.
    pub(crate) fn is_handled(&self) -> bool {
        self.handler > HIGHEST_CONSTANT
    }
}

/// The kernel's action where nothing was set.
pub(crate) const NO_ACTION: Action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };

/// Our handler: no signal interrupts it until it has the program's state.
pub(crate) fn our_action() -> Action {
    Action { handler: delivery::on_signal as *const () as u64, flags: 0, restorer: 0, mask: u64::MAX }
}

/// The program's action for a signal.
pub(crate) fn programs(signal: usize) -> Action {
    let [handler, flags, mask] = HANDLERS[signal].get();
    Action { handler, flags, mask, restorer: 0 }
}

/// Keeps the program's action for a signal.
pub(crate) fn keep(signal: usize, action: &Action) {
    HANDLERS[signal].put([action.handler, action.flags, action.mask]);
}

const SIGNALS: usize = 65;
/// `SIG_DFL` and `SIG_IGN`, above which handlers lie.
pub(crate) const HIGHEST_CONSTANT: u64 = 1;

/// The program's action for a signal.
struct Set {
    handler: AtomicU64,
    flags: AtomicU64,
    mask: AtomicU64,
}

impl Set {
    const fn new() -> Set {
        Set { handler: AtomicU64::new(0), flags: AtomicU64::new(0), mask: AtomicU64::new(0) }
    }

    fn get(&self) -> [u64; 3] {
        [&self.handler, &self.flags, &self.mask].map(|word| word.load(Ordering::Acquire))
    }

    fn put(&self, values: [u64; 3]) {
        let words = [&self.handler, &self.flags, &self.mask];
        words.into_iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Release));
    }
}

/// The program's handlers, by signal.
static HANDLERS: [Set; SIGNALS] = [const { Set::new() }; SIGNALS];
/// Held while a handler is set.
static SETTING: Lock<()> = Lock::new(());

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

/// Does some work while no thread sets a handler.
pub(crate) fn while_still<R>(work: impl FnOnce() -> R) -> R {
    SETTING.with(|()| work())
}

/// Makes the system call with these registers, but gives the kernel our handler.
pub(crate) fn set_handler(registers: &mut HostRegisters) {
    let blocked = system::block_signals();
    let [signal, new, old, size, ..] = registers.arguments();
    registers.set_result(SETTING.with(|()| set(signal, new, old, size)) as u64);
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
                true => traps::kernels(&action),
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
    SETTING.with(|()| {
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
    SETTING.with(|()| (1..SIGNALS).filter(|signal| !stays(signal)).for_each(put_programs));
    system::restore_signals(blocked);
}

/// Sets the program's handler for a signal, where ours is.
pub(crate) fn put_programs(signal: usize) {
    let is_ours = |action: &Action| action.handler == our_action().handler;
    if let Some(action) = current(signal).filter(is_ours) {
        put(signal, &Action { restorer: action.restorer, ..programs(signal) });
    }
}

/// The kernel's action for a signal.
pub(crate) fn current(signal: usize) -> Option<Action> {
    let mut action = Action { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let arguments = [signal as u64, 0, &raw mut action as u64, 8, 0, 0];
    // SAFETY: the kernel writes one action there.
    let done = unsafe { system::own(libc::SYS_rt_sigaction, arguments) };
    (done == 0).then_some(action)
}

/// Sets the kernel's action for a signal.
pub(crate) fn put(signal: usize, action: &Action) {
    // SAFETY: a handler of ours or the program's own.
    unsafe {
        system::own(libc::SYS_rt_sigaction, [signal as u64, std::ptr::from_ref(action) as u64, 0, 8, 0, 0])
    };
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
