//! Processes and programs that the program starts: they run untouched, and the user gets a note.
//!
//! No function here takes memory or a lock: a forked process has one thread, and locks that other threads held stay
//! held in it.

use crate::engine::{self, Engine};
use crate::machine::{Abi, Host, HostRegisters, Registers};
use crate::syscalls::guards;
use crate::system;
use lineup_recording::native::{VARIABLE, note};
use std::ffi::CStr;
use std::sync::atomic::Ordering;

/// The kind of process or thread that a system call makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum New {
    Nothing,
    /// A process that borrows this one's memory, or a thread that has this one's base.
    Sharing,
    /// A thread with a base of its own.
    Thread,
    /// A process with a copy of this one's memory.
    Copy,
}

/// A system call that makes a process with a copy of this one's memory, to be made by the engine: on its own stack.
pub(crate) struct Fork {
    number: i64,
    arguments: [u64; 6],
    /// The words that the newer call reads.
    words: [u64; CLONE_WORDS],
    /// The new process's stack pointer; 0 where it stays.
    pub(crate) stack: u64,
}

/// Words that `clone3` reads at most.
const CLONE_WORDS: usize = 11;
const STACK_WORD: usize = 5;

impl Fork {
    /// The call with these registers; `None` if its process has another thread's base, or if it waits for the process
    /// while other threads would wait for locks.
    pub(crate) fn read(registers: &HostRegisters) -> Option<Fork> {
        let number = registers.call();
        let [first, second, third, fourth, fifth, _] = registers.arguments();
        let mut fork = Fork { number, arguments: [0; 6], words: [0; CLONE_WORDS], stack: 0 };
        let flags = match number {
            _ if Some(number) == Host::FORK => 0,
            libc::SYS_clone => {
                fork.arguments = [first, 0, third, fourth, fifth, 0];
                fork.stack = second;
                first
            }
            libc::SYS_clone3 => {
                let bytes = usize::try_from(second).ok().filter(|bytes| *bytes <= 8 * CLONE_WORDS)?;
                let mut read = [0; 8 * CLONE_WORDS];
                (system::read_memory(first, &mut read[..bytes]) == bytes).then_some(())?;
                for (word, bytes) in fork.words.iter_mut().zip(read.as_chunks().0) {
                    *word = u64::from_le_bytes(*bytes);
                }
                let [stack, stack_bytes] = [STACK_WORD, STACK_WORD + 1].map(|word| fork.words[word]);
                fork.stack = stack.wrapping_add(stack_bytes);
                (fork.words[STACK_WORD], fork.words[STACK_WORD + 1]) = (0, 0);
                fork.arguments[1] = second;
                fork.words[0]
            }
            _ => return None,
        };
        let odd = libc::CLONE_VM | libc::CLONE_SETTLS | libc::CLONE_VFORK;
        (flags & odd as u64 == 0).then_some(fork)
    }

    /// Makes it. Returns the call's result, in both.
    pub(crate) fn make(&self) -> i64 {
        let mut arguments = self.arguments;
        if self.number == libc::SYS_clone3 {
            arguments[0] = self.words.as_ptr() as u64;
        }
        // SAFETY: the program's own system call, but the thread uses the engine's stack from the gate on, which is
        // copied.
        unsafe { system::call(self.number, arguments) }
    }
}

/// The kind of process or thread that a system call with these registers will make. The user gets a note when it is a
/// process or another program.
pub(crate) fn before_call(engine: &Engine, registers: &HostRegisters) -> New {
    let number = registers.call();
    let [first, second, third, fourth, ..] = registers.arguments();
    let flags = match number {
        libc::SYS_clone => first,
        libc::SYS_clone3 => system::read_word(first).unwrap_or(libc::CLONE_VM as u64),
        _ if Some(number) == Host::FORK => 0,
        _ if Some(number) == Host::VFORK => libc::CLONE_VM as u64,
        libc::SYS_execve => {
            hide_engine(third);
            tell_exec(engine, libc::AT_FDCWD as u64, first);
            return New::Nothing;
        }
        libc::SYS_execveat => {
            hide_engine(fourth);
            tell_exec(engine, first, second);
            return New::Nothing;
        }
        _ => return New::Nothing,
    };
    if flags & libc::CLONE_VM as u64 != 0 {
        return if flags & libc::CLONE_SETTLS as u64 != 0 { New::Thread } else { New::Sharing };
    }
    engine.shared.control().forked.fetch_add(1, Ordering::Relaxed);
    New::Copy
}

/// Before the C library makes a process.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of the system call.
pub(crate) unsafe extern "C" fn before_clone(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, libc::SYS_clone) };
}

/// As [`before_clone`], by the older call.
///
/// # Safety
/// As for [`before_clone`].
pub(crate) unsafe extern "C" fn before_fork(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, Host::FORK.unwrap_or(libc::SYS_clone)) };
}

/// Before the C library replaces the program.
///
/// # Safety
/// As for [`before_clone`].
pub(crate) unsafe extern "C" fn before_exec(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, libc::SYS_execve) };
}

/// As [`before_exec`], for a path in a folder.
///
/// # Safety
/// As for [`before_clone`].
pub(crate) unsafe extern "C" fn before_exec_at(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, libc::SYS_execveat) };
}

unsafe fn before(registers: *mut HostRegisters, number: i64) {
    // SAFETY: the caller's promise.
    let registers = unsafe { &mut *registers };
    registers.set_call(number);
    if let Some(engine) = engine::get() {
        before_call(engine, registers);
    }
}

/// Keeps a program with this environment from starting the engine, if its filter of system calls would end it for that.
/// It renames the variable that names the engine's memory.
fn hide_engine(environment: u64) {
    if !guards::hides_engine() || environment == 0 {
        return;
    }
    let mut at = environment as *const *mut u8;
    // SAFETY: the environment that the program gives: terminated texts, and null at the end. Texts that begin so are
    // copies of the one that was made for the engine.
    unsafe {
        while !(*at).is_null() {
            let text = CStr::from_ptr((*at).cast_const().cast()).to_bytes();
            let is_ours = text.strip_prefix(VARIABLE.as_bytes()).is_some_and(|rest| rest.starts_with(b"="));
            if is_ours {
                (*at).write(b'_');
            }
            at = at.add(1);
        }
    }
}

/// Notes the program at a path, if the path leads to one that can be run.
fn tell_exec(engine: &Engine, folder: u64, path: u64) {
    const MOST_BYTES: usize = 1024;
    if !system::is_executable(folder, path) {
        return;
    }
    let mut text = [0; MOST_BYTES];
    let path = system::read_text(path, &mut text);
    let mut whole = [0; 2 * MOST_BYTES];
    let mut end = 0;
    let is_here = path.first() != Some(&b'/') && folder as i32 == libc::AT_FDCWD;
    if is_here {
        // Relative to the working directory of the process.
        end = system::read_link_into(b"/proc/self/cwd\0", &mut whole[..MOST_BYTES - 1]);
        whole[end] = b'/';
        end += 1;
    }
    whole[end..end + path.len()].copy_from_slice(path);
    engine.shared.tell(note::EXEC, &whole[..end + path.len()]);
}
