//! Copies of restartable sequences, see [`crate::cache::sequences`].

use super::assembly::Code;
use super::general_registers::gpr;
use super::registers::Registers;
use super::translate::counted_jumps::counted_opcode;
use crate::cache::sequence::{Sequence, Zones};
use crate::machine::{SequenceCopy, SequenceTask};
use iced_x86::{
    Code as Opcode, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, InstructionInfoFactory,
    OpAccess, OpKind,
};
use std::ops::Range;

/// The most bytes that are read of an instruction before its number of four bytes.
const LONGEST: usize = 8;

/// See [`crate::machine::Restarts::signatures`].
pub(crate) fn signatures(code: &[u8], signature: u32) -> Vec<usize> {
    let bytes = signature.to_le_bytes();
    let found = code.windows(4).enumerate().filter(|(_, four)| *four == bytes).map(|(place, _)| place);
    found.filter(|place| !is_number(&code[place.saturating_sub(LONGEST)..*place])).collect()
}

/// Whether these bytes begin an instruction with a number of four bytes after them: code that registers the signature
/// names it so.
fn is_number(before: &[u8]) -> bool {
    // ud1 edi, [rip + signature]: the form for disassemblers.
    if before.ends_with(&[0x0f, 0xb9, 0x3d]) {
        return false;
    }
    match before {
        // mov and push of a number, cmp with eax.
        [.., 0xb8..=0xbf | 0x68 | 0x3d] => true,
        // cmp, or, and, xor, sub, add, and mov: to a register, or to where one points.
        [.., 0x81, 0..=0x3f | 0xc0..] | [.., 0xc7, 0..=3 | 5..=7 | 0xc0..=0xc7] => true,
        // Operands in memory, by a distance from a register, on the stack, and by a long distance.
        [.., 0xc7 | 0x81, 0x40..=0x7f, _] | [.., 0xc7 | 0x81, 0x44 | 0x7c, 0x24, _] => true,
        [.., 0xc7, 0x04, 0x24] | [.., 0xc7 | 0x81, 0x80..=0xbf, _, _, _, _] => true,
        _ => false,
    }
}

/// The role of an instruction in beginning a sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Beginning {
    /// It stores a word: the engine checks whether it is a descriptor's address.
    Store,
    /// It may store one in a way that the engine does not follow.
    Unclear,
    /// None.
    No,
}

/// An instruction's role in beginning a sequence. Each store of changeable code may begin one: the program makes that
/// code, and the descriptor, while it runs.
pub(super) fn beginning(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    (zones, is_changeable): (&Zones, bool),
) -> Beginning {
    const WORD: usize = 8;
    if !is_changeable && !zones.may_begin(instruction.next_ip()) {
        return Beginning::No;
    }
    if is_store(instruction) {
        return Beginning::Store;
    }
    let is_write = |access| !matches!(access, OpAccess::None | OpAccess::Read | OpAccess::CondRead);
    let info = factory.info(instruction);
    let writes =
        info.used_memory().iter().any(|used| is_write(used.access()) && used.memory_size().size() >= WORD);
    match writes && zones.begin_at(instruction.next_ip()) {
        true => Beginning::Unclear,
        false => Beginning::No,
    }
}

/// Whether it stores a word that is a register's value or a constant.
fn is_store(instruction: &Instruction) -> bool {
    instruction.op0_kind() == OpKind::Memory
        && matches!(instruction.code(), Opcode::Mov_rm64_r64 | Opcode::Mov_rm64_imm32)
}

fn decode(code: &[u8], pc: u64) -> Instruction {
    Decoder::with_ip(64, code, pc, DecoderOptions::NONE).decode()
}

/// See [`crate::machine::Restarts::stored`].
pub(crate) fn stored(code: &[u8], pc: u64, registers: &Registers) -> Option<(u64, u64)> {
    let store = decode(code, pc);
    let value = match store.op1_kind() {
        _ if store.is_invalid() || !is_store(&store) => return None,
        OpKind::Register => value_of(registers, gpr(store.op1_register())?.0),
        _ => store.immediate(1),
    };
    Some((value, store.next_ip()))
}

