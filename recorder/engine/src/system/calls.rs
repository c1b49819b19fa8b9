//! System calls.

use crate::machine::{Abi, Host};
use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes a system call; errors are negative.
///
/// # Safety
/// As for the call.
pub(crate) unsafe fn call(number: i64, arguments: [u64; 6]) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { Host::system_call(number, arguments) }
}

/// Set when the engine makes no system call any more.
static IS_SEALED: AtomicBool = AtomicBool::new(false);

/// From now on the engine makes no system call of its own: the program has forbidden them, and one would end it.
/// Functions that need one fail, and signals stay unchanged.
pub(crate) fn seal() {
    IS_SEALED.store(true, Ordering::Release);
}

/// Whether the engine makes no system call of its own.
pub(crate) fn is_sealed() -> bool {
    IS_SEALED.load(Ordering::Acquire)
}

/// Address of a byte with that state, for code that the engine writes.
pub(crate) fn sealed_flag() -> u64 {
    IS_SEALED.as_ptr() as u64
}

/// As [`call`], of the engine's own: fails when it is to make none.
///
/// # Safety
/// As for the call.
pub(crate) unsafe fn own(number: i64, arguments: [u64; 6]) -> i64 {
    if is_sealed() {
        return -i64::from(libc::EPERM);
    }
    // SAFETY: the caller's promise.
    unsafe { call(number, arguments) }
}

/// Asks for the right to use [`serialize_threads`].
pub(crate) fn register_serializing() {
    const REGISTER: u64 = libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE as u64;
    // SAFETY: changes no memory.
    unsafe { own(libc::SYS_membarrier, [REGISTER, 0, 0, 0, 0, 0]) };
}

/// Makes every thread decode its next instructions again. Where the system cannot, replacing a page has done it.
pub(crate) fn serialize_threads() {
    const SERIALIZE: u64 = libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE as u64;
    // SAFETY: changes no memory.
    unsafe { own(libc::SYS_membarrier, [SERIALIZE, 0, 0, 0, 0, 0]) };
}

/// Sleeps for this time. Not by `nanosleep`: that loses the state by which an interrupted call of the program
/// continues.
pub(crate) fn sleep_ns(ns: i64) {
    if is_sealed() {
        // The exact time does not matter; the counter may be forbidden as well.
        const ROUND_NS: i64 = 16;
        (0..ns / ROUND_NS).for_each(|_| hint::spin_loop());
        return;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: ns };
    // SAFETY: the time is ours, and nothing is waited for.
    unsafe { own(libc::SYS_ppoll, [0, 0, &raw mut time as u64, 0, 8, 0]) };
}

/// The monotonic clock.
pub(crate) fn clock_ns() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// The processor time of the calling thread.
pub(crate) fn thread_time_ns() -> u64 {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let arguments = [which as u64, &raw mut time as u64, 0, 0, 0, 0];
    // SAFETY: the time is ours.
    unsafe { own(libc::SYS_clock_gettime, arguments) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The process.
pub(crate) fn process() -> u64 {
    // SAFETY: takes nothing.
    unsafe { own(libc::SYS_getpid, [0; 6]) as u64 }
}

/// The process's number in the command's `/proc`: it differs only in a namespace of its own.
pub(crate) fn process_in_proc() -> Option<u64> {
    let mut text = [0; 24];
    let length = read_link_into(b"/proc/self\0", &mut text);
    std::str::from_utf8(&text[..length]).ok()?.parse().ok()
}

/// The thread.
pub(crate) fn thread() -> u64 {
    // SAFETY: takes nothing.
    unsafe { own(libc::SYS_gettid, [0; 6]) as u64 }
}

/// Signals that this thread blocks.
pub(crate) fn blocked_signals() -> u64 {
    let mut blocked = 0u64;
    let arguments = [libc::SIG_SETMASK as u64, 0, &raw mut blocked as u64, 8, 0, 0];
    // SAFETY: the set is ours and has the kernel's size.
    unsafe { own(libc::SYS_rt_sigprocmask, arguments) };
    blocked
}

/// Whether a thread of this process lives.
pub(crate) fn is_thread(thread: u64) -> bool {
    // SAFETY: sends nothing.
    unsafe { own(libc::SYS_tgkill, [process(), thread, 0, 0, 0, 0]) != -i64::from(libc::ESRCH) }
}

/// Blocks all signals of this thread. Returns the mask of before.
pub(crate) fn block_signals() -> u64 {
    let (all, mut before) = (u64::MAX, 0u64);
    let arguments = [libc::SIG_SETMASK as u64, &raw const all as u64, &raw mut before as u64, 8, 0, 0];
    // SAFETY: both sets are ours and have the kernel's size.
    unsafe { own(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Blocks these signals alone.
pub(crate) fn restore_signals(before: u64) {
    // SAFETY: as above.
    unsafe {
        own(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as u64, &raw const before as u64, 0, 8, 0, 0])
    };
}

/// Reads memory of this process that may not be readable. Returns the number of bytes read.
pub(crate) fn read_memory(at: u64, into: &mut [u8]) -> usize {
    let to = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let from = libc::iovec { iov_base: at as *mut libc::c_void, iov_len: into.len() };
    let arguments = [process(), &raw const to as u64, 1, &raw const from as u64, 1, 0];
    // SAFETY: the room is ours, and the kernel checks whether the source is readable.
    let read = unsafe { own(libc::SYS_process_vm_readv, arguments) };
    usize::try_from(read).unwrap_or(0)
}

/// A word of memory that may not be readable.
pub(crate) fn read_word(at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (read_memory(at, &mut bytes) == bytes.len()).then(|| u64::from_le_bytes(bytes))
}

/// A terminated text in memory that may not be readable, cut to the room for it.
pub(crate) fn read_text(at: u64, into: &mut [u8]) -> &[u8] {
    // The next page may be unmapped.
    let here = ((Host::page_bytes() - at % Host::page_bytes()) as usize).min(into.len());
    let mut length = read_memory(at, &mut into[..here]);
    if length == here && !into[..here].contains(&0) {
        length += read_memory(at + here as u64, &mut into[here..]);
    }
    let end = into[..length].iter().position(|byte| *byte == 0).unwrap_or(length);
    &into[..end]
}

/// Whether a path, terminated, leads from a folder to a file that can be executed.
pub(crate) fn is_executable(folder: u64, path: u64) -> bool {
    // SAFETY: the kernel checks the path.
    unsafe { own(libc::SYS_faccessat, [folder, path, libc::X_OK as u64, 0, 0, 0]) == 0 }
}

/// The target of a symbolic link, from a terminated path.
pub(crate) fn read_link(path: &[u8]) -> Vec<u8> {
    let mut text = vec![0; 4096];
    let length = read_link_into(path, &mut text);
    text.truncate(length);
    text
}

/// As [`read_link`], into given room. Returns the number of bytes.
pub(crate) fn read_link_into(path: &[u8], text: &mut [u8]) -> usize {
    debug_assert!(path.ends_with(&[0]));
    // SAFETY: the path is terminated.
    let length = unsafe { Host::read_link(path.as_ptr(), text) };
    usize::try_from(length).unwrap_or(0)
}
