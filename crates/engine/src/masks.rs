//! Where the program's files set which signals are blocked: system calls of that number lead to the engine while
//! traps may stand in the program's code.
//!
//! Compilers put other instructions between the one that sets the number and the call. Those are moved: the jump
//! stands in place of the first.

use crate::displaced::Way;
use crate::engine::Engine;
use crate::gates::{self, Registers};
use crate::patch::{self, JUMP_BYTES, Near};
use crate::system::{self, File};
use crate::{maps, traps};
use iced_x86::{
    BlockEncoder, BlockEncoderOptions, Code, Decoder, DecoderOptions, FlowControl, Instruction,
    InstructionBlock, InstructionInfoFactory, Register,
};

/// Instructions between the number and the call at most.
const MOST_BETWEEN: usize = 8;
/// So far before it is begun to read, to know where instructions begin.
const BEFORE: usize = 96;
/// `mov eax, 14`.
const NUMBER: [u8; 5] = [0xb8, libc::SYS_rt_sigprocmask as u8, 0, 0, 0];
/// `mov r9, [rsp + 8]; syscall`: the C library's function that makes any call.
const ANY: [u8; 7] = [0x4c, 0x8b, 0x4c, 0x24, 0x08, 0x0f, 0x05];

/// A place where masks are set.
#[derive(PartialEq, Debug)]
struct Site {
    /// Where the jump goes.
    at: u64,
    /// What follows the first instruction, up to the system call.
    between: Vec<Instruction>,
    /// What follows the system call.
    back: u64,
}

/// Leads all system calls that set masks to the engine, or those in the code that an address lies in.
pub(crate) fn lead(engine: &Engine, only: Option<u64>) {
    let Some(memory) = File::open(b"/proc/self/mem\0", libc::O_RDWR) else { return };
    let mut near = engine.code.with(|code| std::mem::take(&mut code.near));
    for mapping in patch::others_code(maps::read(), lead as *const () as u64) {
        let range = mapping.range;
        if only.is_some_and(|only| !range.contains(&only)) {
            continue;
        }
        let mut code = vec![0; (range.end - range.start) as usize];
        let read = system::read_memory(range.start, &mut code);
        for site in sites(&code[..read], range.start) {
            lead_one(engine, (&memory, &mut near), &site);
        }
        for at in anys(&code[..read]).map(|offset| range.start + offset as u64) {
            lead_any(engine, (&memory, &mut near), at);
        }
    }
    engine.code.with(|code| code.near = near);
}

/// Where code from `start` on sets masks.
fn sites(code: &[u8], start: u64) -> Vec<Site> {
    let places = code.windows(NUMBER.len()).enumerate().filter(|(_, bytes)| *bytes == NUMBER);
    places.filter_map(|(offset, _)| site(code, offset, start)).collect()
}

fn site(code: &[u8], offset: usize, start: u64) -> Option<Site> {
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
    let bytes = &code[offset + NUMBER.len()..];
    let read = Decoder::with_ip(64, bytes, at + NUMBER.len() as u64, DecoderOptions::NONE);
    for one in read.into_iter().take(MOST_BETWEEN + 1) {
        if one.code() == Code::Syscall {
            return Some(Site { at, between, back: one.next_ip() });
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

/// Where a function makes any system call.
fn anys(code: &[u8]) -> impl Iterator<Item = usize> {
    code.windows(ANY.len()).enumerate().filter(|(_, bytes)| *bytes == ANY).map(|(offset, _)| offset)
}

fn lead_one(engine: &Engine, (memory, near): (&File, &mut Vec<Near>), site: &Site) {
    let Ok(place) = patch::place_near(near, &(site.at..site.at + JUMP_BYTES)) else { return };
    let block = InstructionBlock::new(&site.between, place.next());
    let Ok(moved) = BlockEncoder::encode(64, block, BlockEncoderOptions::NONE) else { return };
    let called = gates::in_place_of_call(from_site as *const () as u64, None, site.back);
    if let Some(to) = place.put(memory, &[moved.code_buffer, called].concat()) {
        patch::write(engine, memory, site.at, &Way::Jump.writes(site.at, to), &[]);
    }
}

fn lead_any(engine: &Engine, (memory, near): (&File, &mut Vec<Near>), at: u64) {
    let Ok(place) = patch::place_near(near, &(at..at + JUMP_BYTES)) else { return };
    let code = gates::in_place_of_any_call(
        &ANY[..JUMP_BYTES as usize],
        (libc::SYS_rt_sigprocmask as u8, from_site as *const () as u64),
        at + ANY.len() as u64,
    );
    if let Some(to) = place.put(memory, &code) {
        patch::write(engine, memory, at, &Way::Jump.writes(at, to), &[]);
    }
}

/// From a system call that sets a mask.
///
/// # Safety
/// Only from [`gates::in_place_of_call`], with the registers of the system call.
unsafe extern "C" fn from_site(registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    registers.rcx = registers.r11;
    traps::set_mask(registers);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where sites are found in code at 0x1000, how much stands between, and where they go on.
    fn found(code: &[&[u8]]) -> Vec<(u64, usize, u64)> {
        let found = sites(&code.concat(), 0x1000).into_iter();
        found.map(|site| (site.at, site.between.len(), site.back)).collect()
    }

    #[test]
    fn calls_that_set_masks_are_found_with_what_stands_between() {
        const SYSCALL: &[u8] = &[0x0f, 0x05];
        let lea: &[u8] = &[0x48, 0x8d, 0xb3, 0xf0, 8, 0, 0]; // lea rsi, [rbx + 0x8f0]
        let next = found(&[&[0x90], &NUMBER, SYSCALL]);
        assert_eq!(next, [(0x1001, 0, 0x1008)]);
        assert_eq!(found(&[&[0x90], &NUMBER, lea, SYSCALL]), [(0x1001, 1, 0x100f)]);
        assert_eq!(found(&[&[0x41], &NUMBER, SYSCALL]), [], "mov r8d, 14");
        assert_eq!(found(&[&NUMBER, &[0xff, 0xc0], SYSCALL]), [], "inc eax");
        assert_eq!(found(&[&NUMBER, &[0x75, 2], SYSCALL]), [], "it may jump away");
        assert_eq!(found(&[&NUMBER, &[0xc3], SYSCALL]), []);
    }
}