/// A general register by its number. The stack pointer points to no descriptor of a thread that runs on.
fn value_of(registers: &Registers, number: u8) -> u64 {
    let all = [
        registers.rax,
        registers.rcx,
        registers.rdx,
        registers.rbx,
        0,
        registers.rbp,
        registers.rsi,
        registers.rdi,
        registers.r8,
        registers.r9,
        registers.r10,
        registers.r11,
        registers.r12,
        registers.r13,
        registers.r14,
        registers.r15,
    ];
    all[usize::from(number & 15)]
}

/// See [`crate::machine::Restarts::copy_sequence`].
pub(crate) fn copy(
    task: &SequenceTask<'_>,
    way_in: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<SequenceCopy> {
    let mut copy = Copy {
        task,
        code: Code::default(),
        places: Vec::new(),
        jumps: Vec::new(),
        leaves: Vec::new(),
        instructions: 0,
    };
    let next = copy.store()?;
    let start = copy.code.here();
    if next != task.sequence.start {
        let hole = copy.code.jump_always_to_side();
        copy.jumps.push((hole, next));
    }
    copy.body()?;
    let bytes = copy.code.here() - start;
    copy.leave_for(task.sequence.range().end, way_in)?;
    copy.land(start..start + bytes, way_in)?;
    copy.code.put(&task.signature.to_le_bytes());
    let abort = copy.code.here();
    copy.leave_for(task.sequence.abort, way_in)?;
    let sequence = Sequence {
        start: task.at + start as u64,
        bytes: bytes as u64,
        abort: task.at + abort as u64,
        head: task.sequence.head,
    };
    Some(SequenceCopy {
        code: copy.code.bytes,
        sequence,
        places: copy.places,
        instructions: copy.instructions,
    })
}

struct Copy<'a> {
    task: &'a SequenceTask<'a>,
    code: Code,
    places: Vec<(usize, u64)>,
    /// Jumps, and their targets in the program.
    jumps: Vec<(usize, u64)>,
    /// Jumps in place of the exits from the sequence, and the exits' places in the program.
    leaves: Vec<(usize, u64)>,
    instructions: u64,
}

