//! The ends of a function's calls: its returns, and jumps to other functions. Each is redirected through code that
//! stamps it.
//!
//! A return has one byte. The five bytes of a jump replace the instructions before it in its straight line of code, or
//! filler after it; no code may jump to the middle of these. Without such room, a function that calls no other is moved
//! as a whole. All other functions are refused.

use super::stamps::Stamps;
use super::whole_function::{Part, Whole};
use crate::engine::Engine;
use crate::entries::near_code::{self, Near};
use crate::entries::{choosers, code_changes};
use crate::machine::TimedFunction;
use crate::machine::x86_64::displacement::{self, JUMP_BYTES, Way, targets_around};
use crate::machine::x86_64::inner_jumps;
use crate::system::address_tables::Map;
use crate::system::{self, File};
use iced_x86::{BlockEncoder, BlockEncoderOptions, Code, FlowControl, Instruction, InstructionBlock};
use lineup_recording::native::{Refusal, timed};
use std::ops::Range;

/// The most bytes of code that are searched.
const MOST_LOOKED_AT: u64 = 1 << 20;

/// See [`crate::machine::Timing::stamp`].
pub(crate) fn stamp(
    engine: &Engine,
    (memory, near): (&File, &mut Vec<Near>),
    moved: &mut Map<u64>,
    region: u64,
    parts: &[TimedFunction],
) -> Result<(), Refusal> {
    let mut writer = Writer { engine, memory, near, moved };
    match writer.watch(region, parts, Moves::WhatIsReplaced) {
        Err(first @ (Refusal::Ends | Refusal::JumpedTo | Refusal::TooShort | Refusal::CannotMove)) => {
            // When that fails too, the first reason is the more specific one.
            let moved = writer.watch(region, parts, Moves::AllThatCan);
            moved.map_err(|other| if other == Refusal::Restartable { other } else { first })
        }
        other => other,
    }
}

/// See [`crate::machine::Timing::stamped_function`].
pub(crate) fn stamped_function(engine: &Engine) -> [Vec<u8>; 2] {
    let stamps = Stamps::new(engine, timed::STAMPS as u64, 0, &[]);
    let returns = [0xc3];
    [[stamps.begin(), stamps.end(false), returns.to_vec()].concat(), returns.to_vec()]
}

struct Writer<'a> {
    engine: &'a Engine,
    memory: &'a File,
    near: &'a mut Vec<Near>,
    /// New places of the program's instructions.
    moved: &'a mut Map<u64>,
}

