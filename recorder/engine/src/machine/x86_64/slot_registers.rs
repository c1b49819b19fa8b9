//! The program's registers that lie elsewhere at places in the cache, and their locations.

use crate::machine::x86_64::gates::KEPT;
use crate::machine::x86_64::general_registers::LOG;
use crate::machine::x86_64::registers::{GREGS, Gregs};
use crate::machine::{Context, Mark, OpenLog, Translated};
use crate::threads::slots::Slots;

/// The program's registers that lie in the thread's slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotRegisters {
    /// None: all registers hold the program's values.
    Nothing,
    /// `rcx`.
    Counter,
    /// The registers that the block borrows.
    Borrowed,
    /// The borrowed registers and `rcx`.
    Both,
    /// Those, and `rax` and `rdx`.
    Timed,
    /// Within a superblock, the listed registers; and the log has its register.
    Logging(Logging),
    /// The log's register is not loaded: its value lies in a slot as well.
    Logged,
    /// The program continues at the sum of this and `rcx`, which lies in a slot, as `rdx` and the log's register do.
    Target(i64),
    /// As [`SlotRegisters::Target`], but `rcx` is the program's, and a slot holds the address where it continues.
    Missed,
    /// None, but `rcx` is as a system call at its own place would leave it.
    AfterSystemCall,
}

/// The program's registers that lie elsewhere within a superblock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Logging {
    /// The number of its executed instructions.
    pub(crate) instructions: u8,
    /// Its record is being written.
    pub(crate) is_open: bool,
    /// The register with the program's value of the log's register; otherwise that lies in a slot.
    pub(crate) own: Option<u8>,
    /// The register whose value lies in the first slot.
    pub(crate) first: Option<u8>,
    /// And in the second.
    pub(crate) second: Option<u8>,
    /// `rcx` lies in a slot.
    pub(crate) has_counter: bool,
}

const RAX: u8 = 0;
const RCX: u8 = 1;
const RDX: u8 = 2;

fn value(registers: &Gregs, register: u8) -> u64 {
    registers[GREGS[usize::from(register)] as usize] as u64
}

fn set(registers: &mut Gregs, register: u8, value: u64) {
    registers[GREGS[usize::from(register)] as usize] = value as libc::greg_t;
}

/// See [`crate::machine::Gates::unmasked`].
pub(crate) fn unmasked(registers: &Gregs, slots: &Slots) -> Gregs {
    let mut program = *registers;
    KEPT.iter().zip(slots.kept).for_each(|(register, value)| set(&mut program, *register, value));
    program.set_pc(slots.resume_pc);
    program
}

/// See [`crate::machine::Translation::at_mark`].
pub(crate) fn at_mark(mark: &Mark, block: &Translated, slots: &Slots, registers: &Gregs) -> Gregs {
    let next = match (mark.pc, mark.held) {
        (Some(pc), _) => pc,
        (None, SlotRegisters::Target(add)) => value(registers, RCX).wrapping_add_signed(add),
        (None, _) => slots.pc,
    };
    let mut program = *registers;
    for (register, value) in held(mark.held, block, slots, registers, next) {
        set(&mut program, register, value);
    }
    program.set_pc(next);
    program
}

/// The program's values of registers that lie in slots.
fn held(
    held: SlotRegisters,
    block: &Translated,
    slots: &Slots,
    registers: &Gregs,
    next: u64,
) -> Vec<(u8, u64)> {
    let borrowed = [(block.borrowed.0, slots.first), (block.borrowed.1, slots.second)];
    match held {
        SlotRegisters::Nothing => Vec::new(),
        SlotRegisters::Counter => vec![(RCX, slots.counter)],
        SlotRegisters::Borrowed => borrowed.to_vec(),
        SlotRegisters::Both => [&borrowed[..], &[(RCX, slots.counter)]].concat(),
        // The block may have borrowed one of the two.
        SlotRegisters::Timed => {
            let [rax, rdx] = slots.time_kept;
            [&[(RAX, rax), (RDX, rdx)][..], &borrowed].concat()
        }
        SlotRegisters::AfterSystemCall => vec![(RCX, next)],
        SlotRegisters::Logging(_)
        | SlotRegisters::Logged
        | SlotRegisters::Target(_)
        | SlotRegisters::Missed => held_by_superblock(held, slots, registers),
    }
}

/// The program's values of registers where a superblock has its own, from the interrupted thread's registers.
fn held_by_superblock(held: SlotRegisters, slots: &Slots, registers: &Gregs) -> Vec<(u8, u64)> {
    // SAFETY: all bits are words.
    let own = unsafe { slots.own.logged };
    let log = (LOG.0, own);
    match held {
        SlotRegisters::Target(_) => vec![log, (RCX, slots.counter), (RDX, slots.second)],
        SlotRegisters::Missed => vec![log, (RDX, slots.second)],
        SlotRegisters::Logging(state) => {
            let in_register = |register: u8| value(registers, register);
            let mut all = vec![(LOG.0, state.own.map_or(own, in_register))];
            all.extend(state.first.map(|register| (register, slots.first)));
            all.extend(state.second.map(|register| (register, slots.second)));
            all.extend(state.has_counter.then_some((RCX, slots.counter)));
            all
        }
        _ => vec![log],
    }
}

/// See [`crate::machine::Translation::open_log`].
pub(crate) fn open_log(mark: &Mark, registers: &Gregs) -> Option<OpenLog> {
    let instructions = match mark.held {
        SlotRegisters::Logging(Logging { is_open: true, instructions, .. }) => Some(instructions),
        SlotRegisters::Logging(_) | SlotRegisters::Target(_) | SlotRegisters::Missed => None,
        _ => return None,
    };
    Some(OpenLog { log: value(registers, LOG.0), instructions })
}

/// See [`crate::machine::Translation::set_log`].
pub(crate) fn set_log(registers: &mut Gregs, log: u64) {
    set(registers, LOG.0, log);
}
