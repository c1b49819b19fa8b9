//! Where calls of a function end: its returns, and jumps to other functions. Each is led through code that stamps it.
//!
//! A return has one byte. The five of a jump take the place of what stands before it in its straight line of code, or of
//! filler behind it; nothing may jump to the middle of these. What cannot be done so is refused.

use crate::addresses::{Map, Set};
use crate::choosers;
use crate::displaced::{self, targets_around};
use crate::engine::Engine;
use crate::maps;
use crate::patch::{self, JUMP_BYTES, Near};
use crate::stamps::{self, Stamps};
use crate::system::{self, File};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock, Mnemonic, OpKind, Register,
};
use lineup_recording::native::{Refusal, entry, timed, word};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Elements of a table of jumps at most.
const MOST_ELEMENTS: u64 = 4096;
/// Code that is looked through at most.
const MOST_LOOKED_AT: u64 = 1 << 20;

/// A part of a function.
#[derive(Clone, Debug)]
struct Part {
    /// Its code.
    range: Range<u64>,
    /// Where the next function begins.
    room_end: u64,
    /// Where instructions that are moved for its entry end.
    moved_end: u64,
}

/// Bytes that a jump takes the place of.
#[derive(Clone, PartialEq, Debug)]
struct Window {
    at: u64,
    /// What stood there, up to the end.
    moved: Vec<Instruction>,
    end: Instruction,
}

/// What is to be done for the ends of a function.
#[derive(Default, PartialEq, Debug)]
struct Ends {
    windows: Vec<Window>,
    /// Jumps whose distance is written anew.
    jumps: Vec<Instruction>,
}

/// All instructions of a function, and where its own code jumps.
struct Whole {
    parts: Vec<(Part, Vec<Instruction>)>,
    targets: Set,
    /// It has jumps to places that are not known: they may be its ends, and its code may be jumped to anywhere.
    is_unclear: bool,
}

impl Whole {
    fn contains(&self, pc: u64) -> bool {
        self.parts.iter().any(|(part, _)| part.range.contains(&pc))
    }

    /// `bytes` of a part reach to where its room ends; `read` reads a word of so many bytes.
    fn new(parts: Vec<(Part, Vec<u8>)>, read: impl Fn(u64, usize) -> Option<u64>) -> Whole {
        let decode = |(part, bytes): (Part, Vec<u8>)| {
            let code =
                Decoder::with_ip(64, &bytes, part.range.start, DecoderOptions::NONE).into_iter().collect();
            (part, code)
        };
        let parts: Vec<(Part, Vec<Instruction>)> = parts.into_iter().map(decode).collect();
        let mut whole = Whole { parts, targets: Set::default(), is_unclear: false };
        let own: Vec<Instruction> = whole.own().copied().collect();
        let jumps = own.iter().filter(|one| one.flow_control() != FlowControl::Call);
        whole.targets = jumps.map(Instruction::near_branch_target).filter(|target| *target != 0).collect();
        if own.iter().any(|one| one.flow_control() == FlowControl::IndirectBranch) {
            let found: Vec<u64> = own.iter().flat_map(|one| whole.table(one, &read)).collect();
            whole.is_unclear = found.is_empty();
            whole.targets.extend(found);
        }
        whole
    }

    fn own(&self) -> impl Iterator<Item = &Instruction> {
        self.parts.iter().flat_map(|(part, code)| code.iter().take_while(|one| one.ip() < part.range.end))
    }

    /// Places in the function that a table names whose address an instruction has: distances from it, or addresses.
    fn table(&self, instruction: &Instruction, read: &impl Fn(u64, usize) -> Option<u64>) -> Vec<u64> {
        let places = |element: &dyn Fn(u64) -> Option<u64>| -> Vec<u64> {
            (0..MOST_ELEMENTS).map_while(element).take_while(|place| self.contains(*place)).collect()
        };
        let addresses = |at: u64| places(&|number| read(at.wrapping_add(8 * number), 8));
        if instruction.mnemonic() == Mnemonic::Lea && instruction.is_ip_rel_memory_operand() {
            let base = instruction.ip_rel_memory_address();
            let distances = places(&|number| {
                let distance = read(base.wrapping_add(4 * number), 4)?;
                Some(base.wrapping_add_signed(i64::from(distance as u32 as i32)))
            });
            // Of labels that a program takes the addresses of. One address alone may be the function's own.
            return match distances.is_empty() {
                true => Some(addresses(base)).filter(|labels| labels.len() > 1).unwrap_or_default(),
                false => distances,
            };
        }
        let is_of_jump = instruction.flow_control() == FlowControl::IndirectBranch
            && instruction.op0_kind() == OpKind::Memory
            && instruction.memory_base() == Register::None;
        if is_of_jump { addresses(instruction.memory_displacement64()) } else { Vec::new() }
    }

