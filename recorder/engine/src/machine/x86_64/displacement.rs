//! The instructions that a jump at a function's beginning replaces.
//!
//! Other code may jump to the bytes after the first instruction, as some of the C library's functions for memory do
//! with each other's. Then there is room for a short jump alone. It leads to filler near by, which holds the long jump.
//! The same applies to functions that are shorter than a long jump. Without such filler one byte is left: a trap, see
//! [`crate::entries::traps`].

use crate::cache::sequence::Zones;
use crate::machine::{Moved, Write};
use crate::system::{self, mappings};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Decoder, DecoderOptions, FlowControl, Instruction, InstructionBlock,
    MemoryOperand, Mnemonic, Register,
};
use lineup_recording::native::Refusal;
use std::ops::Range;

/// The most bytes of a function that are searched for jumps to its beginning.
const MOST_LOOKED_AT: u64 = 1 << 20;
/// A jump's bytes.
pub(crate) const JUMP_BYTES: u64 = 5;
/// A short jump's bytes.
const SHORT_BYTES: u64 = 2;
/// A trap's.
pub(crate) const TRAP_BYTES: u64 = 1;
pub(crate) const TRAP: u8 = 0xcc;
/// Code around a function that is searched for jumps into it: the C library's functions for memory share parts.
const NEIGHBOUR_BYTES: u64 = 1 << 15;
/// The same distance, where only jumps to the first bytes matter.
const NEAR_BYTES: u64 = 1 << 12;
/// The most bytes of a function that is moved as a whole.
const MOST_MOVED: u64 = 384;
/// Functions and the targets of jumps often begin at multiples of this.
const ALIGNED: u64 = 16;

/// Moved instructions, and the redirection to their new place.
pub(crate) struct Displaced {
    /// The instructions that the jump replaces, and the code by which control continues after them.
    pub(crate) moved: Vec<Instruction>,
    pub(crate) way: Way,
}

/// The form of the redirection from a place to other code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Way {
    /// A jump.
    Jump,
    /// A short jump to this place, which holds the long one.
    Beside(u64),
    /// A trap.
    Trap,
}

/// A jump from one place to another.
pub(crate) fn jump(at: u64, to: u64) -> Write {
    let distance = (to.wrapping_sub(at + JUMP_BYTES) as u32).to_le_bytes();
    (at, [&[0xe9][..], &distance].concat())
}

impl Way {
    /// The writes, in order, that lead control from `pc` to `target`.
    pub(crate) fn writes(self, pc: u64, target: u64) -> Vec<Write> {
        match self {
            Way::Jump => vec![jump(pc, target)],
            Way::Beside(at) => {
                vec![jump(at, target), (pc, vec![0xeb, at.wrapping_sub(pc + SHORT_BYTES) as u8])]
            }
            Way::Trap => vec![(pc, vec![TRAP])],
        }
    }

    /// Bytes that are written at the place itself.
    fn bytes(self) -> u64 {
        match self {
            Way::Jump => JUMP_BYTES,
            Way::Beside(_) => SHORT_BYTES,
            Way::Trap => TRAP_BYTES,
        }
    }
}

impl crate::machine::Displaced for Displaced {
    fn is_trap(&self) -> bool {
        self.way == Way::Trap
    }

    fn writes(&self, pc: u64, target: u64) -> Vec<Write> {
        self.way.writes(pc, target)
    }

    fn breaks(&self, zones: &Zones) -> bool {
        breaks(&self.moved, zones)
    }

    fn moved_to(&self, at: u64) -> Option<Moved> {
        let block = InstructionBlock::new(&self.moved, at);
        let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let encoded = BlockEncoder::encode(64, block, options).ok()?;
        // Added instructions have no address in the program.
        let own = self.moved.iter().zip(&encoded.new_instruction_offsets).filter(|(one, _)| one.ip() != 0);
        let places = own.map(|(one, offset)| (one.ip(), at + u64::from(*offset))).collect();
        Some(Moved { code: encoded.code_buffer, places })
    }
}

/// Whether instructions that are to be moved are part of a restartable sequence, or begin one. Added instructions have
/// no address in the program.
pub(crate) fn breaks(moved: &[Instruction], zones: &Zones) -> bool {
    moved.iter().any(|one| one.ip() != 0 && zones.hold(&(one.ip()..one.next_ip())))
}