impl Writer<'_> {
    /// Patches all parts of one region's functions. Refused functions stay unchanged.
    fn watch(&mut self, region: u64, asked: &[TimedFunction], moves: Moves) -> Result<(), Refusal> {
        let stamps = Stamps::new(self.engine, region, 0, &[]);
        let mut entries = Vec::new();
        let mut parts = Vec::new();
        for one in asked {
            let mut moved_end = one.pc;
            if one.region & timed::PART == 0 {
                let all = match moves {
                    Moves::AllThatCan if self.may_move(one.pc) => {
                        displacement::all_of(one.pc, one.size, one.room).ok()
                    }
                    Moves::AllThatCan | Moves::WhatIsReplaced => None,
                };
                let reach = if all.is_some() { one.size } else { 2 * JUMP_BYTES + 15 };
                let displaced = all.map_or_else(|| displacement::at(one.pc, one.size, one.room), Ok)?;
                let is_own = |moved: &&Instruction| (one.pc..one.pc + reach).contains(&moved.ip());
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
        let zones = self.engine.code.with(|code| asked.first().map(|one| code.zones_at(one.pc)));
        let breaks =
            |moved: &[Instruction]| zones.as_ref().is_some_and(|zones| displacement::breaks(moved, zones));
        let is_broken = entries.iter().any(|(_, displaced)| breaks(&displaced.moved))
            || ends.windows.iter().any(|window| breaks(&window.moved));
        if is_broken {
            return Err(Refusal::Restartable);
        }
        // Unmapped code is forgotten by these.
        self.engine.code.with(|code| code.entries.extend(asked.iter().map(|one| one.pc)));
        // All code is written before any jump leads there.
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
            ways_in.extend(displaced.way.writes(one.pc, to));
        }
        let within = whole.within(&entries.iter().map(|(one, _)| one.pc).collect(), &ends);
        for jump in within.moved {
            inner_jumps::retarget_moved(self.memory, self.moved, &jump);
        }
        let begins = |moved: &Map<u64>, jump: &Instruction| moved.get(&jump.near_branch_target()).copied();
        distances
            .extend(within.jumps.iter().filter_map(|jump| Some((jump.next_ip(), begins(self.moved, jump)?))));
        for window in &within.windows {
            let Some(to) = begins(self.moved, &window.end) else { continue };
            let code = inner_jumps::window(window, to).ok_or(Refusal::CannotMove)?;
            jumps.push((window.at, self.put(window.at, &[Piece::Moved(&code)])?));
        }
        let change = |at: u64, bytes: &[u8]| code_changes::change(self.engine, self.memory, at, bytes);
        let is_written = distances
            .iter()
            .all(|(next, to)| change(next - 4, &(to.wrapping_sub(*next) as u32).to_le_bytes()))
            && jumps
                .iter()
                .flat_map(|(at, to)| Way::Jump.writes(*at, *to))
                .all(|(at, bytes)| change(at, &bytes))
            && ways_in.iter().all(|(at, bytes)| change(*at, bytes));
        if is_written { Ok(()) } else { Err(Refusal::NoRoom) }
    }

    /// Whether functions may be moved as a whole there: restartable sequences of that code are known.
    fn may_move(&self, pc: u64) -> bool {
        self.engine.code.with(|code| !code.zones_at(pc).are_unknown_at(pc))
    }

    /// Code for an end: the instructions that the jump replaces, the stamp, and the end itself.
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

    /// Code for an entry: the stamp and the replaced instructions, with ends among them redirected to their own code.
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
                        // Jumps to the return go there.
                        jump.set_ip(one.ip());
                    }
                    jump.set_near_branch64(to);
                    jump
                }
            });
        }
        self.put(pc, &[Piece::Own(begin), Piece::Moved(&changed)])
    }

    /// Puts pieces one after the other into memory near a place. Returns their addresses.
    fn put(&mut self, near: u64, pieces: &[Piece<'_>]) -> Result<u64, Refusal> {
        let at = near_code::place_near(self.near, &(near..near + JUMP_BYTES))?.next();
        let mut code = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Own(bytes) => code.extend_from_slice(bytes),
                Piece::Moved(instructions) => {
                    let block = InstructionBlock::new(instructions, at + code.len() as u64);
                    let options = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
                    let encoded =
                        BlockEncoder::encode(64, block, options).map_err(|_| Refusal::CannotMove)?;
                    let begin = at + code.len() as u64;
                    let places = instructions.iter().zip(&encoded.new_instruction_offsets);
                    self.moved.extend(places.map(|(one, offset)| (one.ip(), begin + u64::from(*offset))));
                    code.extend(encoded.code_buffer);
                }
            }
        }
        if code.len() as u64 > near_code::MOST_BYTES {
            return Err(Refusal::CannotMove);
        }
        self.place(near, &code)
    }

    fn place(&mut self, near: u64, code: &[u8]) -> Result<u64, Refusal> {
        let place = near_code::place_near(self.near, &(near..near + JUMP_BYTES))?;
        place.put(self.memory, code).ok_or(Refusal::NoRoom)
    }
}

/// The part of a function that is moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moves {
    /// The instructions that jumps replace.
    WhatIsReplaced,
    /// All of it, where possible.
    AllThatCan,
}

/// A piece of code.
enum Piece<'a> {
    /// The program's instructions, to be moved.
    Moved(&'a [Instruction]),
    /// Our instructions, which may lie anywhere.
    Own(Vec<u8>),
}
