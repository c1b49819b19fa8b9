//! Changes of the program's code, made at once or listed for the command.

use crate::engine::{self, Engine};
use crate::entries::near_code::{Near, place_near};
use crate::entries::patch::Patch;
use crate::machine::{Entries, Host, Write};
use crate::system::lock::Lock;
use crate::system::{self, File, mappings};
use std::sync::atomic::{AtomicBool, Ordering};

/// Set while threads of the program may execute the code to change: the command makes the changes.
static DEFERS: AtomicBool = AtomicBool::new(false);

/// From now on changes of the program's code are listed but not made, or made at once.
pub(crate) fn defer_writes(defers: bool) {
    DEFERS.store(defers, Ordering::Release);
}

/// Whether changes of the program's code are listed.
pub(crate) fn defers() -> bool {
    DEFERS.load(Ordering::Acquire)
}

/// Held while the program's code is changed.
static CHANGING: Lock<()> = Lock::new(());

/// Changes the program's code by `work`, and returns its result. `None` if the engine is about to go: then the command
/// takes all changes back, and later changes would lead to unmapped memory.
pub(crate) fn unless_leaving<R>(work: impl FnOnce() -> R) -> Option<R> {
    CHANGING.with(|()| (!engine::leaves()).then(work))
}

/// Does some work while no thread changes the program's code.
pub(crate) fn while_still<R>(work: impl FnOnce() -> R) -> R {
    CHANGING.with(|()| work())
}

/// Waits for changes that have begun. No change begins any more when the engine is about to go.
pub(crate) fn settle() {
    CHANGING.with(|()| ());
}

/// Changes the program's code, or lists the change. False when it could not.
pub(crate) fn change(engine: &Engine, memory: &File, at: u64, bytes: &[u8]) -> bool {
    let mut old = [0; 8];
    let Some(old) = old.get_mut(..bytes.len()) else { return false };
    let is_changed = unless_leaving(|| {
        system::read_memory(at, old) == old.len()
            && engine.shared.note_write(at, old, bytes)
            && (defers() || memory.write_at(bytes, at))
    });
    is_changed.unwrap_or(false)
}

/// The code of files, except the file that has the code at `own`: the engine's own calls stay unchanged.
fn others_code(maps: Vec<mappings::Mapping>, own: u64) -> Vec<mappings::Mapping> {
    let ours = maps.iter().find(|mapping| mapping.range.contains(&own)).map(|mapping| mapping.path.clone());
    let is_others = |mapping: &mappings::Mapping| ours.as_ref() != Some(&mapping.path);
    maps.into_iter()
        .filter(|mapping| mapping.is_fixed_code && mapping.is_of_file && is_others(mapping))
        .collect()
}

/// Redirects places in the program's code to code of the engine.
pub(crate) struct Leader<'l> {
    engine: &'l Engine,
    memory: &'l File,
    near: &'l mut Vec<Near>,
}

impl Leader<'_> {
    /// Has a jump at a place lead to code that is made for its address. Does nothing where there is no room or no code.
    pub(crate) fn lead(&mut self, at: u64, code: impl FnOnce(u64) -> Option<Vec<u8>>) {
        let Ok(place) = place_near(self.near, &(at..at + Host::JUMP_BYTES)) else { return };
        let Some(code) = code(place.next()) else { return };
        if let Some(to) = place.put(self.memory, &code) {
            write(self.engine, self.memory, at, &[Host::jump(at, to)], &[]);
        }
    }
}

/// Searches the code of all files except the engine's own, or of the file that holds an address. Passes on the bytes
/// and their address.
pub(crate) fn in_others_code(
    engine: &Engine,
    only: Option<u64>,
    mut look: impl FnMut(&[u8], u64, &mut Leader<'_>),
) {
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    for mapping in others_code(mappings::read(), others_code as *const () as u64) {
        let range = mapping.range;
        if only.is_some_and(|only| !range.contains(&only)) {
            continue;
        }
        let mut code = vec![0; (range.end - range.start) as usize];
        let read = system::read_memory(range.start, &mut code);
        look(&code[..read], range.start, &mut Leader { engine, memory: &memory, near: &mut near });
    }
    engine.code.with(|code| code.near = near);
}

/// Writes the redirection of a place; for an entry, with the new places of its instructions. Its record is removed
/// again when it cannot be written.
pub(crate) fn write(engine: &Engine, memory: &File, pc: u64, writes: &[Write], moved: &[(u64, u64)]) -> bool {
    let mut patches = Vec::new();
    for (at, bytes) in writes {
        let mut original = vec![0; bytes.len()];
        if system::read_memory(*at, &mut original) != original.len() {
            return false;
        }
        patches.push(Patch { pc: *at, original, written: bytes.clone() });
    }
    let is_of_these = |patch: &Patch| writes.iter().any(|(at, _)| patch.pc == *at);
    engine.code.with(|code| {
        code.keep_patches(patches);
        if !moved.is_empty() {
            code.entries.insert(pc);
        }
        code.moved.extend(moved.iter().copied());
    });
    let is_written = writes.iter().all(|(at, bytes)| change(engine, memory, *at, bytes));
    if !is_written {
        engine.code.with(|code| {
            code.patches.retain(|patch| !is_of_these(patch));
            if !moved.is_empty() {
                code.entries.remove(&pc);
            }
            moved.iter().for_each(|(from, _)| {
                code.moved.remove(from);
            });
        });
    }
    is_written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_own_system_calls_are_let_be() {
        let mapping = |start: u64, path: &str| mappings::Mapping {
            range: start..start + 0x1000,
            is_fixed_code: true,
            is_code: true,
            is_of_file: path.starts_with('/'),
            path: path.into(),
            offset: 0,
        };
        let all = vec![mapping(0x1000, "/p"), mapping(0x3000, "/engine"), mapping(0x5000, "[vdso]")];
        let others = others_code([all, vec![mapping(0x8000, "/engine")]].concat(), 0x3010);
        assert_eq!(others.iter().map(|mapping| mapping.range.start).collect::<Vec<_>>(), [0x1000]);
        assert!(
            mappings::read().iter().any(|mapping| mapping.range.contains(&(others_code as *const () as u64)))
        );
    }
}
