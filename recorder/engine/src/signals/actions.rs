//! The program's signal actions, and the kernel's.

use crate::system;
use crate::system::lock::Lock;
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

pub(super) const SIGNALS: usize = 65;
/// `SIG_DFL` and `SIG_IGN`, above which handlers lie.
pub(crate) const HIGHEST_CONSTANT: u64 = 1;

/// The program's action for a signal.
pub(crate) fn programs(signal: usize) -> Action {
    let [handler, flags, mask] = HANDLERS[signal].get();
    Action { handler, flags, mask, restorer: 0 }
}

/// Keeps the program's action for a signal.
pub(crate) fn keep(signal: usize, action: &Action) {
    HANDLERS[signal].put([action.handler, action.flags, action.mask]);
}

/// The program's action for a signal.
pub(super) struct ProgramAction {
    handler: AtomicU64,
    flags: AtomicU64,
    mask: AtomicU64,
}

impl ProgramAction {
    const fn new() -> ProgramAction {
        ProgramAction { handler: AtomicU64::new(0), flags: AtomicU64::new(0), mask: AtomicU64::new(0) }
    }

    pub(super) fn get(&self) -> [u64; 3] {
        [&self.handler, &self.flags, &self.mask].map(|word| word.load(Ordering::Acquire))
    }

    pub(super) fn put(&self, values: [u64; 3]) {
        let words = [&self.handler, &self.flags, &self.mask];
        words.into_iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Release));
    }
}

/// Does some work while no thread sets a handler.
pub(crate) fn while_still<R>(work: impl FnOnce() -> R) -> R {
    SETTING.with(|()| work())
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

/// The program's handlers, by signal.
pub(super) static HANDLERS: [ProgramAction; SIGNALS] = [const { ProgramAction::new() }; SIGNALS];
/// Held while a handler is set.
static SETTING: Lock<()> = Lock::new(());
