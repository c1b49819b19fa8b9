//! Processes and programs that the program starts: they run untouched, and the user gets a note.
//!
//! No function here takes memory or a lock: a forked process has one thread, and locks that other threads held stay
//! held in it.

use crate::engine::{self, Engine};
use crate::machine::{Abi, Host, HostRegisters, Led, Registers};
use crate::system;
use lineup_recording::native::{VARIABLE, note};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set when the engine could not start in programs that this process becomes or starts.
static HIDES: AtomicBool = AtomicBool::new(false);

/// Started programs must not find the engine from now on: their filter of system calls would end them for it.
pub(crate) fn hide_from_programs() {
    HIDES.store(true, Ordering::Release);
}

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

/// The functions that calls which make a process or replace the program lead to, before they are made.
pub(crate) fn led() -> impl Iterator<Item = Led> {
    let older = Host::FORK.map(|number| (number, before_fork as *const () as u64, true));
    let others = [
        (libc::SYS_clone, before_clone as *const () as u64, true),
        (libc::SYS_clone3, before_clone3 as *const () as u64, true),
        (libc::SYS_execve, before_exec as *const () as u64, true),
        (libc::SYS_execveat, before_exec_at as *const () as u64, true),
    ];
    others.into_iter().chain(older)
}

/// Before the program makes a process.
///
/// # Safety
/// Only from [`crate::machine::Gates::in_place_of_call`], with the registers of the system call.
unsafe extern "C" fn before_clone(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, libc::SYS_clone) };
}

/// As [`before_clone`], by the newer call.
///
/// # Safety
/// As for [`before_clone`].
unsafe extern "C" fn before_clone3(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, libc::SYS_clone3) };
}

/// As [`before_clone`], by the older call.
///
/// # Safety
/// As for [`before_clone`].
unsafe extern "C" fn before_fork(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, Host::FORK.unwrap_or(libc::SYS_clone)) };
}

/// Before the program is replaced by another.
///
/// # Safety
/// As for [`before_clone`].
unsafe extern "C" fn before_exec(registers: *mut HostRegisters) {
    // SAFETY: the caller's promise.
    unsafe { before(registers, libc::SYS_execve) };
}

/// As [`before_exec`], for a path in a folder.
///
/// # Safety
/// As for [`before_clone`].
unsafe extern "C" fn before_exec_at(registers: *mut HostRegisters) {
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
    if !HIDES.load(Ordering::Acquire) || environment == 0 {
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
    let mut text = [0; MOST_BYTES];
    let name = system::read_text(path, &mut text);
    // An open file has no path of its own, and may lie in memory alone.
    if !name.is_empty() && !system::is_executable(folder, path) {
        return;
    }
    let path = name;
    let mut whole = [0; 2 * MOST_BYTES];
    let mut end = 0;
    if path.first() != Some(&b'/') {
        // Relative to a folder, which for an open file is the file.
        let mut link = [0; 32];
        end = system::read_link_into(link_of(folder as i32, &mut link), &mut whole[..MOST_BYTES - 1]);
        if end == 0 {
            return;
        }
    }
    if end > 0 && !path.is_empty() {
        whole[end] = b'/';
        end += 1;
    }
    whole[end..end + path.len()].copy_from_slice(path);
    engine.shared.tell(note::EXEC, &whole[..end + path.len()]);
}

/// The terminated path of the link that an open file or folder has in /proc.
fn link_of(file: i32, into: &mut [u8; 32]) -> &[u8] {
    const CURRENT: &[u8] = b"/proc/self/cwd\0";
    const OPEN: &[u8] = b"/proc/self/fd/";
    const DIGITS: usize = 10;
    let Ok(number) = u32::try_from(file) else { return CURRENT };
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    into[..OPEN.len()].copy_from_slice(OPEN);
    for place in 0..digits.min(DIGITS) {
        let digit = number / 10u32.pow((digits - 1 - place) as u32) % 10;
        into[OPEN.len() + place] = b'0' + digit as u8;
    }
    into[OPEN.len() + digits] = 0;
    &into[..OPEN.len() + digits + 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_and_the_working_directory_have_links() {
        let link = |file| link_of(file, &mut [0; 32]).to_vec();
        assert_eq!(link(libc::AT_FDCWD), b"/proc/self/cwd\0");
        assert_eq!(link(0), b"/proc/self/fd/0\0");
        assert_eq!(link(1070), b"/proc/self/fd/1070\0");
        assert_eq!(link(i32::MAX), b"/proc/self/fd/2147483647\0");
    }
}