    /// Whether an instruction ends a call when it is executed.
    fn ends(&self, instruction: &Instruction) -> bool {
        match instruction.flow_control() {
            FlowControl::Return => true,
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                !self.contains(instruction.near_branch_target())
            }
            _ => false,
        }
    }

    /// All ends that are not moved with the entry.
    fn plan(&self) -> Result<Ends, Refusal> {
        if self.is_unclear {
            return Err(Refusal::Unclear);
        }
        let mut ends = Ends::default();
        let mut taken: Vec<Range<u64>> = Vec::new();
        for (part, code) in &self.parts {
            for (number, end) in code.iter().enumerate().take_while(|(_, one)| one.ip() < part.range.end) {
                if end.is_invalid() {
                    return Err(Refusal::Ends);
                }
                if end.ip() < part.moved_end || !self.ends(end) {
                    continue;
                }
                if matches!(
                    end.flow_control(),
                    FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                ) && end.len() as u64 >= JUMP_BYTES
                {
                    ends.jumps.push(*end);
                    continue;
                }
                let (window, range) = self.window(part, code, number).ok_or(Refusal::Ends)?;
                if taken.iter().any(|other| other.start < range.end && range.start < other.end) {
                    return Err(Refusal::Ends);
                }
                taken.push(range);
                ends.windows.push(window);
            }
        }
        // A jump whose distance is written anew must stay as it is otherwise.
        let is_moved = |jump: &Instruction| taken.iter().any(|range| range.contains(&jump.ip()));
        if ends.jumps.iter().any(is_moved) { Err(Refusal::Ends) } else { Ok(ends) }
    }

    fn window(&self, part: &Part, code: &[Instruction], number: usize) -> Option<(Window, Range<u64>)> {
        let end = code[number];
        if end.flow_control() == FlowControl::ConditionalBranch {
            return None;
        }
        let mut first = number;
        let is_enough = |from: usize, to: u64| to - code[from].ip() >= JUMP_BYTES;
        while !is_enough(first, end.next_ip()) {
            let before = first.checked_sub(1).map(|before| code[before]);
            let is_straight = before.is_some_and(|before| {
                before.flow_control() == FlowControl::Next && before.ip() >= part.moved_end
            });
            if !is_straight || self.targets.contains(&code[first].ip()) {
                break;
            }
            first -= 1;
        }
        let mut to = end.next_ip();
        let filler = code[number + 1..].iter().take_while(|one| {
            matches!(one.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
                && !self.targets.contains(&one.ip())
                && one.next_ip() <= part.room_end
        });
        for one in filler {
            if is_enough(first, to) {
                break;
            }
            to = one.next_ip();
        }
        let at = code[first].ip();
        let window = Window { at, moved: code[first..number].to_vec(), end };
        is_enough(first, to).then_some((window, at..to))
    }
}

/// What is known of an entry that the command asked for.
#[derive(Clone, Copy)]
struct Asked {
    number: usize,
    pc: u64,
    region: u64,
    size: u64,
    room: u64,
}

/// Patches the entries and ends of all functions that the command asked for and have no answer yet. Nobody executes them
/// yet.
pub(crate) fn all(engine: &Engine) {
    let shared = &engine.shared;
    let entries = (shared.word(word::ENTRIES).load(Ordering::Acquire) as usize).min(entry::MOST);
    let asked = |number: usize| {
        let read = |field| shared.entry(number, field).load(Ordering::Acquire);
        let (pc, region, size, room) =
            (read(entry::ADDRESS), read(entry::REGION), read(entry::SIZE), read(entry::ROOM));
        let size = if size == 0 { room } else { size };
        (read(entry::ANSWER) == 0 && pc != 0 && pc != read(entry::CHOOSER)).then_some(Asked {
            number,
            pc,
            region,
            size,
            room: room.max(size),
        })
    };
    let maps = maps::read();
    let is_code = |asked: &Asked| {
        let holds = |mapping: &maps::Mapping| {
            mapping.is_fixed_code
                && mapping.range.start <= asked.pc
                && asked.pc.saturating_add(asked.size) <= mapping.range.end
        };
        maps.iter().any(holds)
    };
    let mut regions: Map<Vec<Asked>> = Map::default();
    for asked in (0..entries).filter_map(asked).filter(is_code) {
        regions.entry(asked.region & !timed::PART).or_default().push(asked);
    }
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let near = engine.code.with(|code| std::mem::take(&mut code.near));
    let mut writer = Writer { engine, memory, near };
    for (region, asked) in regions {
        let answer = match writer.watch(region, &asked) {
            Ok(()) => entry::PATCHED,
            Err(refusal) => refusal.answer(),
        };
        for one in asked {
            shared.entry(one.number, entry::ANSWER).store(answer, Ordering::Release);
        }
    }
    engine.code.with(|code| code.near = writer.near);
}

