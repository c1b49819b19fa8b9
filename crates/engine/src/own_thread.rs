//! A thread of the engine's own in a program that is attached to: the command has it prepare all code and give all back,
//! so that no thread of the program stands still for that.
//!
//! The C library does not know it. It has a base of its own, so that its slots and what else is thread-local are there,
//! and it calls nothing of the C library's that would look for more. It sleeps unless the command has it call something.

use crate::gates;
use crate::slots::BYTES;
use std::arch::naked_asm;

/// What a thread shares with the others of its process, and that it has a base of its own.
const FLAGS: i32 = libc::CLONE_VM
    | libc::CLONE_FS
    | libc::CLONE_FILES
    | libc::CLONE_SIGHAND
    | libc::CLONE_THREAD
    | libc::CLONE_SYSVSEM
    | libc::CLONE_SETTLS;
/// What lies at and above a thread's base of the C library's own.
const ABOVE_BASE: u64 = 1 << 14;
/// Words at a thread's base: its own address, twice, and two numbers that functions guard addresses with.
const SELF_AGAIN: u64 = 2;
const GUARDS: [u64; 2] = [5, 6];

/// Makes the thread, with its stack and its base in zeroed memory; its number, or an error below 0.
///
/// # Safety
/// The memory must stay as long as the thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lineup_engine_thread(memory: u64, bytes: u64) -> i64 {
    let base = (memory + bytes - ABOVE_BASE) & !63;
    // The C library's variables of a thread lie below its base, ours among them.
    let below = u64::from(gates::slots_distance().unsigned_abs()) + BYTES as u64;
    let stack = base.saturating_sub(below) & !0xfff;
    const LEAST_STACK: u64 = 1 << 18;
    if stack < memory + LEAST_STACK {
        return -i64::from(libc::ENOMEM);
    }
    let word = |number: u64| (base + 8 * number) as *mut u64;
    // SAFETY: within the memory that the caller gives, and nobody's yet; the words of this thread's base are there.
    unsafe {
        word(0).write(base);
        word(SELF_AGAIN).write(base);
        for number in GUARDS {
            word(number).write(own_word(8 * number));
        }
        make(FLAGS as u64, stack, base)
    }
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
unsafe extern "C" fn make(flags: u64, stack: u64, base: u64) -> i64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system;

    #[test]
    fn the_thread_sleeps_in_this_process_until_that_ends() {
        const ROOM: usize = 1 << 20;
        let memory = system::memory(ROOM).unwrap() as u64;
        // SAFETY: the memory stays.
        let thread = unsafe { lineup_engine_thread(memory, ROOM as u64) };
        assert!(thread > 0 && system::is_thread(thread as u64), "{thread}");
        // SAFETY: nothing is written: there is too little room.
        assert!(unsafe { lineup_engine_thread(memory, 1 << 16) } < 0);
    }
}
