//! The beginning of an audit, and its lock around forks.

use super::callbacks;
use super::seen::AuditState;
use super::state::{AUDIT, Audit, State, get};
use crate::ffi::Api;
use lineup_model::machine::CodeMachine;
use lineup_recording::audit::{Findings, Table};
use std::cell::RefCell;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};

/// Reads the table and asks for callbacks.
pub(crate) fn install(api: Api, machine: CodeMachine, path: &str) -> Result<(), String> {
    if !machine.machine().is_host() {
        return Err("an audit is of programs of this machine".into());
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the audit's table {path}: {error}"))?;
    let mut table = Table::parse(&text).map_err(|error| error.to_string())?;
    table.globals.sort_by_key(|global| global.start);
    let state = State {
        files: Vec::new(),
        program: None,
        frees: Vec::new(),
        seen: AuditState::new(table.types.clone()),
    };
    let audit = Audit { api, machine, table, guest_base: AtomicU64::new(0), state: Mutex::new(state) };
    AUDIT.set(audit).map_err(|_| "the plugin was loaded twice".to_owned())?;
    // SAFETY: the functions live as long as the process: the emulator never unloads a plugin.
    match unsafe { libc::pthread_atfork(Some(before_fork), Some(after_fork), Some(after_fork_in_child)) } {
        0 => callbacks::register(&api),
        error => return Err(format!("cannot watch for forks (error {error})")),
    }
    Ok(())
}

thread_local! {
    /// A fork copies one thread and every lock in its present state, so the lock is held around it.
    static HELD: RefCell<Option<MutexGuard<'static, State>>> = const { RefCell::new(None) };
}

extern "C" fn before_fork() {
    HELD.set(get().map(Audit::state));
}

extern "C" fn after_fork() {
    HELD.set(None);
}

/// A child counts its own evidence.
extern "C" fn after_fork_in_child() {
    if let Some(mut state) = HELD.take() {
        state.seen.findings = Findings::default();
    }
}
