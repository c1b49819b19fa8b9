//! The recorder of an audit: watches the whole program for evidence against moving members of a type. Evidence is kept
//! by type and kind, so that memory grows with neither accesses nor objects.
//!
//! * Memory that code stored to as part of one type's object is marked so ([`shadow`]). Any other store there removes
//!   the mark. Only bytes that are still an object's are evidence when another type's code loads them, or a system call
//!   takes them.
//! * Memory that is given back (`free`, `munmap`, a frame) loses its marks. One function after the other uses a stack,
//!   so bytes there are no evidence of another type.
//! * The C library's copying is followed: a store copies the load just before it when both values are equal.

mod callbacks;
mod calls;
mod seen;
mod shadow;

use crate::ffi::Api;
use lineup_follow::{images, maps};
use lineup_model::image::LoadedImage;
use lineup_model::machine::Machine;
use lineup_recording::audit::{Findings, Global, Site, Table, TypedByte};
use seen::AuditState;
use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The one audit.
static AUDIT: OnceLock<Audit> = OnceLock::new();

/// An instruction that accesses memory.
struct AccessInstruction {
    /// Link address in the program; 0 in other files.
    pc: u64,
    /// Its address.
    runtime_pc: u64,
    site: Option<Site>,
    /// Whether its function addresses its frame by it, as far as its bytes show easily.
    is_on_stack: bool,
    /// Whether it belongs to no region.
    is_outside: bool,
}

/// The threads' shared state.
struct Audit {
    api: Api,
    machine: Machine,
    table: Table,
    /// The emulator's offset from a guest address to a host address.
    guest_base: AtomicU64,
    state: Mutex<State>,
}

/// The state behind the lock.
struct State {
    files: Vec<LoadedImage>,
    /// The program, once it is mapped.
    program: Option<LoadedImage>,
    /// Entries of functions that give heap blocks back.
    frees: Vec<u64>,
    seen: AuditState,
}

/// Reads the table and asks for callbacks.
pub(crate) fn install(api: Api, machine: Machine, path: &str) -> Result<(), String> {
    if !machine.is_host() {
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

fn get() -> Option<&'static Audit> {
    AUDIT.get()
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

impl Audit {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in files that were mapped since the last look.
    fn look_at_files(&self, state: &mut State, pc: u64) {
        if state.files.iter().any(|file| file.contains(pc)) {
            return;
        }
        let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { return };
        let guest_base = self.guest_base.load(Ordering::Relaxed);
        for file in maps::guest_files(&maps) {
            let start = file.start.wrapping_sub(guest_base);
            if state.files.iter().any(|known| known.start == start && known.path == file.path) {
                continue;
            }
            let Some(image) = images::open_image(&file.path, start) else { continue };
            let new = image.loaded.start..image.loaded.end;
            state.files.retain(|known| known.end <= new.start || known.start >= new.end);
            let is_program = Path::new(&self.table.program) == Path::new(&file.path);
            let name = file.path.rsplit('/').next().unwrap_or_default();
            // Only glibc's allocator is known to keep the chunk header that is read.
            if is_program || name.starts_with("libc.so") || name.starts_with("libc-2") {
                state.frees.extend(image.frees());
            }
            if is_program {
                state.program = Some(image.loaded.clone());
            }
            state.files.push(image.loaded);
        }
    }

    /// The instruction at an address, for as long as the process lives.
    fn place(&self, state: &State, runtime_pc: u64, is_on_stack: bool) -> &'static AccessInstruction {
        let program = state.program.as_ref().filter(|program| program.contains(runtime_pc));
        let pc = program.map_or(0, |program| program.to_link(runtime_pc));
        let site = program.and_then(|_| self.table.sites.get(&pc).copied());
        let is_outside = !self.table.regions.iter().any(|region| region.contains(&pc));
        Box::leak(Box::new(AccessInstruction { pc, runtime_pc, site, is_on_stack, is_outside }))
    }

    fn is_free(&self, state: &State, pc: u64) -> bool {
        state.frees.contains(&pc)
    }

    /// The variables of a range of runtime addresses, with their present addresses.
    fn globals<'s>(&'s self, state: &State, range: Range<u64>) -> impl Iterator<Item = Global> + use<'s> {
        let bias = state.program.as_ref().map(|program| program.bias);
        let link = range.start.wrapping_sub(bias.unwrap_or_default());
        let length = range.end.saturating_sub(range.start);
        let before = self.table.globals.partition_point(|global| global.start <= link);
        let near = self.table.globals.get(before.saturating_sub(1)..).unwrap_or_default();
        let near = if bias.is_some() { near } else { &[] };
        near.iter()
            .take_while(move |global| global.start < link.saturating_add(length))
            .filter(move |global| global.start.saturating_add(global.size_bytes) > link)
            .map(move |global| Global {
                start: global.start.wrapping_add(bias.unwrap_or_default()),
                ..*global
            })
    }

    /// The byte of an object in a variable.
    fn global_at(&self, state: &State, address: u64) -> Option<TypedByte> {
        let global = self.globals(state, address..address.saturating_add(1)).next()?;
        let size = *self.table.types.get(usize::from(global.ty))?;
        let offset = address.wrapping_sub(global.start).checked_rem(size)?;
        Some(TypedByte { ty: global.ty, offset: u32::try_from(offset).ok()? })
    }

    /// Writes this process's evidence so far.
    fn write(&self, state: &mut State) {
        state.seen.findings.processes = 1;
        let path = Path::new(&self.table.output).join(std::process::id().to_string());
        // An audit that cannot be written shows in the number of processes.
        let _ = std::fs::write(path, state.seen.findings.to_text());
    }
}