impl Copy<'_> {
    fn encode(&mut self, instruction: &Instruction) -> Option<()> {
        let mut encoder = Encoder::new(64);
        encoder.encode(instruction, self.task.at + self.code.here() as u64).ok()?;
        self.code.put(&encoder.take_buffer());
        Some(())
    }

    /// The store, with the address of the copy's own descriptor. Returns the address where the program continues.
    fn store(&mut self) -> Option<u64> {
        let (code, pc) = self.task.store;
        let mut store = decode(code, pc);
        let next = store.next_ip();
        self.places.push((0, pc));
        store.set_code(Opcode::Mov_rm64_imm32);
        store.set_op1_kind(OpKind::Immediate32to64);
        store.set_immediate32to64(i64::from(self.task.descriptor));
        self.encode(&store)?;
        Some(next)
    }

    /// The sequence. `None` when one of its instructions must stay at its own place.
    fn body(&mut self) -> Option<()> {
        let range = self.task.sequence.range();
        let mut pc = range.start;
        while pc < range.end {
            let rest = self.task.code.get((pc - range.start) as usize..)?;
            let instruction = decode(rest, pc);
            if instruction.is_invalid() || instruction.next_ip() > range.end {
                return None;
            }
            self.places.push((self.code.here(), pc));
            self.instructions += 1;
            self.instruction(&instruction, &rest[..instruction.len()])?;
            pc = instruction.next_ip();
        }
        Some(())
    }

    fn instruction(&mut self, instruction: &Instruction, bytes: &[u8]) -> Option<()> {
        let target = instruction.near_branch_target();
        match instruction.flow_control() {
            FlowControl::Next if instruction.is_ip_rel_memory_operand() => self.encode(instruction)?,
            FlowControl::Next => self.code.put(bytes),
            FlowControl::ConditionalBranch => {
                let hole = match counted_opcode(instruction.code()) {
                    Some(opcode) => {
                        let taken = self.code.jump_short(opcode);
                        let over = self.code.jump_short(&[0xeb]);
                        self.code.land_short(taken);
                        let hole = self.code.jump_always_to_side();
                        self.code.land_short(over);
                        hole
                    }
                    None if instruction.is_jcc_short_or_near() => {
                        // The condition's number is that of the opcode, and one.
                        self.code.jump_to_side(instruction.condition_code() as u8 - 1)
                    }
                    None => return None,
                };
                self.jumps.push((hole, target));
            }
            FlowControl::UnconditionalBranch => {
                let hole = self.code.jump_always_to_side();
                self.jumps.push((hole, target));
            }
            // It leaves the sequence, and is executed in the cache.
            FlowControl::Return | FlowControl::IndirectBranch => {
                let hole = self.code.jump_always_to_side();
                self.leaves.push((hole, instruction.ip()));
            }
            _ => return None,
        }
        Some(())
    }

    /// To the cache, for an address of the program.
    fn leave_for(&mut self, pc: u64, way_in: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
        let to = way_in(pc)?;
        self.places.push((self.code.here(), pc));
        self.code.jump_far(to);
        Some(())
    }

    /// Makes the jumps lead to their targets: in the copy, or to the cache.
    fn land(&mut self, body: Range<usize>, way_in: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
        let range = self.task.sequence.range();
        let mut leaves = std::mem::take(&mut self.leaves);
        for (hole, target) in std::mem::take(&mut self.jumps) {
            let is_target = |(place, pc): &&(usize, u64)| *pc == target && body.contains(place);
            match self.places.iter().find(is_target) {
                Some((place, _)) => self.code.land_at(hole, *place),
                // It jumps into the middle of an instruction.
                None if range.contains(&target) => return None,
                None => leaves.push((hole, target)),
            }
        }
        for (hole, target) in leaves {
            self.code.land(hole);
            self.leave_for(target, way_in)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::Register;

    const SIGNATURE: u32 = 0x5305_3053;

    fn decoded(code: &[u8], at: u64) -> Vec<Instruction> {
        Decoder::with_ip(64, code, at, DecoderOptions::NONE).iter().collect()
    }

    #[test]
    fn a_signature_that_an_instruction_names_stands_before_no_abort_handler() {
        let before =
            |bytes: &[u8]| signatures(&[bytes, &SIGNATURE.to_le_bytes(), &[0xc3]].concat(), SIGNATURE);
        assert_eq!(before(&[0x0f, 0xb9, 0x3d]), [3], "as data of an instruction that faults");
        assert_eq!(before(&[0xc3]), [1], "behind a return");
        assert_eq!(before(&[0x41, 0xba]), [], "mov r10d, signature");
        assert_eq!(before(&[0x3d]), [], "cmp eax, signature");
        assert_eq!(before(&[0x81, 0xf9]), [], "cmp ecx, signature");
        assert_eq!(before(&[0xc7, 0x44, 0x24, 0x08]), [], "mov dword ptr [rsp + 8], signature");
    }

    /// Copies a sequence at 0x1000, that the store before it begins, to 0x2000. Exits to the cache lead to the
    /// program's next address plus 0x100_0000.
    fn copied(store: &[u8], body: &[u8]) -> Option<SequenceCopy> {
        let sequence = Sequence { start: 0x1000, bytes: body.len() as u64, abort: 0x1800, head: 0 };
        let task = SequenceTask {
            store: (store, 0x1000 - store.len() as u64),
            sequence,
            code: body,
            signature: SIGNATURE,
            at: 0x2000,
            descriptor: 0x4000_0040,
        };
        copy(&task, &mut |pc| Some(pc + 0x100_0000))
    }

    /// mov fs:[8], rax
    const STORE: [u8; 9] = [0x64, 0x48, 0x89, 0x04, 0x25, 8, 0, 0, 0];

    #[test]
    fn a_copy_has_a_descriptor_of_its_own_and_leads_back_wherever_it_is_left() {
        // cmp ecx, [rip + 0x10]; jne the abort handler; dec edx; jne back to the cmp; mov [rsi], rdi
        let body = [
            &[0x3b, 0x0d, 0x10, 0, 0, 0][..],
            &[0x0f, 0x85, 0xf4, 0x07, 0, 0],
            &[0xff, 0xca],
            &[0x75, 0xf0],
            &[0x48, 0x89, 0x3e],
        ]
        .concat();
        let copy = copied(&STORE, &body).expect("a copy");
        let all = decoded(&copy.code, 0x2000);
        assert_eq!((all[0].code(), all[0].immediate32to64()), (Opcode::Mov_rm64_imm32, 0x4000_0040));
        assert_eq!(all[0].segment_prefix(), Register::FS);
        assert_eq!((copy.sequence.start, copy.instructions), (all[1].ip(), 5), "nothing stands between");
        assert_eq!(all[1].ip_rel_memory_address(), 0x1016);
        assert_eq!(all[4].near_branch_target(), all[1].ip(), "back to the beginning");
        let end = copy.sequence.range().end;
        assert_eq!(all[5].next_ip(), end, "the last store ends it");
        // To the cache: after the end, at the jump out, and where the kernel aborts it.
        let leads = |at: u64| {
            let code = &copy.code[(at - 0x2000) as usize..];
            (code[..6] == [0xff, 0x25, 0, 0, 0, 0])
                .then(|| code[6..14].iter().rev().fold(0, |a, b| a << 8 | u64::from(*b)))
        };
        assert_eq!(leads(end), Some(0x1000 + body.len() as u64 + 0x100_0000));
        assert_eq!(leads(all[2].near_branch_target()), Some(0x1800 + 0x100_0000));
        assert_eq!(leads(copy.sequence.abort), Some(0x1800 + 0x100_0000));
        assert!(!copy.sequence.range().contains(&copy.sequence.abort));
        let before = (copy.sequence.abort - 0x2000) as usize;
        assert_eq!(copy.code[before - 4..before], SIGNATURE.to_le_bytes());
        let (place, pc) = copy.places[2];
        assert_eq!((0x2000 + place as u64, pc), (all[2].ip(), 0x1006));
    }

    #[test]
    fn what_must_stand_at_its_own_place_is_not_copied() {
        assert!(copied(&STORE, &[0x48, 0x89, 0x3e]).is_some(), "mov [rsi], rdi");
        assert!(copied(&STORE, &[0xc3]).is_some(), "a return leaves the sequence");
        assert!(copied(&STORE, &[0xe8, 0, 0, 0, 0, 0x48, 0x89, 0x3e]).is_none(), "a call comes back to it");
        assert!(copied(&STORE, &[0xeb, 0x01, 0x48, 0x89, 0x3e]).is_none(), "a jump into an instruction");
        assert!(copied(&STORE, &[0x0f, 0x05]).is_none(), "a system call");
    }

    #[test]
    fn only_stores_before_or_in_a_sequence_begin_it() {
        let known = Sequence { start: 0x1009, bytes: 0x20, abort: 0x2000, head: 0 };
        let zones = Zones::with(&[known]);
        let mut factory = InstructionInfoFactory::new();
        let mut of = |code: &[u8], pc: u64| beginning(&mut factory, &decode(code, pc), (&zones, false));
        assert_eq!(of(&STORE, 0x1000), Beginning::Store);
        assert_eq!(of(&STORE, 0x1010), Beginning::Store);
        assert_eq!(of(&STORE, 0x1021), Beginning::No, "its end is no part of it");
        assert_eq!(of(&[0x48, 0x87, 0x06], 0x1006), Beginning::Unclear, "xchg [rsi], rax");
        assert_eq!(of(&[0x89, 0x06], 0x1007), Beginning::No, "half a word");
        assert_eq!(of(&[0x48, 0x8d, 0x06], 0x1006), Beginning::No, "lea rax, [rsi]");
        let mut changeable =
            |code: &[u8], pc: u64| beginning(&mut factory, &decode(code, pc), (&zones, true));
        assert_eq!(changeable(&STORE, 0x1021), Beginning::Store, "its descriptor may be made later");
        assert_eq!(changeable(&[0x89, 0x06], 0x1021), Beginning::No, "half a word");
    }

    #[test]
    fn what_is_stored_comes_from_a_register_or_a_number() {
        // SAFETY: numbers alone.
        let mut registers: Registers = unsafe { std::mem::zeroed() };
        registers.rax = 0x1234;
        assert_eq!(stored(&STORE, 0x1000, &registers), Some((0x1234, 0x1009)));
        // mov qword ptr [rsi], 0x5678
        assert_eq!(stored(&[0x48, 0xc7, 0x06, 0x78, 0x56, 0, 0], 0x1000, &registers), Some((0x5678, 0x1007)));
        assert_eq!(stored(&[0x89, 0x06], 0x1000, &registers), None);
    }
}