impl Displaced {
    /// End of the bytes that are written at the beginning.
    pub(crate) fn end(&self, pc: u64) -> u64 {
        pc + self.way.bytes()
    }
}

/// The instructions to move from the function at `pc`, of this size, with this room up to the next, so that a jump
/// leads away.
pub(crate) fn at(pc: u64, size: u64, room: u64) -> Result<Displaced, Refusal> {
    let all = moved(pc, size, room, JUMP_BYTES);
    let code = Around::read(pc..pc, NEAR_BYTES);
    let refusal = match all {
        Ok(moved) if !code.leads_into(&(pc + 1..pc + JUMP_BYTES)) => {
            return Ok(Displaced { moved, way: Way::Jump });
        }
        Ok(_) => Refusal::JumpedTo,
        Err(refusal) => refusal,
    };
    let moved = moved(pc, size, room, SHORT_BYTES).map_err(|_| refusal)?;
    let end = moved.iter().map(Instruction::next_ip).filter(|end| (pc..pc + 15).contains(end)).max();
    let is_free = !code.leads_into(&(pc + 1..end.unwrap_or(pc).max(pc + SHORT_BYTES)));
    match code.filler(pc).filter(|_| is_free) {
        Some(beside) => Ok(Displaced { moved, way: Way::Beside(beside) }),
        None => Err(refusal),
    }
}

/// As [`at`], but a trap leads away: its one byte has room in every instruction.
pub(crate) fn by_trap(pc: u64, size: u64, room: u64) -> Result<Displaced, Refusal> {
    Ok(Displaced { moved: moved(pc, size, room, TRAP_BYTES)?, way: Way::Trap })
}

/// As [`at`], but all of the function's code is moved. The function must call nothing and have known jump targets. Then
/// its own jumps and returns need no room.
pub(crate) fn all_of(pc: u64, size: u64, room: u64) -> Result<Displaced, Refusal> {
    let range = pc..pc + size;
    let around = Around::read(range.clone(), NEIGHBOUR_BYTES);
    let code: Vec<Instruction> = around.code(pc).take_while(|one| one.ip() < range.end).collect();
    let is_alone = !around.is_led_into(&(pc + 1..range.end), &range);
    let may_move = |one: &Instruction| {
        !one.is_invalid()
            && matches!(
                one.flow_control(),
                FlowControl::Next
                    | FlowControl::Return
                    | FlowControl::UnconditionalBranch
                    | FlowControl::ConditionalBranch
            )
    };
    let is_whole = code.last().is_some_and(|last| last.next_ip() == range.end && never_goes_on(last));
    if size > MOST_MOVED || !is_alone || !is_whole || !code.iter().all(may_move) {
        return Err(Refusal::CannotMove);
    }
    let filler =
        around.code(range.end).take_while(|one| is_filler(one) && one.next_ip() <= pc + room.max(size));
    let end = filler.last().map_or(range.end, |last| last.next_ip());
    let way = match end - pc >= JUMP_BYTES && !around.leads_into(&(range.end..pc + JUMP_BYTES)) {
        true => Way::Jump,
        false => Way::Beside(around.filler(pc).filter(|_| size >= SHORT_BYTES).ok_or(Refusal::TooShort)?),
    };
    Ok(Displaced { moved: code, way })
}

/// Targets of jumps in code around a range.
pub(crate) fn targets_around(range: &Range<u64>) -> Vec<u64> {
    Around::read(range.clone(), NEIGHBOUR_BYTES).targets
}

/// The code around a place.
struct Around {
    start: u64,
    bytes: Vec<u8>,
    targets: Vec<u64>,
    /// Addresses of the jumps to these.
    sources: Vec<u64>,
}

impl Around {
    fn read(range: Range<u64>, beside: u64) -> Around {
        let maps = mappings::read();
        let Some(mapping) = maps.iter().find(|mapping| mapping.range.contains(&range.start)) else {
            return Around::new(range.start, Vec::new());
        };
        let start = (range.start.saturating_sub(beside) & !(ALIGNED - 1)).max(mapping.range.start);
        let end = range.end.saturating_add(beside).min(mapping.range.end);
        let mut bytes = vec![0; end.saturating_sub(start) as usize];
        let read = system::read_memory(start, &mut bytes);
        bytes.truncate(read);
        Around::new(start, bytes)
    }