/// Has calls of a function that does nothing stamped, for their cost.
pub(crate) fn calibrate(engine: &Engine) -> bool {
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return false };
    let own = calibrate as *const () as u64;
    let near = engine.code.with(|code| std::mem::take(&mut code.near));
    let mut writer = Writer { engine, memory, near };
    let stamps = Stamps::new(engine, timed::STAMPS as u64, 0, &[]);
    let returns = [0xc3];
    let code = [stamps.begin(), stamps.end(false), returns.to_vec()].concat();
    let placed = writer.place(own, &code).and_then(|stamped| Ok((stamped, writer.place(own, &returns)?)));
    engine.code.with(|code| code.near = writer.near);
    let Ok((stamped, bare)) = placed else { return false };
    stamps::calibrate(engine, stamped, bare);
    true
}

struct Writer<'a> {
    engine: &'a Engine,
    memory: File,
    near: Vec<Near>,
}

impl Writer<'_> {
    /// Patches all parts of one region's functions.
    fn watch(&mut self, region: u64, asked: &[Asked]) -> Result<(), Refusal> {
        let stamps = Stamps::new(self.engine, region, 0, &[]);
        let mut entries = Vec::new();
        let mut parts = Vec::new();
        for one in asked {
            let mut moved_end = one.pc;
            if one.region & timed::PART == 0 {
                let displaced = displaced::at(one.pc, one.size, one.room)?;
                let is_own =
                    |moved: &&Instruction| (one.pc..one.pc + 2 * JUMP_BYTES + 15).contains(&moved.ip());
                let own = displaced.moved.iter().filter(is_own);
                moved_end = own.map(Instruction::next_ip).max().unwrap_or(one.pc).max(displaced.end(one.pc));
                entries.push((*one, displaced));
            }
            let room = one.room.min(one.size + 16).min(MOST_LOOKED_AT);
            let mut bytes = vec![0; room as usize];
            let read = system::read_memory(one.pc, &mut bytes);
            bytes.truncate(read);
            let range = one.pc..one.pc + one.size;
            parts.push((Part { range, room_end: one.pc + room, moved_end }, bytes));
        }
        let read = |at: u64, bytes: usize| {
            let mut word = [0; 8];
            (system::read_memory(at, &mut word[..bytes]) == bytes).then(|| u64::from_le_bytes(word))
        };
        let ranges: Vec<Range<u64>> = parts.iter().map(|(part, _): &(Part, _)| part.range.clone()).collect();
        let mut whole = Whole::new(parts, read);
        whole.targets.extend(ranges.iter().flat_map(targets_around));
        let ends = whole.plan()?;
        // What is unmapped is forgotten by these.
        self.engine.code.with(|code| code.entries.extend(asked.iter().map(|one| one.pc)));
        // All code is written before anything leads there.
        let mut jumps = Vec::new();
        for window in &ends.windows {
            jumps.push((window.at, self.end(&stamps, &window.moved, &window.end, window.at)?));
        }
        let mut distances = Vec::new();
        for jump in &ends.jumps {
            distances.push((jump.next_ip(), self.end(&stamps, &[], jump, jump.ip())?));
        }
        let mut ways_in = Vec::new();
        for (one, displaced) in &entries {
            let stamps = Stamps::new(self.engine, region, one.pc, &ranges);
            let begin = choosers::code_before(self.engine, one.number, stamps.begin());
            let to = self.entry((&stamps, begin), &whole, one.pc, &displaced.moved)?;
            ways_in.extend(displaced::jumps(one.pc, displaced.beside, to));
        }
        let change = |at: u64, bytes: &[u8]| patch::change(self.engine, &self.memory, at, bytes);
        let is_written = distances
            .iter()
            .all(|(next, to)| change(next - 4, &(to.wrapping_sub(*next) as u32).to_le_bytes()))
            && jumps
                .iter()
                .flat_map(|(at, to)| displaced::jumps(*at, None, *to))
                .all(|(at, bytes)| change(at, &bytes))
            && ways_in.iter().all(|(at, bytes)| change(*at, bytes));
        if is_written { Ok(()) } else { Err(Refusal::NoRoom) }
    }

    /// Code for an end: what it takes the place of, the stamp, and the end itself.
    fn end(
        &mut self,
        stamps: &Stamps,
        moved: &[Instruction],
        end: &Instruction,
        near: u64,
    ) -> Result<u64, Refusal> {
        let returns = end.flow_control() == FlowControl::Return;
        let mut last = *end;
        if !returns {
            last = Instruction::with_branch(Code::Jmp_rel32_64, end.near_branch_target())
                .map_err(|_| Refusal::CannotMove)?;
        }
        self.put(near, &[Piece::Moved(moved), Piece::Own(stamps.end(!returns)), Piece::Moved(&[last])])
    }

    /// Code for an entry: the stamp, and what was there, with ends among it led to their own code.
    fn entry(
        &mut self,
        (stamps, begin): (&Stamps, Vec<u8>),
        whole: &Whole,
        pc: u64,
        moved: &[Instruction],
    ) -> Result<u64, Refusal> {
        let mut changed = Vec::new();
        let is_own = |one: &Instruction| one.ip() != 0 && whole.contains(one.ip());
        for one in moved {
            changed.push(match whole.ends(one) && is_own(one) {
                false => *one,
                true => {
                    let mut jump = *one;
                    let to = self.end(stamps, &[], one, pc)?;
                    if one.flow_control() == FlowControl::Return {
                        jump = Instruction::with_branch(Code::Jmp_rel32_64, to)
                            .map_err(|_| Refusal::CannotMove)?;
                    }
                    jump.set_near_branch64(to);
                    jump
                }
            });
        }
        self.put(pc, &[Piece::Own(begin), Piece::Moved(&changed)])
    }

    /// Puts pieces one behind the other into memory near a place; where they begin.
    fn put(&mut self, near: u64, pieces: &[Piece<'_>]) -> Result<u64, Refusal> {
        let place = patch::place_near(&mut self.near, &(near..near + JUMP_BYTES))?;
        let at = place.next();
        let mut code = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Own(bytes) => code.extend_from_slice(bytes),
                Piece::Moved(instructions) => {
                    let block = InstructionBlock::new(instructions, at + code.len() as u64);
                    let encoded = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE);
                    code.extend(encoded.map_err(|_| Refusal::CannotMove)?.code_buffer);
                }
            }
        }
        self.place(near, &code)
    }

    fn place(&mut self, near: u64, code: &[u8]) -> Result<u64, Refusal> {
        let place = patch::place_near(&mut self.near, &(near..near + JUMP_BYTES))?;
        place.put(&self.memory, code).ok_or(Refusal::NoRoom)
    }
}

