//! Entries of watched functions: five bytes are replaced by a jump.

use crate::engine::Engine;
use crate::gates::{self, Entry};
use crate::lock::Lock;
use crate::maps;
use crate::restore::Patch;
use crate::system::{self, File};
use crate::{attach, calls, ends, processes, signals};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Decoder, DecoderOptions, FlowControl, Instruction, InstructionBlock,
    MemoryOperand, Mnemonic, Register,
};
use lineup_recording::native::{Refusal, entry, state, timed, word};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A jump's bytes.
pub(crate) const JUMP_BYTES: u64 = 5;
/// Memory near an entry, for as many as fit.
const NEAR_BYTES: u64 = 1 << 16;
/// Code of one entry at most.
const MOST_BYTES: u64 = 640;
/// Functions are looked through up to here for jumps to their beginning.
const MOST_LOOKED_AT: u64 = 1 << 20;

/// Memory for code that jumps from some entries reach. It is never writable where it is executed: it is written as a
/// file.
pub(crate) struct Near {
    at: u64,
    used: u64,
}

impl Near {
    /// Where the next code goes.
    pub(crate) fn next(&self) -> u64 {
        (self.at + self.used).next_multiple_of(16)
    }

    /// Puts code there. `None` when it cannot be written.
    pub(crate) fn put(&mut self, memory: &File, code: &[u8]) -> Option<u64> {
        let at = self.next();
        memory.write_at(code, at).then(|| {
            self.used = at + code.len() as u64 - self.at;
            at
        })
    }
}

/// Asks the command for entries in files that were mapped just now, and patches them: nobody executes them yet.
pub(crate) fn more(engine: &Engine) {
    let shared = &engine.shared;
    shared.word(word::STATE).store(state::ASKS_AGAIN, Ordering::Release);
    if shared.wait_for_answer() {
        watch_allocators(engine);
        all(engine);
    }
    shared.word(word::STATE).store(state::RUNS, Ordering::Release);
}

/// Blocks that begin with an allocator hand over to the engine from now on, when a whole program's allocations are noted.
pub(crate) fn watch_allocators(engine: &Engine) {
    if engine.whole.is_some() {
        engine.code.with(|code| engine.shared.allocators().for_each(|(pc, _)| code.watch(engine, pc)));
    }
}

/// Patches all entries that the command asked for and have no answer yet, and answers for each. Nobody executes them
/// yet: the process has one thread, or their file was mapped just now.
pub(crate) fn all(engine: &Engine) {
    let shared = &engine.shared;
    if shared.word(word::MODE).load(Ordering::Relaxed) == timed::MODE {
        return ends::all(engine);
    }
    let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
    let maps = maps::read();
    let is_code = |range: &Range<u64>| {
        let holds = |mapping: &maps::Mapping| {
            mapping.is_fixed_code && mapping.range.start <= range.start && range.end <= mapping.range.end
        };
        maps.iter().any(holds)
    };
    let has_begun = engine.is_on.load(Ordering::Acquire) == 1;
    let (common, multiplier) = (engine.entry, shared.word(word::MULTIPLIER).load(Ordering::Relaxed));
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    for number in 0..entries {
        let read = |field| shared.entry(number, field).load(Ordering::Acquire);
        let pc = read(entry::ADDRESS);
        let about = (read(entry::REGION), read(entry::SIZE), read(entry::ROOM));
        let range = pc..pc.saturating_add(about.1.max(JUMP_BYTES.min(about.2)).max(1));
        if read(entry::ANSWER) != 0 || !is_code(&range) {
            continue;
        }
        let prepared = prepare(engine, (&memory, &mut near), pc, about, common, multiplier);
        let answer = match prepared {
            Ok((target, moved)) if write(engine, &memory, pc, target, &moved) => entry::PATCHED,
            // Other threads map and unmap meanwhile. It is tried again when something is mapped next.
            Ok(_) | Err(Refusal::NoRoom) if has_begun => continue,
            Ok(_) => Refusal::NoRoom.answer(),
            Err(refusal) => refusal.answer(),
        };
        shared.entry(number, entry::ANSWER).store(answer, Ordering::Release);
    }
    engine.code.with(|code| code.near = near);
}

/// Set while threads of the program may execute what is changed: the command makes the changes.
static DEFERS: AtomicBool = AtomicBool::new(false);