    fn new(start: u64, bytes: Vec<u8>) -> Around {
        let code = Decoder::with_ip(64, &bytes, start, DecoderOptions::NONE).into_iter();
        let jumps = code.filter(|one| one.flow_control() != FlowControl::Call);
        let known = jumps.filter(|one| one.near_branch_target() != 0);
        let (targets, sources) = known.map(|one| (one.near_branch_target(), one.ip())).unzip();
        Around { start, bytes, targets, sources }
    }

    /// Whether code outside of `own` jumps into a range.
    fn is_led_into(&self, range: &Range<u64>, own: &Range<u64>) -> bool {
        let mut jumps = self.targets.iter().zip(&self.sources);
        jumps.any(|(target, source)| range.contains(target) && !own.contains(source))
    }

    fn leads_into(&self, range: &Range<u64>) -> bool {
        self.targets.iter().any(|target| range.contains(target))
    }

    /// Code from an address on.
    fn code(&self, from: u64) -> impl Iterator<Item = Instruction> {
        let bytes = self.bytes.get(from.wrapping_sub(self.start) as usize..).unwrap_or_default();
        Decoder::with_ip(64, bytes, from, DecoderOptions::NONE).into_iter().collect::<Vec<_>>().into_iter()
    }

    /// Filler with room for a jump that a short jump from `pc` reaches: it follows an instruction after which control
    /// never continues, and the next code is aligned.
    fn filler(&self, pc: u64) -> Option<u64> {
        const REACH: u64 = 128;
        let reached = (pc + SHORT_BYTES).saturating_sub(REACH)..pc + SHORT_BYTES + REACH - 1;
        let from = reached.start.saturating_sub(4 * ALIGNED) & !(ALIGNED - 1);
        let aligned = (from.max(self.start)..reached.end).step_by(ALIGNED as usize);
        aligned
            .filter_map(|start| self.filler_after(start))
            .find(|filler| {
                let range = filler.clone();
                reached.contains(&range.start)
                && !self.leads_into(&range)
                // From any first instruction.
                && (1..4).all(|before| {
                    let start = (range.start & !(ALIGNED - 1)).saturating_sub(before * ALIGNED);
                    start < self.start || self.has_end_at(start, range.start)
                })
            })
            .map(|filler| filler.start)
    }

    /// The first filler that is met from an address on.
    fn filler_after(&self, start: u64) -> Option<Range<u64>> {
        let mut run: Option<Range<u64>> = None;
        for one in self.code(start).take(64) {
            run = match run {
                Some(run) if is_filler(&one) => Some(run.start..one.next_ip()),
                Some(run) if run.end - run.start >= JUMP_BYTES && run.end.is_multiple_of(ALIGNED) => {
                    return Some(run);
                }
                _ if never_goes_on(&one) => Some(one.next_ip()..one.next_ip()),
                _ => None,
            };
        }
        None
    }

    /// Whether the code read from `start` on has an instruction that ends at `end` and never continues.
    fn has_end_at(&self, start: u64, end: u64) -> bool {
        let mut before = self.code(start).take_while(|one| one.next_ip() <= end);
        before.any(|one| one.next_ip() == end && never_goes_on(&one))
    }
}

fn is_filler(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

fn never_goes_on(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::Return | FlowControl::UnconditionalBranch)
}

/// The instructions that the jump replaces, and the code by which control continues after them.
fn moved(pc: u64, size: u64, room: u64, least: u64) -> Result<Vec<Instruction>, Refusal> {
    // Without a size the function reaches to the end of its room.
    let size = if size == 0 { room } else { size };
    // An instruction has 15 bytes at most.
    let bytes = size.max((least + 15).min(room)).clamp(1, MOST_LOOKED_AT);
    let mut code = vec![0; bytes as usize];
    // Another thread may unmap it at the same time.
    match system::read_memory(pc, &mut code) == code.len() {
        true => displaced(&code, pc, size, least),
        false => Err(Refusal::NoRoom),
    }
}

