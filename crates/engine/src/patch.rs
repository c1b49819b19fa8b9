//! Entries of watched functions: five bytes are replaced by a jump.

use crate::engine::Engine;
use crate::gates::{self, Entry};
use crate::maps;
use crate::system::{self, File};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Decoder, DecoderOptions, FlowControl, Instruction, InstructionBlock,
};
use lineup_recording::native::{Refusal, entry, word};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// A jump's bytes.
const JUMP_BYTES: u64 = 5;
/// Memory near an entry, for as many as fit.
const NEAR_BYTES: u64 = 1 << 16;
/// Code of one entry at most.
const MOST_BYTES: u64 = 160;
/// Functions are looked through up to here for jumps to their beginning.
const MOST_LOOKED_AT: u64 = 1 << 20;

/// Memory that jumps from some entries reach, while it is written.
struct Near {
    at: u64,
    used: u64,
}

/// Patches all entries that the command asked for, and answers for each. Only while the process has one thread.
pub(crate) fn all(engine: &Engine, common: u64, multiplier: u64) {
    let shared = &engine.shared;
    let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
    let mut near: Vec<Near> = Vec::new();
    let mut patches = Vec::new();
    for number in 0..entries {
        let read = |field| shared.entry(number, field).load(Ordering::Acquire);
        let (pc, region, size) = (read(entry::ADDRESS), read(entry::REGION), read(entry::SIZE));
        let answer = match prepare(engine, &mut near, pc, region, size, common, multiplier) {
            Ok((target, moved)) => {
                patches.push((number, pc, target, moved));
                entry::PATCHED
            }
            Err(refusal) => refusal.answer(),
        };
        shared.entry(number, entry::ANSWER).store(answer, Ordering::Release);
    }
    let all = near.iter().all(|near| {
        system::protect(near.at as *mut u8, NEAR_BYTES as usize, libc::PROT_READ | libc::PROT_EXEC)
    });
    let memory = File::open(b"/proc/self/mem\0", libc::O_RDWR).filter(|_| all);
    for (number, pc, target, moved) in patches {
        let is_written = memory.as_ref().is_some_and(|memory| write(engine, memory, pc, target, &moved));
        if !is_written {
            shared.entry(number, entry::ANSWER).store(Refusal::NoRoom.answer(), Ordering::Release);
        }
    }
}

/// System calls of the C library that the engine must hear of lead to these functions: those that set a signal's
/// handler and those that unmap memory.
pub(crate) fn system_calls(engine: &Engine) {
    lead(engine, libc::SYS_rt_sigaction as u8, crate::signals::from_site as *const () as u64);
    lead(engine, libc::SYS_munmap as u8, crate::engine::unmap_from_site as *const () as u64);
}

/// Leads `mov eax, number; syscall` to a function, wherever it stands in the code of files.
fn lead(engine: &Engine, number: u8, function: u64) {
    let call = [0xb8, number, 0, 0, 0, 0x0f, 0x05];
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    for mapping in maps::read().into_iter().filter(|mapping| mapping.is_fixed_code && mapping.is_of_file) {
        let range = mapping.range;
        // SAFETY: mapped readable, as the kernel has just told; nothing is unmapped before the program runs.
        let code = unsafe {
            std::slice::from_raw_parts(range.start as *const u8, (range.end - range.start) as usize)
        };
        let sites = code.windows(call.len()).enumerate().filter(|(_, bytes)| *bytes == call);
        for site in sites.map(|(offset, _)| range.start + offset as u64).collect::<Vec<_>>() {
            let code = gates::in_place_of_call(function, site + call.len() as u64);
            let near = maps::room_near(&maps::read(), &(site..site + JUMP_BYTES), 4096);
            let Some(at) = near.filter(|at| system::memory_at(*at as usize, 4096).is_some()) else {
                continue;
            };
            // SAFETY: our own page, which nobody executes yet.
            unsafe { (at as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len()) };
            if system::protect(at as *mut u8, 4096, libc::PROT_READ | libc::PROT_EXEC) {
                write(engine, &memory, site, at, &[]);
            }
        }
    }
}

