//! Processes that the guest forks: each is recorded as a process of its own, into the same file.
//!
//! A fork copies one thread and every lock in its present state. So the locks are taken before a fork and given back
//! after it in both processes, by handlers that the C library calls: no lock stays held by another thread.

use crate::output::HeldOutput;
use crate::recorder::{self, CallTotals, Recorder, Translation};
use lineup_follow::selection::Taken;
use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;

/// The locks that no other thread may hold while a process forks.
struct ForkGuards {
    _translation: MutexGuard<'static, Translation>,
    _output: Option<HeldOutput<'static>>,
    _regions: Vec<(MutexGuard<'static, Taken>, MutexGuard<'static, CallTotals>)>,
}

thread_local! {
    static HELD: RefCell<Option<ForkGuards>> = const { RefCell::new(None) };
    /// The virtual CPU whose system call forks.
    static FORKING: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Has the C library call us around every fork.
pub(crate) fn watch_forks() -> Result<(), String> {
    // SAFETY: the functions live as long as the process: the emulator never unloads a plugin.
    match unsafe { libc::pthread_atfork(Some(before), Some(after), Some(after_in_child)) } {
        0 => Ok(()),
        error => Err(format!("cannot watch for forks (error {error})")),
    }
}

/// The guest asks for a process, on this virtual CPU.
pub(crate) fn begin_fork(recorder: &Recorder, vcpu: u32) {
    recorder.count_fork();
    FORKING.set(Some(vcpu));
}

extern "C" fn before() {
    if let Some(recorder) = recorder::get() {
        let held = ForkGuards {
            _translation: recorder.translation(),
            _output: recorder.output.as_ref().map(|output| output.lock()),
            _regions: recorder.regions.iter().map(|region| (region.picker.lock(), region.lock())).collect(),
        };
        HELD.set(Some(held));
    }
}

extern "C" fn after() {
    HELD.set(None);
    FORKING.set(None);
}

extern "C" fn after_in_child() {
    HELD.set(None);
    if let (Some(recorder), Some(vcpu)) = (recorder::get(), FORKING.take()) {
        recorder.become_child(vcpu);
    }
}