/// As [`moved`], with the bytes of the function, and those after it where it is shorter than a jump.
fn displaced(bytes: &[u8], pc: u64, size: u64, least: u64) -> Result<Vec<Instruction>, Refusal> {
    let code = || Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE);
    let mut moved = Vec::new();
    let mut goes_on = true;
    let mut ends_early = false;
    let mut end = pc;
    for instruction in &mut code() {
        end = instruction.next_ip();
        match instruction.flow_control() {
            _ if instruction.is_invalid() => return Err(Refusal::CannotMove),
            // Behind the function's end only filler up to the next function may be overwritten.
            _ if instruction.ip() >= pc + size => {
                if goes_on || !is_filler(&instruction) {
                    return Err(Refusal::TooShort);
                }
            }
            // Reached by jumps alone, which are searched for below.
            _ if !goes_on => ends_early = true,
            FlowControl::Call | FlowControl::IndirectCall => {
                moved.extend(call(&instruction, pc + least)?);
                goes_on = false;
            }
            FlowControl::Interrupt | FlowControl::XbeginXabortXend => return Err(Refusal::CannotMove),
            FlowControl::Return | FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => {
                moved.push(instruction);
                goes_on = false;
            }
            _ => moved.push(instruction),
        }
        if end - pc >= least {
            break;
        }
    }
    if end - pc < least {
        return Err(Refusal::TooShort);
    }
    let is_target = |instruction: &Instruction| {
        let target = instruction.near_branch_target();
        instruction.flow_control() != FlowControl::Call && target != 0 && (pc..pc + least).contains(&target)
    };
    let own = usize::try_from(size).unwrap_or(usize::MAX).min(bytes.len());
    let own = || Decoder::with_ip(64, &bytes[..own], pc, DecoderOptions::NONE);
    // Code so soon after an end may be reached through a table of addresses.
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