/// Writes a jump; for an entry, with where its instructions went.
fn write(engine: &Engine, memory: &File, pc: u64, target: u64, moved: &[(u64, u64)]) -> bool {
    // SAFETY: the first bytes of a function, as `prepare` has read before.
    let original = unsafe { (pc as *const [u8; JUMP_BYTES as usize]).read() };
    let mut jump = [0xe9; JUMP_BYTES as usize];
    jump[1..].copy_from_slice(&(target.wrapping_sub(pc + JUMP_BYTES) as u32).to_le_bytes());
    engine.code.with(|code| {
        code.originals.push((pc, original));
        if !moved.is_empty() {
            code.entries.insert(pc);
        }
        code.moved.extend(moved.iter().copied());
    });
    memory.write_at(&jump, pc)
}

/// Writes the code that the entry is to jump to; where it is, and in it the instructions that the jump replaces.
fn prepare(
    engine: &Engine,
    near: &mut Vec<Near>,
    pc: u64,
    region: u64,
    size: u64,
    common: u64,
    multiplier: u64,
) -> Result<(u64, Vec<(u64, u64)>), Refusal> {
    let moved = moved(pc, size)?;
    let words = engine.shared.region(region).ok_or(Refusal::CannotMove)?;
    let entry =
        Box::leak(Box::new(Entry { region: words.as_ptr() as u64, multiplier, pc, region_number: region }));
    let place = place_near(near, &(pc..pc + JUMP_BYTES))?;
    let at = (place.at + place.used).next_multiple_of(16);
    let mut code = gates::thunk(&raw const *entry as u64, common);
    let moved_to = at + code.len() as u64;
    let encoded = InstructionBlock::new(&moved, moved_to);
    let encoded = BlockEncoder::encode(64, encoded, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)
        .map_err(|_| Refusal::CannotMove)?;
    // The last one is the jump back.
    let places = moved.iter().zip(&encoded.new_instruction_offsets).take(moved.len() - 1);
    let places =
        places.map(|(instruction, offset)| (instruction.ip(), moved_to + u64::from(*offset))).collect();
    code.extend(encoded.code_buffer);
    // SAFETY: our own memory, which has room for as much, and nobody executes yet.
    unsafe { (at as *mut u8).copy_from_nonoverlapping(code.as_ptr(), code.len()) };
    place.used = at + code.len() as u64 - place.at;
    Ok((at, places))
}

/// Memory with room for an entry's code that a jump from there reaches.
fn place_near<'a>(near: &'a mut Vec<Near>, range: &Range<u64>) -> Result<&'a mut Near, Refusal> {
    let fits = |near: &Near| {
        near.at.abs_diff(range.start) < (1 << 31) - 2 * NEAR_BYTES && near.used + MOST_BYTES < NEAR_BYTES
    };
    let number = match near.iter().position(fits) {
        Some(number) => number,
        None => {
            let at = maps::room_near(&maps::read(), range, NEAR_BYTES).ok_or(Refusal::NoRoom)?;
            system::memory_at(at as usize, NEAR_BYTES as usize).ok_or(Refusal::NoRoom)?;
            near.push(Near { at, used: 0 });
            near.len() - 1
        }
    };
    Ok(&mut near[number])
}

/// The instructions that the jump replaces, and a jump back.
fn moved(pc: u64, size: u64) -> Result<Vec<Instruction>, Refusal> {
    // SAFETY: code of a mapped function; the command read its size from the file.
    let bytes =
        unsafe { std::slice::from_raw_parts(pc as *const u8, size.clamp(1, MOST_LOOKED_AT) as usize) };
    let mut moved = Vec::new();
    for instruction in &mut Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE) {
        if instruction.is_invalid() {
            return Err(Refusal::CannotMove);
        }
        match instruction.flow_control() {
            FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Interrupt
            | FlowControl::XbeginXabortXend => {
                return Err(Refusal::CannotMove);
            }
            _ => moved.push(instruction),
        }
        if instruction.next_ip() - pc >= JUMP_BYTES {
            break;
        }
        if matches!(
            instruction.flow_control(),
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch
        ) {
            return Err(Refusal::TooShort);
        }
    }
    let end = moved.last().map_or(pc, Instruction::next_ip);
    if end - pc < JUMP_BYTES {
        return Err(Refusal::TooShort);
    }
    let is_target = |instruction: Instruction| {
        let target = instruction.near_branch_target();
        instruction.flow_control() != FlowControl::Call
            && target != 0
            && (pc..pc + JUMP_BYTES).contains(&target)
    };
    if Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).iter().any(is_target) {
        return Err(Refusal::JumpedTo);
    }
    let back =
        Instruction::with_branch(iced_x86::Code::Jmp_rel32_64, end).map_err(|_| Refusal::CannotMove)?;
    moved.push(back);
    Ok(moved)
}
