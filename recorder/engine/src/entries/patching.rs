//! Entries of watched functions: their first bytes are replaced by a jump, or by a redirection to one.

use crate::engine;
use crate::engine::Engine;
use crate::entries::near_code::{Near, place_near};
use crate::entries::patch::Patch;
use crate::entries::{choosers, inner_jumps, traps};
use crate::machine::{Abi, CallSite, Displaced, Entries, EntryData, Gates, Host, Led, Write};
use crate::signals::{handlers, masks};
use crate::syscalls::{calls, guards, processes};
use crate::system;
use crate::system::File;
use crate::system::lock::Lock;
use crate::system::mappings;
use crate::timing::ends;
use lineup_recording::native::{Refusal, entry, note, state, timed, word};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks the command for entries in files that were mapped just now, and patches them: no thread executes them yet.
/// `blocked` are the signals that the program blocks in this thread.
pub(crate) fn more(engine: &Engine, blocked: u64) {
    let shared = &engine.shared;
    shared.word(word::STATE).store(state::ASKS_AGAIN, Ordering::Release);
    if shared.wait_for_answer() {
        watch_allocators(engine);
        choosers::wait_for_all(engine);
        all(engine, blocked);
    }
    shared.word(word::STATE).store(state::RUNS, Ordering::Release);
}

/// Blocks that begin with an allocator hand over to the engine from now on, when a whole program's allocations are
/// noted.
pub(crate) fn watch_allocators(engine: &Engine) {
    if engine.whole.is_some() {
        engine.code.with(|code| engine.shared.allocators().for_each(|(pc, _)| code.watch(engine, pc)));
    }
}

/// Patches all entries that the command asked for and that have no answer yet, and answers for each. No thread executes
/// them yet: the process has one thread, or their file was mapped just now. `blocked` as for [`more`].
pub(crate) fn all(engine: &Engine, blocked: u64) {
    let shared = &engine.shared;
    if shared.word(word::MODE).load(Ordering::Relaxed) == timed::MODE {
        return ends::all(engine);
    }
    let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
    let maps = mappings::read();
    let is_code = |range: &Range<u64>| {
        let holds = |mapping: &mappings::Mapping| {
            mapping.is_fixed_code && mapping.range.start <= range.start && range.end <= mapping.range.end
        };
        maps.iter().any(holds)
    };
    let has_begun = engine.is_on.load(Ordering::Acquire) == 1;
    let had_traps = traps::are_on();
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    for number in 0..entries {
        let read = |field| shared.entry(number, field).load(Ordering::Acquire);
        if read(entry::CHOOSER) != 0 && read(entry::CHOOSER) == read(entry::ADDRESS) {
            continue;
        }
        let pc = read(entry::ADDRESS);
        let about = (read(entry::REGION), read(entry::SIZE), read(entry::ROOM));
        let range = pc..pc.saturating_add(about.1.max(Host::JUMP_BYTES.min(about.2)).max(1));
        if read(entry::ANSWER) != 0 || !is_code(&range) {
            continue;
        }
        let prepared = prepare(engine, (&memory, &mut near), (number, pc), about, blocked);
        let answer = match prepared {
            Ok(led) if write(engine, &memory, pc, &led.writes, &led.moved) => {
                if led.is_trap {
                    shared.tell(note::TRAP, about.0.to_string().as_bytes());
                }
                entry::PATCHED
            }
            // Other threads map and unmap at the same time. The next mapping leads to another try.
            Ok(_) | Err(Refusal::NoRoom) if has_begun => continue,
            Ok(_) => Refusal::NoRoom.answer(),
            Err(refusal) => refusal.answer(),
        };
        shared.entry(number, entry::ANSWER).store(answer, Ordering::Release);
    }
    inner_jumps::all(engine, &memory, &mut near);
    engine.code.with(|code| code.near = near);
    if has_begun && !had_traps && traps::are_on() {
        masks::lead(engine, None);
    }
}

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

