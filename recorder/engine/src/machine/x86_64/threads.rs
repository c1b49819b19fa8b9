//! A thread's block: the engine's words in it, and blocks of threads of the engine's own.

use crate::machine::ThreadBlock;
use crate::threads::slots::{BYTES, Slots};
use std::arch::{global_asm, naked_asm};

global_asm!(
    ".pushsection .tbss,\"awT\",@nobits",
    ".balign 64",
    "lineup_engine_slots:",
    ".skip {bytes}",
    ".popsection",
    ".pushsection .text",
    ".globl lineup_engine_slots_distance",
    ".hidden lineup_engine_slots_distance",
    "lineup_engine_slots_distance:",
    "mov rax, qword ptr [rip + lineup_engine_slots@GOTTPOFF]",
    "ret",
    ".popsection",
    bytes = const BYTES,
);

unsafe extern "C" {
    fn lineup_engine_slots_distance() -> i64;
}

/// Distance of the slots from a thread's base: the same in all threads, since the loader gives a library that is
/// there from the start its place in the block of every thread.
pub(crate) fn slots_distance() -> i32 {
    // SAFETY: takes nothing and changes `rax` alone.
    unsafe { lineup_engine_slots_distance() as i32 }
}

/// This thread's slots.
pub(crate) fn slots() -> *mut Slots {
    let base: u64;
    // SAFETY: the first word of a thread's block is its own address, by the ABI.
    unsafe { std::arch::asm!("mov {}, fs:[0]", out(reg) base, options(nostack, readonly, preserves_flags)) };
    base.wrapping_add_signed(i64::from(slots_distance())) as *mut Slots
}

/// Size of the C library's own data at and above a thread's base.
const ABOVE_BASE: u64 = 1 << 14;
/// Words at a thread's base: its own address, twice, and two numbers that functions guard addresses with.
const SELF_AGAIN: u64 = 2;
const GUARDS: [u64; 2] = [5, 6];

/// See [`crate::machine::Abi::thread_block`].
///
/// # Safety
/// No code uses the memory.
pub(crate) unsafe fn block(memory: u64, bytes: u64) -> Option<ThreadBlock> {
    let base = (memory + bytes - ABOVE_BASE) & !63;
    // The C library's variables of a thread lie below its base, ours among them.
    let below = u64::from(slots_distance().unsigned_abs()) + BYTES as u64;
    let stack = base.saturating_sub(below) & !0xfff;
    const LEAST_STACK: u64 = 1 << 18;
    if stack < memory + LEAST_STACK {
        return None;
    }
    let word = |number: u64| (base + 8 * number) as *mut u64;
    // SAFETY: within the memory that the caller gives, which no code uses yet; the words of this thread's base are
    // there.
    unsafe {
        word(0).write(base);
        word(SELF_AGAIN).write(base);
        for number in GUARDS {
            word(number).write(own_word(8 * number));
        }
    }
    Some(ThreadBlock { stack, base })
}

/// A word at this thread's base.
///
/// # Safety
/// There must be one.
unsafe fn own_word(distance: u64) -> u64 {
    let word: u64;
    // SAFETY: the caller's promise.
    unsafe {
        std::arch::asm!("mov {}, fs:[{}]", out(reg) word, in(reg) distance, options(nostack, readonly, preserves_flags));
    }
    word
}

/// Makes a thread that sleeps; its number.
///
/// # Safety
/// Stack and base must be memory of its own.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn make(flags: u64, stack: u64, base: u64) -> i64 {
    naked_asm!(
        // The fifth argument is the base; there are no others.
        "mov r8, rdx",
        "xor edx, edx",
        "xor r10d, r10d",
        "mov eax, {clone}",
        "syscall",
        "test rax, rax",
        "jz 2f",
        "ret",
        "2:",
        "mov eax, {pause}",
        "syscall",
        "jmp 2b",
        clone = const libc::SYS_clone,
        pause = const libc::SYS_pause,
    )
}
