//! The ends of a function's calls: its returns, and jumps to other functions. Each is redirected through code that
//! stamps it, see [`crate::machine::Timing::stamp`].

use crate::engine::Engine;
use crate::entries::near_code;
use crate::machine::{Entries, Host, TimedFunction, Timing};
use crate::system::address_tables::Map;
use crate::system::{File, mappings};
use crate::timing::stamps;
use lineup_recording::native::head::Entry;
use lineup_recording::native::{entry, timed};
use std::sync::atomic::{AtomicU64, Ordering};

/// Patches the entries and ends of all functions that the command asked for and that have no answer yet. No thread
/// executes them yet.
pub(crate) fn all(engine: &Engine) {
    let shared = &engine.shared;
    let asked = |(number, entry): (usize, &Entry)| {
        let read = |word: &AtomicU64| word.load(Ordering::Acquire);
        let (pc, region, size, room) =
            (read(&entry.address), read(&entry.region), read(&entry.size), read(&entry.room));
        let size = if size == 0 { room } else { size };
        (read(&entry.answer) == 0 && pc != 0 && pc != read(&entry.chooser)).then_some(TimedFunction {
            number,
            pc,
            region,
            size,
            room: room.max(size),
        })
    };
    let maps = mappings::read();
    let is_code = |asked: &TimedFunction| {
        let holds = |mapping: &mappings::Mapping| {
            mapping.is_fixed_code
                && mapping.range.start <= asked.pc
                && asked.pc.saturating_add(asked.size) <= mapping.range.end
        };
        maps.iter().any(holds)
    };
    let mut regions: Map<Vec<TimedFunction>> = Map::default();
    for asked in shared.entries().iter().enumerate().filter_map(asked).filter(is_code) {
        regions.entry(asked.region & !timed::PART).or_default().push(asked);
    }
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    let mut moved = Map::default();
    for (region, asked) in regions {
        let answer = match Host::stamp(engine, (&memory, &mut near), &mut moved, region, &asked) {
            Ok(()) => entry::PATCHED,
            Err(refusal) => refusal.answer(),
        };
        for one in asked {
            shared.entry(one.number).answer.store(answer, Ordering::Release);
        }
    }
    engine.code.with(|code| code.near = near);
}

/// Stamps calls of a function that does nothing, to measure their cost.
pub(crate) fn calibrate(engine: &Engine) -> bool {
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return false };
    let own = calibrate as *const () as u64;
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    let mut place = |code: &[u8]| {
        let place = near_code::place_near(&mut near, &(own..own + Host::JUMP_BYTES)).ok()?;
        place.put(&memory, code)
    };
    let [stamped, bare] = Host::stamped_function(engine);
    let placed = place(&stamped).and_then(|stamped| Some((stamped, place(&bare)?)));
    engine.code.with(|code| code.near = near);
    let Some((stamped, bare)) = placed else { return false };
    stamps::calibrate(engine, stamped, bare);
    true
}