/// Redirects the C library's system calls that the engine must handle: those that set a signal's handler, and those
/// that map and unmap memory. Calls that start a process or a program lead to the engine before they are made.
pub(crate) fn system_calls(engine: &Engine) {
    let mut led: Vec<Led> = vec![
        (libc::SYS_mmap, calls::map_from_site as *const () as u64, false),
        (libc::SYS_munmap, calls::unmap_from_site as *const () as u64, false),
        (libc::SYS_mremap, calls::remap_from_site as *const () as u64, false),
        (libc::SYS_clone, processes::before_clone as *const () as u64, true),
        (libc::SYS_execve, processes::before_exec as *const () as u64, true),
        (libc::SYS_execveat, processes::before_exec_at as *const () as u64, true),
    ];
    led.extend(Host::FORK.map(|fork| (fork, processes::before_fork as *const () as u64, true)));
    if engine.shared.word(word::MODE).load(Ordering::Relaxed) != timed::MODE {
        led.push((libc::SYS_rt_sigaction, handlers::from_site as *const () as u64, false));
    }
    in_others_code(engine, None, |code, start, leader| {
        for (site, (number, function, goes_on)) in sites(code, &led) {
            let at = start + site.offset as u64;
            let in_place =
                Host::in_place_of_call(*function, goes_on.then_some(*number as u32), at + site.bytes);
            leader.lead(at, |_| Some(in_place));
        }
    });
    guards::lead(engine, None);
    if traps::are_on() {
        masks::lead(engine, None);
    }
}

/// System calls in code that are redirected to functions.
fn sites<'a>(code: &'a [u8], led: &'a [Led]) -> impl Iterator<Item = (CallSite, &'a Led)> {
    let is_of = |site: &CallSite| led.iter().find(|(number, ..)| *number == site.number);
    Host::call_sites(code).filter_map(move |site| Some((site, is_of(&site)?)))
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

/// The code that an entry leads to.
struct WayIn {
    is_trap: bool,
    /// The writes that lead there.
    writes: Vec<Write>,
    /// New places of the replaced instructions.
    moved: Vec<(u64, u64)>,
}

/// Writes the code that the entry is to jump to.
fn prepare(
    engine: &Engine,
    near: (&File, &mut Vec<Near>),
    (number, pc): (usize, u64),
    (region, size, room): (u64, u64, u64),
    blocked: u64,
) -> Result<WayIn, Refusal> {
    let displaced = match Host::displace(pc, size, room) {
        Err(why) if engine.whole.is_some() => return Err(why),
        Err(_) => {
            let displaced = Host::displace_by_trap(pc, size, room)?;
            traps::permit(engine, pc, blocked)?;
            displaced
        }
        Ok(displaced) => displaced,
    };
    refuse_sequence(engine, pc, &displaced)?;
    let multiplier = engine.shared.word(word::MULTIPLIER).load(Ordering::Relaxed);
    let words = engine.shared.region(region).ok_or(Refusal::CannotMove)?;
    let entry = Box::leak(Box::new(EntryData {
        region: words.as_ptr() as u64,
        multiplier,
        pc,
        region_number: region,
    }));
    let thunk = choosers::code_before(engine, number, Host::thunk(&raw const *entry as u64, engine.entry));
    place_before(near, pc, thunk, &displaced)
}

/// Refuses to move instructions that must stay where the kernel expects them.
fn refuse_sequence(engine: &Engine, pc: u64, displaced: &impl Displaced) -> Result<(), Refusal> {
    let zones = engine.code.with(|code| code.zones_at(pc));
    if displaced.breaks(&zones) { Err(Refusal::Restartable) } else { Ok(()) }
}

/// Writes code, and after it the entry's moved instructions, for the entry to lead to.
fn place_before(
    (memory, near): (&File, &mut Vec<Near>),
    pc: u64,
    mut code: Vec<u8>,
    displaced: &impl Displaced,
) -> Result<WayIn, Refusal> {
    let place = place_near(near, &(pc..pc + Host::JUMP_BYTES))?;
    let at = place.next();
    let moved = displaced.moved_to(at + code.len() as u64).ok_or(Refusal::CannotMove)?;
    code.extend(moved.code);
    place.put(memory, &code).ok_or(Refusal::NoRoom)?;
    if displaced.is_trap() && !traps::lead(pc, at) {
        return Err(Refusal::NoRoom);
    }
    Ok(WayIn { is_trap: displaced.is_trap(), writes: displaced.writes(pc, at), moved: moved.places })
}

/// Leads an entry of this size, with this room, to code that continues with the replaced instructions.
pub(crate) fn lead_entry(
    engine: &Engine,
    memory: &File,
    pc: u64,
    (size, room): (u64, u64),
    before: Vec<u8>,
) -> Result<(), Refusal> {
    let displaced = Host::displace(pc, size, room)?;
    refuse_sequence(engine, pc, &displaced)?;
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    let led = place_before((memory, &mut near), pc, before, &displaced);
    engine.code.with(|code| code.near = near);
    let led = led?;
    match write(engine, memory, pc, &led.writes, &led.moved) {
        true => Ok(()),
        false => Err(Refusal::NoRoom),
    }
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
