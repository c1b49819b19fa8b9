//! A function's code as a whole: the ends of its calls, and its jumps to its own beginnings.

use crate::machine::x86_64::displacement::JUMP_BYTES;
use crate::system::address_tables::Set;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use lineup_recording::native::Refusal;
use std::ops::Range;

/// Elements of a table of jumps at most.
const MOST_ELEMENTS: u64 = 4096;
/// A part of a function.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Its code.
    pub(crate) range: Range<u64>,
    /// Start of the next function.
    pub(crate) room_end: u64,
    /// End of the instructions that are moved for its entry.
    pub(crate) moved_end: u64,
}

/// Bytes that a jump replaces.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Window {
    pub(crate) at: u64,
    /// The replaced instructions, up to the end.
    pub(crate) moved: Vec<Instruction>,
    pub(crate) end: Instruction,
}

/// The changes for the ends of a function.
#[derive(Default, PartialEq, Debug)]
pub(crate) struct Ends {
    pub(crate) windows: Vec<Window>,
    /// Jumps whose distance is written anew.
    pub(crate) jumps: Vec<Instruction>,
    /// Bytes that windows take.
    taken: Vec<Range<u64>>,
}

/// Jumps to the beginning of the function, or of a part of it: these are no calls.
#[derive(Default, PartialEq, Debug)]
pub(crate) struct Within {
    /// Ends that are moved with an entry.
    pub(crate) moved: Vec<Instruction>,
    /// Ends whose distance is written anew.
    pub(crate) jumps: Vec<Instruction>,
    /// Ends without room for that.
    pub(crate) windows: Vec<Window>,
}

/// All instructions of a function, and the targets of its own jumps.
pub(crate) struct Whole {
    parts: Vec<(Part, Vec<Instruction>)>,
    pub(crate) targets: Set,
    /// It has jumps with unknown targets: they may be its ends, and they may lead to any place in its code.
    is_unclear: bool,
}

impl Whole {
    pub(crate) fn contains(&self, pc: u64) -> bool {
        self.parts.iter().any(|(part, _)| part.range.contains(&pc))
    }

    /// `bytes` of a part reach to the end of its room; `read` reads a word of this many bytes.
    pub(crate) fn new(parts: Vec<(Part, Vec<u8>)>, read: impl Fn(u64, usize) -> Option<u64>) -> Whole {
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

    /// Places in the function that are in a table whose address an instruction has: distances from it, or addresses.
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
            // These are labels whose addresses a program takes. One address alone may be the function's own.
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
    pub(crate) fn ends(&self, instruction: &Instruction) -> bool {
        match instruction.flow_control() {
            FlowControl::Return => true,
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                !self.contains(instruction.near_branch_target())
            }
            _ => false,
        }
    }

    /// All ends that are not moved with the entry.
    pub(crate) fn plan(&self) -> Result<Ends, Refusal> {
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
                // A stamp would have to know whether the jump is taken.
                let is_sure = end.flow_control() != FlowControl::ConditionalBranch;
                let window = if is_sure { self.window(part, code, number) } else { None };
                let (window, range) = window.ok_or(Refusal::Ends)?;
                if taken.iter().any(|other| other.start < range.end && range.start < other.end) {
                    return Err(Refusal::Ends);
                }
                taken.push(range);
                ends.windows.push(window);
            }
        }
        // A jump whose distance is written anew must keep its other bytes.
        let is_moved = |jump: &Instruction| taken.iter().any(|range| range.contains(&jump.ip()));
        if ends.jumps.iter().any(is_moved) {
            return Err(Refusal::Ends);
        }
        ends.taken = taken;
        Ok(ends)
    }

    /// Its jumps to these places, the beginnings of it and its parts, that can be redirected along with its ends.
    pub(crate) fn within(&self, entries: &Set, ends: &Ends) -> Within {
        let mut within = Within::default();
        let mut taken = ends.taken.clone();
        for (part, code) in &self.parts {
            for (number, jump) in code.iter().enumerate().take_while(|(_, one)| one.ip() < part.range.end) {
                let is_jump = matches!(
                    jump.flow_control(),
                    FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
                );
                if !is_jump || !entries.contains(&jump.near_branch_target()) {
                    continue;
                }
                let is_free = |range: &Range<u64>| {
                    taken.iter().all(|other| other.end <= range.start || range.end <= other.start)
                };
                if jump.ip() < part.moved_end {
                    within.moved.push(*jump);
                } else if jump.len() as u64 >= JUMP_BYTES {
                    within.jumps.extend(is_free(&(jump.ip()..jump.next_ip())).then_some(*jump));
                } else if let Some((window, range)) =
                    self.window(part, code, number).filter(|(_, range)| !self.is_unclear && is_free(range))
                {
                    taken.push(range);
                    within.windows.push(window);
                }
            }
        }
        within
    }

    fn window(&self, part: &Part, code: &[Instruction], number: usize) -> Option<(Window, Range<u64>)> {
        let end = code[number];
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
                && end.flow_control() != FlowControl::ConditionalBranch
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A function of these bytes at an address, with room behind it, whose entry moves this many bytes.
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
        // An instruction that a call returns to is not moved.
        assert_eq!(windows(&with(&[0xe8, 0, 0, 0, 0, 0x5b, 0xc3]), 12, 5), Err(Refusal::Ends));
        let returns = with(&[0xe8, 0, 0, 0, 0, 0x48, 0x83, 0xc4, 0x18, 0xc3]);
        assert_eq!(windows(&returns, 15, 5), Ok(vec![(0x100a, 1)]));
        // An instruction that the entry or another window moves is not moved again.
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
        // A short jump out needs room, as a return does.
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
        // A pointer to the function itself says nothing about the targets of its jumps.
        assert_eq!(whole(&bytes, 16, 7, &[label(0, 0x1000), label(1, 0x2000)]).plan(), Err(Refusal::Unclear));
    }
}