/// From now on changes of the program's code are listed and not made, or made at once.
pub(crate) fn defer_writes(defers: bool) {
    DEFERS.store(defers, Ordering::Release);
}

/// Held by whoever changes the program's code.
static CHANGING: Lock<()> = Lock::new(());

/// Changes the program's code by `work`, unless the engine is about to go: then the command takes all changes back, and what
/// is changed after it would lead to memory that is not there any more. `None` then.
pub(crate) fn unless_leaving<R>(work: impl FnOnce() -> R) -> Option<R> {
    CHANGING.with(|()| (!attach::leaves()).then(work))
}

/// Waits for changes that have begun. None begins any more when the engine is about to go.
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
            && (DEFERS.load(Ordering::Acquire) || memory.write_at(bytes, at))
    });
    is_changed.unwrap_or(false)
}

/// A system call that the engine must hear of: its number, the function that it leads to, and whether it is made after
/// that function.
type Led = (i64, u64, bool);

/// System calls of the C library that the engine must hear of lead to these functions: those that set a signal's
/// handler and those that map and unmap memory, and before they are made those that start a process or a program.
pub(crate) fn system_calls(engine: &Engine) {
    let mut led: Vec<Led> = vec![
        (libc::SYS_mmap, calls::map_from_site as *const () as u64, false),
        (libc::SYS_munmap, calls::unmap_from_site as *const () as u64, false),
        (libc::SYS_clone, processes::before_clone as *const () as u64, true),
        (libc::SYS_execve, processes::before_exec as *const () as u64, true),
        (libc::SYS_execveat, processes::before_exec_at as *const () as u64, true),
    ];
    if engine.shared.word(word::MODE).load(Ordering::Relaxed) != timed::MODE {
        led.push((libc::SYS_rt_sigaction, signals::from_site as *const () as u64, false));
    }
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    for mapping in others_code(maps::read(), system_calls as *const () as u64) {
        let range = mapping.range;
        let mut code = vec![0; (range.end - range.start) as usize];
        let read = system::read_memory(range.start, &mut code);
        for (offset, led) in sites(&code[..read], &led) {
            lead(engine, (&memory, &mut near), range.start + offset as u64, led);
        }
    }
    engine.code.with(|code| code.near = near);
}

/// Where `mov eax, number; syscall` stands in code.
fn sites<'a>(code: &'a [u8], led: &'a [Led]) -> impl Iterator<Item = (usize, &'a Led)> {
    const CALL: [u8; 2] = [0x0f, 0x05];
    const BYTES: usize = 7;
    let calls = code.windows(BYTES).enumerate().filter(|(_, bytes)| bytes[5..] == CALL && bytes[0] == 0xb8);
    calls.filter_map(|(offset, bytes)| {
        let number = i64::from(u32::from_le_bytes(bytes[1..5].try_into().ok()?));
        Some((offset, led.iter().find(|(led, ..)| *led == number)?))
    })
}

/// The code of files, but for the file that has the code at `own`: the engine's own calls are made as they stand.
fn others_code(maps: Vec<maps::Mapping>, own: u64) -> Vec<maps::Mapping> {
    let ours = maps.iter().find(|mapping| mapping.range.contains(&own)).map(|mapping| mapping.path.clone());
    let is_others = |mapping: &maps::Mapping| ours.as_ref() != Some(&mapping.path);
    maps.into_iter()
        .filter(|mapping| mapping.is_fixed_code && mapping.is_of_file && is_others(mapping))
        .collect()
}

/// Leads a system call to its function.
fn lead(
    engine: &Engine,
    (memory, near): (&File, &mut Vec<Near>),
    site: u64,
    (number, function, goes_on): &Led,
) {
    // What the jump replaces, and the two bytes of the call.
    let code = gates::in_place_of_call(*function, goes_on.then_some(*number as u32), site + JUMP_BYTES + 2);
    let Ok(place) = place_near(near, &(site..site + JUMP_BYTES)) else { return };
    if let Some(at) = place.put(memory, &code) {
        write(engine, memory, site, at, &[]);
    }
}

