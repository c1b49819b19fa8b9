//! Entries of watched functions: their first bytes are replaced by a jump, or by a redirection to one.

use crate::engine::Engine;
use crate::entries::code_changes::write;
use crate::entries::near_code::{Near, place_near};
use crate::entries::{choosers, inner_jumps, trap_permission, traps};
use crate::machine::{Displaced, Entries, EntryData, Gates, Host, Write};
use crate::signals::masks;
use crate::system::{File, mappings};
use crate::timing::ends;
use lineup_recording::native::{Refusal, entry, note, timed};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// Blocks that begin with an allocator hand over to the engine from now on, when a whole program's allocations are
/// noted.
pub(crate) fn watch_allocators(engine: &Engine) {
    if engine.whole.is_some() {
        engine.code.with(|code| engine.shared.allocators().for_each(|(pc, _)| code.watch(engine, pc)));
    }
}

/// Patches all entries that the command asked for and that have no answer yet, and answers for each. No thread executes
/// them yet: the process has one thread, or their file was mapped just now. `blocked` are the signals that the
/// program blocks in this thread.
pub(crate) fn all(engine: &Engine, blocked: u64) {
    let shared = &engine.shared;
    if shared.control().mode.load(Ordering::Relaxed) == timed::MODE {
        return ends::all(engine);
    }
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
    for (number, entry) in shared.entries().iter().enumerate() {
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        let (pc, chooser) = (read(&entry.address), read(&entry.chooser));
        if chooser != 0 && chooser == pc {
            continue;
        }
        let about = (read(&entry.region), read(&entry.size), read(&entry.room));
        let range = pc..pc.saturating_add(about.1.max(Host::JUMP_BYTES.min(about.2)).max(1));
        if read(&entry.answer) != 0 || !is_code(&range) {
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
        entry.answer.store(answer, Ordering::Release);
    }
    inner_jumps::all(engine, &memory, &mut near);
    engine.code.with(|code| code.near = near);
    if has_begun && !had_traps && traps::are_on() {
        masks::lead(engine, None);
    }
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
            trap_permission::permit(engine, pc, blocked)?;
            displaced
        }
        Ok(displaced) => displaced,
    };
    refuse_sequence(engine, pc, &displaced)?;
    let multiplier = engine.shared.control().multiplier.load(Ordering::Relaxed);
    let counts = engine.shared.region(region).ok_or(Refusal::CannotMove)?;
    let entry = Box::leak(Box::new(EntryData {
        region: &raw const *counts as u64,
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
