//! The state of the one audit.

use super::seen::AuditState;
use crate::ffi::Api;
use lineup_follow::{images, maps};
use lineup_model::image::LoadedImage;
use lineup_model::machine::CodeMachine;
use lineup_recording::audit::{Global, Site, Table, TypedByte};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The one audit.
pub(super) static AUDIT: OnceLock<Audit> = OnceLock::new();

/// An instruction that accesses memory.
pub(super) struct AccessInstruction {
    /// Link address in the program; 0 in other files.
    pub(super) pc: u64,
    /// Its address.
    pub(super) runtime_pc: u64,
    pub(super) site: Option<Site>,
    /// Whether its function addresses its frame by it, as far as its bytes show easily.
    pub(super) is_on_stack: bool,
    /// Whether it belongs to no region.
    pub(super) is_outside: bool,
}

/// The threads' shared state.
pub(super) struct Audit {
    pub(super) api: Api,
    pub(super) machine: CodeMachine,
    pub(super) table: Table,
    /// The emulator's offset from a guest address to a host address.
    pub(super) guest_base: AtomicU64,
    pub(super) state: Mutex<State>,
}

/// The state behind the lock.
pub(super) struct State {
    pub(super) files: Vec<LoadedImage>,
    /// The program, once it is mapped.
    pub(super) program: Option<LoadedImage>,
    /// Entries of functions that give heap blocks back.
    pub(super) frees: Vec<u64>,
    pub(super) seen: AuditState,
}

pub(super) fn get() -> Option<&'static Audit> {
    AUDIT.get()
}

impl Audit {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in files that were mapped since the last look.
    pub(super) fn look_at_files(&self, state: &mut State, pc: u64) {
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
    pub(super) fn place(
        &self,
        state: &State,
        runtime_pc: u64,
        is_on_stack: bool,
    ) -> &'static AccessInstruction {
        let program = state.program.as_ref().filter(|program| program.contains(runtime_pc));
        let pc = program.map_or(0, |program| program.to_link(runtime_pc));
        let site = program.and_then(|_| self.table.sites.get(&pc).copied());
        let is_outside = !self.table.regions.iter().any(|region| region.contains(&pc));
        Box::leak(Box::new(AccessInstruction { pc, runtime_pc, site, is_on_stack, is_outside }))
    }

    pub(super) fn is_free(&self, state: &State, pc: u64) -> bool {
        state.frees.contains(&pc)
    }

    /// The variables of a range of runtime addresses, with their present addresses.
    pub(super) fn globals<'s>(
        &'s self,
        state: &State,
        range: Range<u64>,
    ) -> impl Iterator<Item = Global> + use<'s> {
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
    pub(super) fn global_at(&self, state: &State, address: u64) -> Option<TypedByte> {
        let global = self.globals(state, address..address.saturating_add(1)).next()?;
        let size = *self.table.types.get(usize::from(global.ty))?;
        let offset = address.wrapping_sub(global.start).checked_rem(size)?;
        Some(TypedByte { ty: global.ty, offset: u32::try_from(offset).ok()? })
    }

    /// Writes this process's evidence so far.
    pub(super) fn write(&self, state: &mut State) {
        state.seen.findings.processes = 1;
        let path = Path::new(&self.table.output).join(std::process::id().to_string());
        // An audit that cannot be written shows in the number of processes.
        let _ = std::fs::write(path, state.seen.findings.to_text());
    }
}
