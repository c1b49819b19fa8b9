//! Filters of system calls that the program installs for itself (seccomp), and the engine's own calls that they forbid.

use crate::machine::{Abi, Host};
use crate::system;

/// An instruction of a filter, as the kernel reads it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Instruction {
    code: u16,
    /// The number of instructions to skip when a comparison holds, and when it does not.
    jumps: [u8; 2],
    value: u32,
}

/// Bytes of one.
const INSTRUCTION_BYTES: usize = 8;
/// The kernel's limit of a filter's instructions.
const MOST_INSTRUCTIONS: usize = 4096;
/// Words that a filter may keep values in.
const KEPT_WORDS: usize = 16;
/// Words of a filter's input: number, machine, place, and six arguments.
const DATA_WORDS: usize = 16;

/// A filter's decision to make the call. Calls that are also logged are made as well.
const ALLOW: u32 = 0x7fff_0000;
const LOG: u32 = 0x7ffc_0000;
/// The decision, without its data.
const ACTION: u32 = 0xffff_0000;

/// A system call of the engine while the program runs, with its arguments; addresses are examples.
struct Needed(i64, &'static str, [u64; 6]);

const ANY: u64 = 0x7f00_0000_0000;
const NEEDED: [Needed; 17] = [
    Needed(libc::SYS_rt_sigprocmask, "rt_sigprocmask", [libc::SIG_SETMASK as u64, ANY, ANY, 8, 0, 0]),
    Needed(libc::SYS_process_vm_readv, "process_vm_readv", [1, ANY, 1, ANY, 1, 0]),
    Needed(
        libc::SYS_openat,
        "openat",
        [libc::AT_FDCWD as u64, ANY, (libc::O_RDONLY | libc::O_CLOEXEC) as u64, 0, 0, 0],
    ),
    Needed(
        libc::SYS_openat,
        "openat for writing",
        [libc::AT_FDCWD as u64, ANY, (libc::O_RDWR | libc::O_CLOEXEC) as u64, 0, 0, 0],
    ),
    Needed(libc::SYS_read, "read", [100, ANY, 1 << 14, 0, 0, 0]),
    Needed(libc::SYS_pwrite64, "pwrite64", [100, ANY, 5, ANY, 0, 0]),
    Needed(libc::SYS_close, "close", [100, 0, 0, 0, 0, 0]),
    Needed(
        libc::SYS_mmap,
        "mmap",
        [
            0,
            1 << 20,
            (libc::PROT_READ | libc::PROT_WRITE) as u64,
            (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64,
            u64::MAX,
            0,
        ],
    ),
    Needed(libc::SYS_munmap, "munmap", [ANY, 1 << 20, 0, 0, 0, 0]),
    Needed(
        libc::SYS_mprotect,
        "mprotect",
        [ANY, 1 << 16, (libc::PROT_READ | libc::PROT_EXEC) as u64, 0, 0, 0],
    ),
    Needed(libc::SYS_getpid, "getpid", [0; 6]),
    Needed(libc::SYS_gettid, "gettid", [0; 6]),
    Needed(libc::SYS_tgkill, "tgkill", [1, 1, 0, 0, 0, 0]),
    Needed(libc::SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo", [1, 1, libc::SIGUSR1 as u64, ANY, 0, 0]),
    Needed(libc::SYS_ppoll, "ppoll", [0, 0, ANY, 0, 8, 0]),
    Needed(libc::SYS_rt_sigreturn, "rt_sigreturn", [0; 6]),
    Needed(libc::SYS_sched_yield, "sched_yield", [0; 6]),
];

/// Further calls of the engine when it starts, in a program that inherits the filter.
const STARTS: [Needed; 4] = [
    Needed(libc::SYS_memfd_create, "memfd_create", [ANY, libc::MFD_CLOEXEC as u64, 0, 0, 0, 0]),
    Needed(libc::SYS_ftruncate, "ftruncate", [100, 1 << 20, 0, 0, 0, 0]),
    Needed(libc::SYS_madvise, "madvise", [ANY, 4096, libc::MADV_WIPEONFORK as u64, 0, 0, 0]),
    Needed(
        libc::SYS_membarrier,
        "membarrier",
        [libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE as u64, 0, 0, 0, 0, 0],
    ),
];

/// Whether the engine could not start in a program that inherits the filter at an address.
pub(crate) fn forbids_start(at: u64) -> bool {
    read(at)
        .is_some_and(|filter| NEEDED.iter().chain(&STARTS).any(|needed| !allows(&filter, needed.0, needed.2)))
}

/// The first of the engine's own calls that a filter at an address forbids; `None` when it allows all, or cannot be
/// read: then the kernel refuses it.
pub(crate) fn forbidden_by(at: u64) -> Option<&'static str> {
    let filter = read(at)?;
    let is_forbidden = |needed: &&Needed| !allows(&filter, needed.0, needed.2);
    NEEDED.iter().find(is_forbidden).map(|needed| needed.1)
}

/// The filter that the program gives the kernel.
fn read(at: u64) -> Option<Vec<Instruction>> {
    let count = system::read_word(at)? as u16 as usize;
    let mut bytes = vec![0; count * INSTRUCTION_BYTES];
    let is_fit = (1..=MOST_INSTRUCTIONS).contains(&count);
    let is_read = is_fit && system::read_memory(system::read_word(at + 8)?, &mut bytes) == bytes.len();
    is_read.then(|| bytes.as_chunks().0.iter().map(instruction).collect())
}

fn instruction([low, high, yes, no, value @ ..]: &[u8; INSTRUCTION_BYTES]) -> Instruction {
    Instruction {
        code: u16::from_le_bytes([*low, *high]),
        jumps: [*yes, *no],
        value: u32::from_le_bytes(*value),
    }
}

/// Whether a filter lets a call of the engine's be made.
fn allows(filter: &[Instruction], number: i64, arguments: [u64; 6]) -> bool {
    let place = allows as *const () as u64;
    let mut data = [0; DATA_WORDS];
    (data[0], data[1]) = (number as u32, Host::AUDITED_AS);
    let halves = [place].into_iter().chain(arguments).flat_map(|word| [word as u32, (word >> 32) as u32]);
    data[2..].iter_mut().zip(halves).for_each(|(word, half)| *word = half);
    decision(filter, &data).is_some_and(|decision| [ALLOW, LOG].contains(&(decision & ACTION)))
}

/// A filter's decision; `None` for a filter that the kernel does not take.
fn decision(filter: &[Instruction], data: &[u32; DATA_WORDS]) -> Option<u32> {
    const OPERAND_IS_INDEX: u16 = 8;
    let (mut sum, mut index, mut kept) = (0u32, 0u32, [0u32; KEPT_WORDS]);
    let mut at = 0;
    loop {
        let Instruction { code, jumps, value } = *filter.get(at)?;
        at += 1;
        let operand = if code & OPERAND_IS_INDEX == 0 { value } else { index };
        match code {
            // Loads.
            0x20 => sum = *data.get(value as usize / 4).filter(|_| value % 4 == 0)?,
            0x00 => sum = value,
            0x01 => index = value,
            0x60 => sum = *kept.get(value as usize)?,
            0x61 => index = *kept.get(value as usize)?,
            0x80 => sum = 4 * DATA_WORDS as u32,
            0x81 => index = 4 * DATA_WORDS as u32,
            // Stores.
            0x02 => *kept.get_mut(value as usize)? = sum,
            0x03 => *kept.get_mut(value as usize)? = index,
            // Returns.
            0x06 => return Some(value),
            0x16 => return Some(sum),
            // Moves.
            0x07 => index = sum,
            0x87 => sum = index,
            0x84 => sum = sum.wrapping_neg(),
            // Jumps.
            0x05 => at += value as usize,
            _ if code & 7 == 5 => {
                let holds = match code & 0xf0 {
                    0x10 => sum == operand,
                    0x20 => sum > operand,
                    0x30 => sum >= operand,
                    0x40 => sum & operand != 0,
                    _ => return None,
                };
                at += usize::from(jumps[usize::from(!holds)]);
            }
            // Sums.
            _ if code & 7 == 4 => {
                sum = match code & 0xf0 {
                    0x00 => sum.wrapping_add(operand),
                    0x10 => sum.wrapping_sub(operand),
                    0x20 => sum.wrapping_mul(operand),
                    0x30 => sum.checked_div(operand).unwrap_or(0),
                    0x40 => sum | operand,
                    0x50 => sum & operand,
                    0x60 => sum.wrapping_shl(operand),
                    0x70 => sum.wrapping_shr(operand),
                    0xa0 => sum ^ operand,
                    _ => return None,
                }
            }
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn step(code: u16, jumps: [u8; 2], value: u32) -> Instruction {
        Instruction { code, jumps, value }
    }

    const NUMBER: Instruction = step(0x20, [0, 0], 0);
    const KILL: Instruction = step(0x06, [0, 0], 0x8000_0000);
    const PASS: Instruction = step(0x06, [0, 0], ALLOW);

    /// A filter that lets these numbers pass.
    fn only(numbers: &[i64], other: Instruction) -> Vec<Instruction> {
        let tests = numbers.iter().flat_map(|number| [step(0x15, [0, 1], *number as u32), PASS]);
        [NUMBER].into_iter().chain(tests).chain([other]).collect()
    }

    #[test]
    fn a_list_of_allowed_calls_forbids_the_others() {
        let filter = only(&[libc::SYS_write, libc::SYS_read], KILL);
        assert!(allows(&filter, libc::SYS_read, [0; 6]) && !allows(&filter, libc::SYS_getpid, [0; 6]));
        let refuses = only(&[libc::SYS_write], step(0x06, [0, 0], 0x0005_0001));
        assert!(!allows(&refuses, libc::SYS_getpid, [0; 6]), "one that fails is forbidden, too");
        assert!(allows(&[step(0x06, [0, 0], LOG)], libc::SYS_getpid, [0; 6]));
    }

    #[test]
    fn a_filter_may_look_at_machine_arguments_and_what_it_kept() {
        // ld [4]; jeq machine, 0, 3; ld [24]; and 0x2; jeq 0x2: allowed, else refused
        let filter = [
            step(0x20, [0, 0], 4),
            step(0x15, [0, 3], Host::AUDITED_AS),
            step(0x20, [0, 0], 24),
            step(0x54, [0, 0], 2),
            step(0x15, [1, 0], 2),
            KILL,
            PASS,
        ];
        assert!(allows(&filter, 1, [0, 3, 0, 0, 0, 0]) && !allows(&filter, 1, [3, 1, 0, 0, 0, 0]));
        let kept = [NUMBER, step(0x02, [0, 0], 3), step(0x00, [0, 0], 9), step(0x61, [0, 0], 3)];
        let compared = [step(0x2d, [0, 1], 0), PASS, KILL];
        let filter = [&kept[..], &compared].concat();
        assert!(allows(&filter, 8, [0; 6]) && !allows(&filter, 9, [0; 6]));
    }

    #[test]
    fn what_the_kernel_does_not_take_allows_nothing() {
        assert!(!allows(&[NUMBER], 1, [0; 6]), "it has no end");
        assert!(!allows(&[step(0x28, [0, 0], 0), PASS], 1, [0; 6]), "a load of half a word");
        assert!(!allows(&[step(0x20, [0, 0], 64), PASS], 1, [0; 6]), "beyond the data");
    }

    #[test]
    fn the_programs_own_filter_is_read_from_its_memory() {
        let filter = only(&[libc::SYS_rt_sigprocmask], KILL);
        let bytes: Vec<u8> = filter
            .iter()
            .flat_map(|one| {
                let [low, high] = one.code.to_le_bytes();
                let [a, b, c, d] = one.value.to_le_bytes();
                [low, high, one.jumps[0], one.jumps[1], a, b, c, d]
            })
            .collect();
        let program = [filter.len() as u64, bytes.as_ptr() as u64];
        assert_eq!(read(program.as_ptr() as u64), Some(filter));
        assert_eq!(forbidden_by(program.as_ptr() as u64), Some("process_vm_readv"));
        assert!(forbids_start(program.as_ptr() as u64) && !forbids_start(0));
        assert_eq!(forbidden_by(0), None, "the kernel refuses it");
    }

    #[test]
    fn each_call_that_the_engine_makes_is_looked_for() {
        for Needed(number, name, _) in NEEDED {
            let filter = [NUMBER, step(0x15, [0, 1], number as u32), KILL, PASS];
            let is_forbidden = NEEDED.iter().find(|needed| !allows(&filter, needed.0, needed.2));
            assert_eq!(is_forbidden.map(|needed| needed.0), Some(number), "{name}");
        }
    }
}