/// Writes a jump; for an entry, with where its instructions went. What is kept of it goes again when it cannot be
/// written.
fn write(engine: &Engine, memory: &File, pc: u64, target: u64, moved: &[(u64, u64)]) -> bool {
    let mut original = [0; JUMP_BYTES as usize];
    if system::read_memory(pc, &mut original) != original.len() {
        return false;
    }
    let mut jump = [0xe9; JUMP_BYTES as usize];
    jump[1..].copy_from_slice(&(target.wrapping_sub(pc + JUMP_BYTES) as u32).to_le_bytes());
    engine.code.with(|code| {
        code.patches.push(Patch { pc, original });
        if !moved.is_empty() {
            code.entries.insert(pc);
        }
        code.moved.extend(moved.iter().copied());
    });
    let is_written = change(engine, memory, pc, &jump);
    if !is_written {
        engine.code.with(|code| {
            code.patches.retain(|patch| patch.pc != pc);
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

/// Writes the code that the entry is to jump to; where it is, and in it the instructions that the jump replaces.
fn prepare(
    engine: &Engine,
    (memory, near): (&File, &mut Vec<Near>),
    pc: u64,
    (region, size, room): (u64, u64, u64),
    common: u64,
    multiplier: u64,
) -> Result<(u64, Vec<(u64, u64)>), Refusal> {
    let moved = moved(pc, size, room)?;
    let words = engine.shared.region(region).ok_or(Refusal::CannotMove)?;
    let entry =
        Box::leak(Box::new(Entry { region: words.as_ptr() as u64, multiplier, pc, region_number: region }));
    let place = place_near(near, &(pc..pc + JUMP_BYTES))?;
    let at = place.next();
    let mut code = gates::thunk(&raw const *entry as u64, common);
    let moved_to = at + code.len() as u64;
    let encoded = InstructionBlock::new(&moved, moved_to);
    let encoded = BlockEncoder::encode(64, encoded, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS)
        .map_err(|_| Refusal::CannotMove)?;
    // Those that were added have no address in the program.
    let places = moved.iter().zip(&encoded.new_instruction_offsets).filter(|(moved, _)| moved.ip() != 0);
    let places =
        places.map(|(instruction, offset)| (instruction.ip(), moved_to + u64::from(*offset))).collect();
    code.extend(encoded.code_buffer);
    place.put(memory, &code).ok_or(Refusal::NoRoom)?;
    Ok((at, places))
}

/// Memory with room for an entry's code that a jump from there reaches.
pub(crate) fn place_near<'a>(near: &'a mut Vec<Near>, range: &Range<u64>) -> Result<&'a mut Near, Refusal> {
    let fits = |near: &Near| {
        near.at.abs_diff(range.start) < (1 << 31) - 2 * NEAR_BYTES && near.used + MOST_BYTES < NEAR_BYTES
    };
    let number = match near.iter().position(fits) {
        Some(number) => number,
        None => {
            let (at, made) = memory_near(range, NEAR_BYTES as usize).ok_or(Refusal::NoRoom)?;
            if !system::protect(made, NEAR_BYTES as usize, libc::PROT_READ | libc::PROT_EXEC) {
                return Err(Refusal::NoRoom);
            }
            near.push(Near { at, used: 0 });
            near.len() - 1
        }
    };
    Ok(&mut near[number])
}

/// Fresh memory near a place. Other threads map memory meanwhile, and take what was just seen to be free.
fn memory_near(range: &Range<u64>, bytes: usize) -> Option<(u64, *mut u8)> {
    const TRIES: usize = 64;
    (0..TRIES).find_map(|_| {
        let at = maps::room_near(&maps::read(), range, bytes as u64)?;
        system::memory_at(at as usize, bytes).map(|made| (at, made))
    })
}

/// The instructions that the jump replaces, and how control goes on behind them.
pub(crate) fn moved(pc: u64, size: u64, room: u64) -> Result<Vec<Instruction>, Refusal> {
    // Without a size the function reaches as far as there is room.
    let size = if size == 0 { room } else { size };
    // An instruction has 15 bytes at most.
    let bytes = size.max((JUMP_BYTES + 15).min(room)).clamp(1, MOST_LOOKED_AT);
    let mut code = vec![0; bytes as usize];
    // Another thread may unmap it meanwhile.
    match system::read_memory(pc, &mut code) == code.len() {
        true => displaced(&code, pc, size),
        false => Err(Refusal::NoRoom),
    }
}

/// As [`moved`], with the bytes of the function, and what follows it where that is shorter than a jump.
fn displaced(bytes: &[u8], pc: u64, size: u64) -> Result<Vec<Instruction>, Refusal> {
    let code = || Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let mut moved = Vec::new();
    let mut goes_on = true;
    let mut ends_early = false;
    let mut end = pc;
    for instruction in &mut code() {
        end = instruction.next_ip();
        match instruction.flow_control() {
            _ if instruction.is_invalid() => return Err(Refusal::CannotMove),
            // Behind the function's end only what fills up to the next may be overwritten.
            _ if instruction.ip() >= pc + size => {
                let is_filler = matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3);
                if goes_on || !is_filler {
                    return Err(Refusal::TooShort);
                }
            }
            // Reached by jumps alone, which are looked for below.
            _ if !goes_on => ends_early = true,
            FlowControl::Call | FlowControl::IndirectCall => {
                moved.extend(call(&instruction, pc)?);
                goes_on = false;
            }
            FlowControl::Interrupt | FlowControl::XbeginXabortXend => return Err(Refusal::CannotMove),
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
                moved.push(instruction);
                goes_on = false;
            }
            _ => moved.push(instruction),
        }
        if end - pc >= JUMP_BYTES {
            break;
        }
    }
    if end - pc < JUMP_BYTES {
        return Err(Refusal::TooShort);
    }
    let is_target = |instruction: &Instruction| {
        let target = instruction.near_branch_target();
        instruction.flow_control() != FlowControl::Call
            && target != 0
            && (pc..pc + JUMP_BYTES).contains(&target)
    };
    let own = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
    let own = || Decoder::with_ip(64, &bytes[..own], pc, DecoderOptions::NONE);
    // What stands behind an end so early may be reached through a table of addresses.
    let is_way = |instruction: &Instruction| {
        is_target(instruction) || ends_early && instruction.flow_control() == FlowControl::IndirectBranch
    };
    if own().iter().any(|instruction| is_way(&instruction)) {
        return Err(Refusal::JumpedTo);
    }
    if goes_on {
        moved.push(
            Instruction::with_branch(iced_x86::Code::Jmp_rel32_64, end).map_err(|_| Refusal::CannotMove)?,
        );
    }
    Ok(moved)
}