/// A call from another place that returns to the original return address: unwinders know that place. Its target may not
/// depend on the stack pointer, which differs then.
fn call(instruction: &Instruction, replaced_end: u64) -> Result<Vec<Instruction>, Refusal> {
    use iced_x86::Code::{Call_rel32_64, Call_rm64, Jmp_rel32_64, Jmp_rm64, Lea_r64_m, Mov_rm32_imm32};
    let next = instruction.next_ip();
    let cannot = |_| Refusal::CannotMove;
    let names_stack = [instruction.op0_register(), instruction.memory_base()].contains(&Register::RSP);
    let jump = match instruction.code() {
        // It returns after the overwritten bytes.
        _ if next < replaced_end => return Err(Refusal::CannotMove),
        Call_rel32_64 => Instruction::with_branch(Jmp_rel32_64, instruction.near_branch_target()),
        Call_rm64 if !names_stack => {
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

    /// The instructions that are moved from a function of these bytes, of which the first `size` are its own.
    fn codes(bytes: &[u8], size: u64) -> Result<Vec<iced_x86::Code>, Refusal> {
        Ok(displaced(bytes, 0x1000, size, JUMP_BYTES)?.iter().map(|instruction| instruction.code()).collect())
    }

    /// Neighbours as in the C library: a function whose end jumps behind the first instruction of the next, filler,
    /// that one.
    fn beside(filler: &[u8]) -> Around {
        let before = [&[0x48, 0x89, 0xf8, 0x48, 0x01, 0xd0, 0xeb, 0x0b][..], filler].concat();
        assert_eq!(before.len(), 16);
        let own =
            [0x48, 0x89, 0xf8, 0x48, 0x83, 0xfa, 0x40, 0x72, 0x02, 0x31, 0xc0, 0xc3, 0x90, 0x90, 0x90, 0x90];
        Around::new(0x1000, [&before[..], &own].concat())
    }

    #[test]
    fn filler_behind_what_never_goes_on_has_room_for_a_jump() {
        let filled = beside(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]);
        assert!(filled.leads_into(&(0x1011..0x1015)) && !filled.leads_into(&(0x1011..0x1013)));
        assert_eq!(filled.filler(0x1010), Some(0x1008));
        assert_eq!(
            Way::Beside(0x1008).writes(0x1010, 0x2000),
            [(0x1008, vec![0xe9, 0xf3, 0x0f, 0, 0]), (0x1010, vec![0xeb, 0xf6]),]
        );
        assert_eq!(Way::Trap.writes(0x1010, 0x2000), [(0x1010, vec![0xcc])]);
        // Code, and filler that the code before it reaches.
        assert_eq!(beside(&[0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0, 0x31, 0xc0]).filler(0x1010), None);
        assert_eq!(beside(&[0x31, 0xc0, 0x66, 0x0f, 0x1f, 0x44, 0, 0]).filler(0x1010), None);
    }

    #[test]
    fn a_short_function_is_moved_when_only_filler_follows() {
        let short = [0x89, 0xf8, 0xc3, 0x66, 0x90, 0x90]; // mov eax, edi; ret; nop
        assert_eq!(codes(&short, 3).unwrap(), [Mov_rm32_r32, Retnq]);
        assert_eq!(codes(&[0xc3, 0xcc, 0xcc, 0xcc, 0xcc], 1).unwrap(), [Retnq]);
        assert_eq!(codes(&[0x89, 0xf8, 0xc3, 0x31, 0xc0, 0xc3], 3), Err(Refusal::TooShort));
        assert_eq!(codes(&[0x89, 0xf8, 0xc3], 3), Err(Refusal::TooShort));
        // Control continues after its end.
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
        let moved = displaced(&calls, 0x1000, 8, JUMP_BYTES).unwrap();
        let codes_of = |moved: &[Instruction]| moved.iter().map(Instruction::code).collect::<Vec<_>>();
        assert_eq!(codes_of(&moved), [Push_r64, Lea_r64_m, Mov_rm32_imm32, Mov_rm32_imm32, Jmp_rel32_64]);
        assert_eq!((moved[2].immediate32(), moved[4].near_branch_target()), (0x1006, 0x2000));
        let indirect = [0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3]; // call rax returns into what is overwritten
        assert_eq!(codes(&indirect, 6), Err(Refusal::CannotMove));
    }

    #[test]
    fn for_a_trap_one_instruction_is_moved() {
        let codes = |bytes: &[u8]| -> Result<Vec<iced_x86::Code>, Refusal> {
            let moved = displaced(bytes, 0x1000, bytes.len() as u64, TRAP_BYTES)?;
            Ok(moved.iter().map(Instruction::code).collect())
        };
        assert_eq!(codes(&[0xc3]).unwrap(), [Retnq]);
        assert_eq!(codes(&[0x89, 0xf8, 0xc3]).unwrap(), [Mov_rm32_r32, Jmp_rel32_64]);
        let led_behind_it = [0x31, 0xc0, 0x31, 0xd2, 0xff, 0xcf, 0x75, 0xfa, 0xc3]; // … jne to the second xor
        assert_eq!(codes(&led_behind_it).unwrap(), [Xor_rm32_r32, Jmp_rel32_64]);
        let pushed = [Lea_r64_m, Mov_rm32_imm32, Mov_rm32_imm32, iced_x86::Code::Jmp_rm64];
        assert_eq!(codes(&[0xff, 0xd0, 0xc3]).unwrap(), pushed, "call rax");
        assert_eq!(codes(&[0xff, 0x50, 0x08, 0xc3]).unwrap(), pushed, "call [rax + 8]");
        assert_eq!(codes(&[0xff, 0x54, 0x24, 0x08, 0xc3]), Err(Refusal::CannotMove), "call [rsp + 8]");
        let round = [0xff, 0xcf, 0x75, 0xfc, 0xc3]; // dec edi; jne to it
        assert_eq!(codes(&round), Err(Refusal::JumpedTo), "a round is no call");
        assert_eq!(codes(&[0xcc, 0xc3]), Err(Refusal::CannotMove), "its own trap");
    }

    #[test]
    fn what_its_own_code_jumps_to_is_refused() {
        let round = [0xff, 0xcf, 0x90, 0x90, 0x90, 0x75, 0xf9, 0xc3]; // dec edi; …; jne to the beginning
        assert_eq!(codes(&round, 8), Err(Refusal::JumpedTo));
        let plain = [0x31, 0xc0, 0x31, 0xd2, 0x31, 0xff, 0xc3]; // three times xor, ret
        assert_eq!(codes(&plain, 7).unwrap(), [Xor_rm32_r32, Xor_rm32_r32, Xor_rm32_r32, Jmp_rel32_64]);
    }
}
