//! The requests to the kernel that a tracer makes. The wrappers of the usual crates know only named signals, but
//! real-time signals have to reach the program as well.
#![allow(unsafe_code)]

use std::io;

/// A thread's id.
pub(super) type Tid = libc::pid_t;

/// The system call that a stopped thread is about to make.
#[derive(Clone, Copy, Debug)]
pub(super) struct SystemCallEntry {
    pub(super) number: i64,
    pub(super) arguments: [u64; 6],
}

/// Attaches to a process without stopping it; its children, threads and programs are followed, and all are ended when
/// the tracer ends.
pub(super) fn seize(tid: Tid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESECCOMP
        | libc::PTRACE_O_TRACESYSGOOD
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Lets a stopped thread run, with a signal or 0.
pub(super) fn go_on(tid: Tid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Lets a stopped thread run to the end of its system call, with a signal or 0.
pub(super) fn to_end_of_call(tid: Tid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Leaves a thread stopped as the signal that stopped its process wants, and waits for its end.
pub(super) fn leave_stopped(tid: Tid) -> io::Result<()> {
    request(libc::PTRACE_LISTEN, tid, 0, 0)
}

/// Lets a stopped thread go, which is not followed any more.
pub(super) fn let_go(tid: Tid) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, 0)
}

/// The number in an event's message: the id of a new thread, or of the thread that ran a new program.
pub(super) fn event_message(tid: Tid) -> io::Result<u64> {
    let mut message: libc::c_ulong = 0;
    // The kernel writes one `unsigned long` to the address in the last argument, where `message` lives.
    request(libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message)
}

/// The system call of a thread that the filter stopped.
pub(super) fn entry(tid: Tid) -> io::Result<SystemCallEntry> {
    let words = information(tid)?;
    let mut arguments = [0; 6];
    arguments.copy_from_slice(&words[4..10]);
    Ok(SystemCallEntry { number: words[3] as i64, arguments })
}

/// The system call's result: a value, or a negated error number.
pub(super) fn result(tid: Tid) -> io::Result<i64> {
    Ok(information(tid)?[3] as i64)
}

/// `struct ptrace_syscall_info` in 64-bit words: kind, instruction pointer, stack pointer; then the call's number
/// and its six arguments, or its result.
fn information(tid: Tid) -> io::Result<[u64; 12]> {
    const GET_SYSCALL_INFO: u32 = 0x420e;
    let mut words = [0u64; 12];
    // The kernel writes at most as many bytes as the third argument says, which is the size of `words`.
    request(GET_SYSCALL_INFO as _, tid, size_of_val(&words), &raw mut words as usize)?;
    Ok(words)
}

fn request(what: RequestCode, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests of this module either take plain numbers or write through `data`. Those that write get the
    // address of a live local variable of the caller, of the size that the request asks for.
    let done = unsafe { libc::ptrace(what, tid, address, data) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(target_env = "musl")]
type RequestCode = libc::c_int;
#[cfg(not(target_env = "musl"))]
type RequestCode = libc::c_uint;

/// The process that a thread belongs to.
pub(super) fn process_of(tid: Tid) -> Option<Tid> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Tgid:"))?.trim().parse().ok()
}