/// A call from somewhere else that returns to where it returned before: what unwinds the stack knows that place.
fn call(instruction: &Instruction, pc: u64) -> Result<Vec<Instruction>, Refusal> {
    use iced_x86::Code::{Call_rel32_64, Call_rm64, Jmp_rel32_64, Jmp_rm64, Lea_r64_m, Mov_rm32_imm32};
    let next = instruction.next_ip();
    let cannot = |_| Refusal::CannotMove;
    let jump = match instruction.code() {
        // It returns behind what is overwritten.
        _ if next < pc + JUMP_BYTES => return Err(Refusal::CannotMove),
        Call_rel32_64 => Instruction::with_branch(Jmp_rel32_64, instruction.near_branch_target()),
        Call_rm64 if instruction.is_ip_rel_memory_operand() => {
            let mut jump = *instruction;
            jump.set_code(Jmp_rm64);
            jump.set_ip(0);
            Ok(jump)
        }
        _ => return Err(Refusal::CannotMove),
    };
    let at = |distance| MemoryOperand::with_base_displ(Register::RSP, distance);
    let half = |distance, half: u64| Instruction::with2(Mov_rm32_imm32, at(distance), half as u32);
    let mut push = Instruction::with2(Lea_r64_m, Register::RSP, at(-8)).map_err(cannot)?;
    push.set_ip(instruction.ip());
    Ok(vec![
        push,
        half(0, next & 0xffff_ffff).map_err(cannot)?,
        half(4, next >> 32).map_err(cannot)?,
        jump.map_err(cannot)?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    use iced_x86::Code::{
        Jmp_rel32_64, Lea_r64_m, Mov_rm32_imm32, Mov_rm32_r32, Push_r64, Retnq, Test_rm32_r32, Xor_rm32_r32,
    };

    /// What is moved of a function of these bytes, of which the first `size` are its own.
    fn codes(bytes: &[u8], size: u64) -> Result<Vec<iced_x86::Code>, Refusal> {
        Ok(displaced(bytes, 0x1000, size)?.iter().map(|instruction| instruction.code()).collect())
    }

    #[test]
    fn the_engines_own_system_calls_are_let_be() {
        let mapping = |start: u64, path: &str| maps::Mapping {
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
        assert!(maps::read().iter().any(|mapping| mapping.range.contains(&(lead as *const () as u64))));
    }

    #[test]
    fn system_calls_are_found_by_their_number() {
        let led: [Led; 1] = [(libc::SYS_munmap, 0x1234, false)];
        // nop; mov eax, 9; syscall; mov eax, 11; syscall; mov eax, 11; ret
        let code = [
            &[0x90][..],
            &[0xb8, 9, 0, 0, 0, 0x0f, 5],
            &[0xb8, 11, 0, 0, 0, 0x0f, 5],
            &[0xb8, 11, 0, 0, 0, 0xc3],
        ];
        let code = code.concat();
        assert_eq!(sites(&code, &led).collect::<Vec<_>>(), [(8, &led[0])]);
    }

    #[test]
    fn a_short_function_is_moved_when_only_filler_follows() {
        let short = [0x89, 0xf8, 0xc3, 0x66, 0x90, 0x90]; // mov eax, edi; ret; nop
        assert_eq!(codes(&short, 3).unwrap(), [Mov_rm32_r32, Retnq]);
        assert_eq!(codes(&[0xc3, 0xcc, 0xcc, 0xcc, 0xcc], 1).unwrap(), [Retnq]);
        assert_eq!(codes(&[0x89, 0xf8, 0xc3, 0x31, 0xc0, 0xc3], 3), Err(Refusal::TooShort));
        assert_eq!(codes(&[0x89, 0xf8, 0xc3], 3), Err(Refusal::TooShort));
        // It goes on behind its end.
        assert_eq!(codes(&[0x89, 0xf8, 0x90, 0x90, 0x90, 0x90], 2), Err(Refusal::TooShort));
    }

    #[test]
    fn an_early_return_is_moved_when_nothing_leads_behind_it() {
        let early = [0x85, 0xff, 0xc3, 0x31, 0xc0, 0xc3]; // test edi, edi; ret; xor eax, eax; ret
        assert_eq!(codes(&early, 6).unwrap(), [Test_rm32_r32, Retnq]);
        let led_to = [0x85, 0xff, 0xc3, 0x31, 0xc0, 0xeb, 0xfc]; // … jmp to the xor
        assert_eq!(codes(&led_to, 7), Err(Refusal::JumpedTo));
        let table = [0x85, 0xff, 0xc3, 0x31, 0xc0, 0xff, 0xe0]; // … jmp rax
        assert_eq!(codes(&table, 7), Err(Refusal::JumpedTo));
    }

    #[test]
    fn a_call_among_the_first_bytes_returns_to_where_it_did() {
        let calls = [0x53, 0xe8, 0xfa, 0x0f, 0, 0, 0x5b, 0xc3]; // push rbx; call 0x2000; pop rbx; ret
        let moved = displaced(&calls, 0x1000, 8).unwrap();
        let codes_of = |moved: &[Instruction]| moved.iter().map(Instruction::code).collect::<Vec<_>>();
        assert_eq!(codes_of(&moved), [Push_r64, Lea_r64_m, Mov_rm32_imm32, Mov_rm32_imm32, Jmp_rel32_64]);
        assert_eq!((moved[2].immediate32(), moved[4].near_branch_target()), (0x1006, 0x2000));
        let indirect = [0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3]; // call rax returns into what is overwritten
        assert_eq!(codes(&indirect, 6), Err(Refusal::CannotMove));
    }

    #[test]
    fn what_its_own_code_jumps_to_is_refused() {
        let round = [0xff, 0xcf, 0x90, 0x90, 0x90, 0x75, 0xf9, 0xc3]; // dec edi; …; jne to the beginning
        assert_eq!(codes(&round, 8), Err(Refusal::JumpedTo));
        let plain = [0x31, 0xc0, 0x31, 0xd2, 0x31, 0xff, 0xc3]; // three times xor, ret
        assert_eq!(codes(&plain, 7).unwrap(), [Xor_rm32_r32, Xor_rm32_r32, Xor_rm32_r32, Jmp_rel32_64]);
    }
}