/// A piece of code.
enum Piece<'a> {
    /// The program's, to be moved.
    Moved(&'a [Instruction]),
    /// Ours, which may lie anywhere.
    Own(Vec<u8>),
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of these bytes at an address, with room behind it, whose entry moves so many.
    fn whole(bytes: &[u8], size: u64, moved: u64, table: &[(u64, u64)]) -> Whole {
        let (start, end) = (0x1000, 0x1000 + bytes.len() as u64);
        let part = Part { range: start..start + size, room_end: end, moved_end: start + moved };
        let read = |at: u64, _| table.iter().find(|(place, _)| *place == at).map(|(_, value)| *value);
        Whole::new(vec![(part, bytes.to_vec())], read)
    }

    fn windows(bytes: &[u8], size: u64, moved: u64) -> Result<Vec<(u64, usize)>, Refusal> {
        let ends = whole(bytes, size, moved, &[]).plan()?;
        Ok(ends.windows.iter().map(|window| (window.at, window.moved.len())).collect())
    }

    #[test]
    fn a_return_takes_what_stands_before_it_or_filler_behind() {
        let entry = [0x48, 0x83, 0xec, 0x18, 0x90]; // sub rsp, 24; nop
        let with = |rest: &[u8]| [&entry[..], rest].concat();
        // add rsp, 24; ret
        assert_eq!(windows(&with(&[0x48, 0x83, 0xc4, 0x18, 0xc3]), 10, 5), Ok(vec![(0x1005, 1)]));
        // je over the addition: the return alone, which has no room.
        let jumped_to = with(&[0x74, 0x04, 0x48, 0x83, 0xc4, 0x18, 0xc3]);
        assert_eq!(windows(&jumped_to, 12, 5), Err(Refusal::Ends));
        // The same, with filler behind it.
        let filled = [&jumped_to[..], &[0x0f, 0x1f, 0x40, 0x00]].concat();
        assert_eq!(windows(&filled, 12, 5), Ok(vec![(0x100b, 0)]));
        // What returns from a call is not moved.
        assert_eq!(windows(&with(&[0xe8, 0, 0, 0, 0, 0x5b, 0xc3]), 12, 5), Err(Refusal::Ends));
        let returns = with(&[0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x18, 0xc3]);
        assert_eq!(windows(&returns, 15, 5), Ok(vec![(0x100a, 1)]));
        // Nor what the entry moves, or another window has.
        assert_eq!(windows(&[0x48, 0x83, 0xec, 0x18, 0x31, 0xc0, 0xc3], 7, 6), Err(Refusal::Ends));
        assert_eq!(windows(&[0x31, 0xc0, 0xc3, 0x90, 0x90], 3, 5), Ok(vec![]));
    }

    #[test]
    fn jumps_out_are_ends_and_jumps_within_are_not() {
        // nop 5; je +9 (out); jmp −7 (in); jmp out
        let bytes = [
            &[0x0f, 0x1f, 0x44, 0x00, 0x00][..],
            &[0x0f, 0x84, 0, 1, 0, 0],
            &[0xeb, 0xf8],
            &[0xe9, 0, 1, 0, 0],
        ]
        .concat();
        let ends = whole(&bytes, 18, 5, &[]).plan().unwrap();
        assert_eq!(ends.jumps.iter().map(Instruction::ip).collect::<Vec<_>>(), [0x1005, 0x100d]);
        assert_eq!(ends.windows, []);
        // A short jump out needs room as a return does.
        let short = [&[0x0f, 0x1f, 0x44, 0x00, 0x00][..], &[0x31, 0xc0, 0x90, 0xeb, 0x40]].concat();
        assert_eq!(windows(&short, 10, 5), Ok(vec![(0x1005, 2)]));
    }

    #[test]
    fn what_a_table_leads_to_is_not_moved_and_without_one_nothing_is_certain() {
        // lea rdx, [rip + 0x100]; jmp rax; xor eax, eax; xor ecx, ecx; xor edx, edx; ret
        let bytes =
            [&[0x48, 0x8d, 0x15, 0, 1, 0, 0][..], &[0xff, 0xe0], &[0x31, 0xc0, 0x31, 0xc9, 0x31, 0xd2, 0xc3]]
                .concat();
        let table = 0x1007 + 0x100;
        let element = |number: u64, to: u64| (table + 4 * number, to.wrapping_sub(table) & 0xffff_ffff);
        assert_eq!(whole(&bytes, 16, 7, &[]).plan(), Err(Refusal::Unclear));
        let clear = whole(&bytes, 16, 7, &[element(0, 0x1009), element(1, 0x100b)]);
        assert_eq!(clear.plan().unwrap().windows[0].at, 0x100b);
        let tight = whole(&bytes, 16, 7, &[element(0, 0x1009), element(1, 0x100d)]);
        assert_eq!(tight.plan(), Err(Refusal::Ends));
    }

    #[test]
    fn a_table_of_labels_is_one_of_two_or_more_addresses() {
        // lea rdx, [rip + 0x100]; jmp rax; xor eax, eax; xor ecx, ecx; xor edx, edx; ret
        let bytes =
            [&[0x48, 0x8d, 0x15, 0, 1, 0, 0][..], &[0xff, 0xe0], &[0x31, 0xc0, 0x31, 0xc9, 0x31, 0xd2, 0xc3]]
                .concat();
        let label = |number: u64, to: u64| (0x1007 + 0x100 + 8 * number, to);
        let labels = whole(&bytes, 16, 7, &[label(0, 0x1009), label(1, 0x100b)]);
        assert_eq!(labels.plan().unwrap().windows[0].at, 0x100b);
        // A pointer to the function itself tells nothing of where it jumps.
        assert_eq!(whole(&bytes, 16, 7, &[label(0, 0x1000), label(1, 0x2000)]).plan(), Err(Refusal::Unclear));
    }
}
