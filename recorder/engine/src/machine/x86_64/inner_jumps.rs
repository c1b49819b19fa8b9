//! Leads a region's jumps to its own beginnings past the entries, see [`crate::entries::inner_jumps`].

use crate::engine::Engine;
use crate::entries::code_changes;
use crate::entries::near_code::{self, Near};
use crate::entries::patch::Patch;
use crate::entries::region_points::RegionPoint;
use crate::machine::x86_64::displacement::{self, JUMP_BYTES, Way};
use crate::machine::x86_64::whole_function::{Ends, Part, Whole, Window};
use crate::system::address_tables::Map;
use crate::system::{self, File};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock,
};

/// See [`crate::machine::InnerJumps::lead_within`].
pub(crate) fn lead(engine: &Engine, memory: &File, near: &mut Vec<Near>, entries: &[RegionPoint]) {
    let whole = whole(engine, entries);
    let within = whole.within(&entries.iter().map(|one| one.pc).collect(), &Ends::default());
    let moved = engine.code.with(|code| code.moved.clone());
    for jump in &within.moved {
        retarget_moved(memory, &moved, jump);
    }
    for jump in &within.jumps {
        let Some(to) = moved.get(&jump.near_branch_target()) else { continue };
        let distance = (to.wrapping_sub(jump.next_ip()) as u32).to_le_bytes();
        replace(engine, memory, jump.next_ip() - JUMP_BYTES, (jump.next_ip() - 4, &distance));
    }
    for window in &within.windows {
        let to = moved.get(&window.end.near_branch_target());
        let Some(code) = to.and_then(|to| self::window(window, *to)) else {
            continue;
        };
        place(engine, (memory, near), window, &code);
    }
}

/// The unpatched code of all functions of a region.
fn whole(engine: &Engine, entries: &[RegionPoint]) -> Whole {
    let part = |one: &RegionPoint| {
        let mut bytes = vec![0; one.size as usize];
        let read = system::read_memory(one.pc, &mut bytes);
        bytes.truncate(read);
        let moved_end = engine.code.with(|code| {
            code.unpatch(one.pc, &mut bytes);
            let moved = Decoder::with_ip(64, &bytes, one.pc, DecoderOptions::NONE).into_iter().take_while(
                |instruction| {
                    code.moved.contains_key(&instruction.ip()) || instruction.ip() < one.pc + JUMP_BYTES
                },
            );
            moved.last().map_or(one.pc, |last| last.next_ip())
        });
        let range = one.pc..one.pc + one.size;
        (Part { room_end: range.end, range, moved_end }, bytes)
    };
    let read = |at: u64, bytes: usize| {
        let mut word = [0; 8];
        (system::read_memory(at, &mut word[..bytes]) == bytes).then(|| u64::from_le_bytes(word))
    };
    let mut whole = Whole::new(entries.iter().map(part).collect(), read);
    let ranges = entries.iter().map(|one| one.pc..one.pc + one.size);
    whole.targets.extend(ranges.flat_map(|range| displacement::targets_around(&range)));
    whole
}

/// Leads a moved jump to the new place of its target.
pub(crate) fn retarget_moved(memory: &File, moved: &Map<u64>, jump: &Instruction) {
    const MOST_BYTES: usize = 15;
    let (Some(at), Some(to)) = (moved.get(&jump.ip()), moved.get(&jump.near_branch_target())) else { return };
    let mut bytes = [0; MOST_BYTES];
    let read = system::read_memory(*at, &mut bytes);
    let copy = Decoder::with_ip(64, &bytes[..read], *at, DecoderOptions::NONE).decode();
    if copy.near_branch_target() == jump.near_branch_target() && copy.len() as u64 >= JUMP_BYTES {
        let distance = (to.wrapping_sub(copy.next_ip()) as u32).to_le_bytes();
        memory.write_at(&distance, copy.next_ip() - 4);
    }
}

/// The instructions of a window, the last of which leads to another place; `None` when they cannot be made.
pub(crate) fn window(window: &Window, to: u64) -> Option<Vec<Instruction>> {
    let mut code = window.moved.clone();
    let mut jump = window.end;
    jump.set_near_branch64(to);
    code.push(jump);
    if jump.flow_control() == FlowControl::ConditionalBranch {
        code.push(Instruction::with_branch(Code::Jmp_rel32_64, window.end.next_ip()).ok()?);
    }
    Some(code)
}

/// Puts a window's code near it, and leads the window there.
fn place(engine: &Engine, (memory, near): (&File, &mut Vec<Near>), window: &Window, code: &[Instruction]) {
    let Ok(place) = near_code::place_near(near, &(window.at..window.at + JUMP_BYTES)) else { return };
    let at = place.next();
    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
    let Ok(encoded) = BlockEncoder::encode(64, InstructionBlock::new(code, at), options) else { return };
    if place.put(memory, &encoded.code_buffer).is_none() {
        return;
    }
    let own = code.iter().zip(&encoded.new_instruction_offsets).filter(|(one, _)| one.ip() != 0);
    let own: Vec<(u64, u64)> = own.map(|(one, offset)| (one.ip(), at + u64::from(*offset))).collect();
    engine.code.with(|code| code.moved.extend(own));
    for (at, bytes) in Way::Jump.writes(window.at, at) {
        replace(engine, memory, window.at, (at, &bytes));
    }
}

/// Writes bytes among the five from `pc` on. The engine takes them for the program's original ones.
fn replace(engine: &Engine, memory: &File, pc: u64, (at, bytes): (u64, &[u8])) {
    let mut original = vec![0; JUMP_BYTES as usize];
    let is_patched = engine.code.with(|code| code.patches.iter().any(|patch| patch.pc == pc));
    if is_patched || system::read_memory(pc, &mut original) != original.len() {
        return;
    }
    let mut written = original.clone();
    let offset = (at - pc) as usize;
    let Some(changed) = written.get_mut(offset..offset + bytes.len()) else { return };
    changed.copy_from_slice(bytes);
    engine.code.with(|code| code.keep_patches(vec![Patch { pc, original, written }]));
    if !code_changes::change(engine, memory, at, bytes) {
        engine.code.with(|code| code.patches.retain(|patch| patch.pc != pc));
    }
}

/// See [`crate::machine::Entries::ends_without_call`].
pub(crate) fn ends_without_call(code: &[u8], start: u64) -> bool {
    let last = Decoder::with_ip(64, code, start, DecoderOptions::NONE).into_iter().last();
    last.is_some_and(|last| last.flow_control() != FlowControl::Call)
}
