//! The system calls in the program's files that the engine must handle.
//!
//! Compilers put other instructions between the one that sets the number and the call. The engine moves those: the jump
//! replaces the first.

use super::gates;
use crate::machine::x86_64::displacement::JUMP_BYTES;
use crate::machine::{CallSite, Led, SpreadSite};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock, InstructionInfoFactory, Register,
};

/// The most instructions between the number and the call.
const MOST_BETWEEN: usize = 8;
/// Decoding starts this many bytes before it, to find the boundaries of instructions.
const BEFORE: usize = 96;
/// `mov eax, number`.
const NUMBER: [u8; 1] = [0xb8];
/// `mov rax, number`, in the encoding of Go's assembler.
const LONGER: [u8; 3] = [0x48, 0xc7, 0xc0];
/// Bytes of the number.
const NUMBER_BYTES: usize = 4;
/// `mov r9, [rsp + 8]; syscall`: the C library's function that makes any call.
const ANY: [u8; 7] = [0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05];

/// Places of `mov eax, number; syscall` in code.
pub(crate) fn of_calls(code: &[u8]) -> impl Iterator<Item = CallSite> {
    const CALL: [u8; 2] = [0x0f, 0x05];
    const BYTES: usize = 7;
    let calls = code.windows(BYTES).enumerate().filter(|(_, bytes)| bytes[5..] == CALL && bytes[0] == 0xb8);
    calls.filter_map(|(offset, bytes)| {
        let number = i64::from(u32::from_le_bytes(bytes[1..5].try_into().ok()?));
        Some(CallSite { offset, number, bytes: BYTES as u64 })
    })
}

/// A system call whose number is set some instructions before.
#[derive(PartialEq, Debug)]
pub(crate) struct Site {
    /// Address of the jump.
    at: u64,
    number: i64,
    /// The instructions after the first one, up to the system call.
    between: Vec<Instruction>,
    /// The address after the system call.
    back: u64,
}

impl SpreadSite for Site {
    fn at(&self) -> u64 {
        self.at
    }

    fn number(&self) -> i64 {
        self.number
    }

    fn code(&self, at: u64, function: u64, goes_on: bool) -> Option<Vec<u8>> {
        let block = InstructionBlock::new(&self.between, at);
        let moved = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE).ok()?;
        let number = goes_on.then_some(self.number as u32);
        Some([moved.code_buffer, gates::in_place_of_call(function, number, self.back)].concat())
    }
}

/// See [`crate::machine::Gates::in_place_of_any_call`].
pub(crate) fn in_place_of_any(at: u64, led: &[Led]) -> Vec<u8> {
    gates::in_place_of_any_call(&ANY[..JUMP_BYTES as usize], led, (at + JUMP_BYTES, at + ANY.len() as u64))
}

/// System calls of these numbers in code from `start` on.
pub(crate) fn spread(code: &[u8], start: u64, numbers: &[i64]) -> Vec<Site> {
    let mut sites = Vec::new();
    for moves in [&NUMBER[..], &LONGER] {
        let places = code.windows(moves.len() + NUMBER_BYTES).enumerate();
        let named = places.filter(|(_, bytes)| bytes.starts_with(moves)).filter_map(|(offset, bytes)| {
            let number = i64::from(u32::from_le_bytes(bytes[moves.len()..].try_into().ok()?));
            numbers.contains(&number).then_some((offset, number))
        });
        sites.extend(named.filter_map(|(offset, number)| site(code, offset, start, number)));
    }
    sites
}

fn site(code: &[u8], offset: usize, start: u64, number: i64) -> Option<Site> {
    let at = start + offset as u64;
    let begins = |before: usize| {
        let from = offset.saturating_sub(before);
        let mut read = Decoder::with_ip(64, &code[from..], start + from as u64, DecoderOptions::NONE);
        read.iter().map(|one| one.ip()).take_while(|ip| *ip <= at).last() == Some(at)
    };
    if !begins(BEFORE) && !begins(2 * BEFORE) {
        return None;
    }
    let mut info = InstructionInfoFactory::new();
    let mut between = Vec::new();
    let mut read = Decoder::with_ip(64, &code[offset..], at, DecoderOptions::NONE);
    // The instruction that sets the number.
    let _ = read.decode();
    for one in read.into_iter().take(MOST_BETWEEN + 1) {
        if one.code() == Code::Syscall {
            return Some(Site { at, number, between, back: one.next_ip() });
        }
        let is_number = |register: Register| register.full_register() == Register::RAX;
        let uses_number = info.info(&one).used_registers().iter().any(|used| is_number(used.register()));
        if one.flow_control() != FlowControl::Next || one.is_invalid() || uses_number {
            return None;
        }
        between.push(one);
    }
    None
}

/// Places where a function makes any system call.
pub(crate) fn anys(code: &[u8]) -> impl Iterator<Item = usize> {
    code.windows(ANY.len()).enumerate().filter(|(_, bytes)| *bytes == ANY).map(|(offset, _)| offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov eax, 14`.
    const MASK: [u8; 5] = [0xb8, libc::SYS_rt_sigprocmask as u8, 0, 0, 0];

    /// Addresses of the sites in code at 0x1000, the number of instructions in between, and the addresses after them.
    fn found(code: &[&[u8]]) -> Vec<(u64, usize, u64)> {
        let found = spread(&code.concat(), 0x1000, &[libc::SYS_rt_sigprocmask]).into_iter();
        found.map(|site| (site.at, site.between.len(), site.back)).collect()
    }

    #[test]
    fn system_calls_are_found_by_their_number() {
        // nop; mov eax, 9; syscall; mov eax, 11; syscall; mov eax, 11; ret
        let code = [
            &[0x90][..],
            &[0xb8, 9, 0, 0, 0, 0x0f, 5],
            &[0xb8, 11, 0, 0, 0, 0x0f, 5],
            &[0xb8, 11, 0, 0, 0, 0xc3],
        ];
        let found = of_calls(&code.concat()).map(|site| (site.offset, site.number)).collect::<Vec<_>>();
        assert_eq!(found, [(1, libc::SYS_mmap), (8, libc::SYS_munmap)]);
    }

    #[test]
    fn calls_that_set_masks_are_found_with_what_stands_between() {
        const SYSCALL: &[u8] = &[0x0f, 0x05];
        let lea: &[u8] = &[0x48, 0x8d, 0xb3, 0xf0, 8, 0, 0]; // lea rsi, [rbx + 0x8f0]
        let next = found(&[&[0x90], &MASK, SYSCALL]);
        assert_eq!(next, [(0x1001, 0, 0x1008)]);
        assert_eq!(found(&[&[0x90], &MASK, lea, SYSCALL]), [(0x1001, 1, 0x100f)]);
        assert_eq!(found(&[&[0x41], &MASK, SYSCALL]), [], "mov r8d, 14");
        assert_eq!(found(&[&MASK, &[0xff, 0xc0], SYSCALL]), [], "inc eax");
        assert_eq!(found(&[&MASK, &[0x75, 2], SYSCALL]), [], "it may jump away");
        assert_eq!(found(&[&MASK, &[0xc3], SYSCALL]), []);
        let longer = [0x48, 0xc7, 0xc0, libc::SYS_rt_sigprocmask as u8, 0, 0, 0]; // mov rax, 14
        assert_eq!(found(&[&[0x90], &longer, SYSCALL]), [(0x1001, 0, 0x100a)]);
    }
}
