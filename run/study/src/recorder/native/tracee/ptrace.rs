//! The requests to the kernel that stop a running process, and make a thread of it call functions.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

/// A thread's number.
pub(crate) type Tid = libc::pid_t;

/// The reason why a thread stands still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stop {
    /// It was asked to stop, or its process is stopped.
    Told,
    /// This signal is about to be delivered.
    Signal(i32),
    /// It enters or leaves a system call.
    SystemCall,
    /// It has become another program, which has not begun.
    NewProgram,
    /// It does not exist any more.
    Gone,
}

/// General registers, as the kernel orders them on x86-64.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Registers {
    pub(crate) others: [u64; 10],
    pub(crate) rax: u64,
    pub(crate) rcx: u64,
    pub(crate) rdx: u64,
    pub(crate) rsi: u64,
    pub(crate) rdi: u64,
    /// The system call that was entered last; negative after anything else.
    pub(crate) system_call: u64,
    pub(crate) rip: u64,
    pub(crate) code_segment: u64,
    pub(crate) flags: u64,
    pub(crate) rsp: u64,
    pub(crate) stack_segment: u64,
    /// The thread's base.
    pub(crate) base: u64,
    pub(crate) segments: [u64; 5],
}

impl Registers {
    /// The registers with which a system call gets its fourth to sixth argument.
    pub(crate) fn set_last_arguments(&mut self, [fourth, fifth, sixth]: [u64; 3]) {
        // In the kernel's order: r15, r14, r13, r12, rbp, rbx, r11, r10, r9, r8.
        (self.others[7], self.others[9], self.others[8]) = (fourth, fifth, sixth);
    }
}

/// The bit that distinguishes a stop at a system call from a signal.
const SYSTEM_CALL_STOP: i32 = libc::SIGTRAP | 0x80;
/// The kernel's numbers of requests that the C library does not name everywhere.
const GET_REGISTERS: RequestCode = 12;
const SET_REGISTERS: RequestCode = 13;
const GET_REGISTER_SET: RequestCode = 0x4204;
const SET_REGISTER_SET: RequestCode = 0x4205;
const GET_SIGNAL_MASK: RequestCode = 0x420a;
const SET_SIGNAL_MASK: RequestCode = 0x420b;
const GET_SEQUENCES: RequestCode = 0x420f;
const EVENT_STOP: i32 = 128;
/// The vector and floating-point registers.
const EXTENDED_STATE: usize = 0x202;
const MOST_EXTENDED_BYTES: usize = 1 << 14;

/// Attaches to a thread without stopping it.
pub(crate) fn seize(tid: Tid) -> io::Result<()> {
    request(libc::PTRACE_SEIZE, tid, 0, libc::PTRACE_O_TRACESYSGOOD as usize)
}

/// As [`seize`]; the thread stands still when it has become another program.
pub(crate) fn seize_to_exec(tid: Tid) -> io::Result<()> {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACEEXEC;
    request(libc::PTRACE_SEIZE, tid, 0, options as usize)
}

/// Asks a thread to stop.
pub(crate) fn interrupt(tid: Tid) -> io::Result<()> {
    request(libc::PTRACE_INTERRUPT, tid, 0, 0)
}

/// Lets a thread run.
pub(crate) fn go_on(tid: Tid) -> io::Result<()> {
    go_on_with(tid, 0)
}

/// As [`go_on`], with a signal, or 0.
pub(crate) fn go_on_with(tid: Tid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_CONT, tid, 0, signal as usize)
}

/// Lets a thread run up to where it enters or leaves a system call.
pub(crate) fn to_system_call(tid: Tid) -> io::Result<()> {
    to_system_call_with(tid, 0)
}

/// As [`to_system_call`], with a signal, or 0.
pub(crate) fn to_system_call_with(tid: Tid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_SYSCALL, tid, 0, signal as usize)
}

/// Lets a thread go, with the signal that it stands before, or 0.
pub(crate) fn let_go(tid: Tid, signal: i32) -> io::Result<()> {
    request(libc::PTRACE_DETACH, tid, 0, signal as usize)
}

thread_local! {
    /// The number of [`Urgent`] values in this thread.
    static URGENT: Cell<u32> = const { Cell::new(0) };
}

/// While it lives this thread runs before all others, where the system permits that: threads of another process stand
/// still for it, and on a busy machine would do so until it gets a processor again.
pub(crate) struct Urgent(());

impl Urgent {
    /// Begins it.
    pub(crate) fn begin() -> Urgent {
        const LOWEST: libc::c_int = 1;
        if URGENT.replace(URGENT.get() + 1) == 0 {
            set_policy(libc::SCHED_FIFO, LOWEST);
        }
        Urgent(())
    }
}

impl Drop for Urgent {
    fn drop(&mut self) {
        URGENT.set(URGENT.get() - 1);
        if URGENT.get() == 0 {
            set_policy(libc::SCHED_OTHER, 0);
        }
    }
}

fn set_policy(policy: libc::c_int, priority: libc::c_int) {
    // SAFETY: all zeros are valid numbers, and only the kernel reads them. If it refuses, the policy stays unchanged.
    unsafe {
        let mut parameters: libc::sched_param = std::mem::zeroed();
        parameters.sched_priority = priority;
        libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const parameters);
    }
}

/// Waits until a thread stands still; `None` when it does not within `patience`.
pub(crate) fn wait(tid: Tid, patience: Duration) -> Option<Stop> {
    wait_since(tid, patience).map(|(stop, _)| stop)
}

/// As [`wait`], with the time of the last look at which it did not stand still yet.
pub(crate) fn wait_since(tid: Tid, patience: Duration) -> Option<(Stop, Instant)> {
    /// Most threads stop within that.
    const SHORT: Duration = Duration::from_micros(50);
    /// After these looks the pauses grow: each look takes processor time from the awaited thread.
    const LATE: u32 = 8;
    const PAUSES: (Duration, Duration) = (Duration::from_micros(10), Duration::from_millis(1));
    let begun = Instant::now();
    let mut since = begun;
    loop {
        let looked = Instant::now();
        let mut status = 0;
        // SAFETY: the kernel writes one number.
        let waited = unsafe { libc::waitpid(tid, &raw mut status, libc::__WALL | libc::WNOHANG) };
        if waited == tid {
            return Some((stop_of(status), since));
        }
        if waited == -1 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Some((Stop::Gone, since));
        }
        since = looked;
        match begun.elapsed() {
            elapsed if elapsed > patience => return None,
            elapsed if elapsed < SHORT && URGENT.get() == 0 => std::thread::yield_now(),
            elapsed => std::thread::sleep((elapsed / LATE).clamp(PAUSES.0, PAUSES.1)),
        }
    }
}

fn stop_of(status: i32) -> Stop {
    match libc::WSTOPSIG(status) {
        _ if !libc::WIFSTOPPED(status) => Stop::Gone,
        _ if status >> 16 == EVENT_STOP => Stop::Told,
        _ if status >> 16 == libc::PTRACE_EVENT_EXEC => Stop::NewProgram,
        SYSTEM_CALL_STOP => Stop::SystemCall,
        signal => Stop::Signal(signal),
    }
}

/// The registration of a thread for restartable sequences (`rseq`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Registered {
    /// The address of the memory that it shares with the kernel.
    pub(crate) address: u64,
    pub(crate) signature: u32,
}

/// The registration of a thread that stands still; `None` where it has none, or the kernel is too old to say.
pub(crate) fn registered_sequences(tid: Tid) -> Option<Registered> {
    // The memory's address; its size and the signature; flags.
    let mut words = [0_u64; 3];
    request(GET_SEQUENCES, tid, size_of_val(&words), words.as_mut_ptr() as usize).ok()?;
    (words[0] != 0).then_some(Registered { address: words[0], signature: (words[1] >> 32) as u32 })
}

/// The registers of a thread that stands still.
pub(crate) fn registers(tid: Tid) -> io::Result<Registers> {
    let mut registers = Registers::default();
    request(GET_REGISTERS, tid, 0, &raw mut registers as usize)?;
    Ok(registers)
}

/// Sets them.
pub(crate) fn set_registers(tid: Tid, registers: &Registers) -> io::Result<()> {
    request(SET_REGISTERS, tid, 0, std::ptr::from_ref(registers) as usize)
}

/// Its vector and floating-point registers, as the processor keeps them.
pub(crate) fn extended(tid: Tid) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; MOST_EXTENDED_BYTES];
    let mut room = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    request(GET_REGISTER_SET, tid, EXTENDED_STATE, &raw mut room as usize)?;
    bytes.truncate(room.iov_len);
    Ok(bytes)
}

/// Sets them.
pub(crate) fn set_extended(tid: Tid, bytes: &mut [u8]) -> io::Result<()> {
    let mut all = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    request(SET_REGISTER_SET, tid, EXTENDED_STATE, &raw mut all as usize)
}

/// The signals that it blocks.
pub(crate) fn blocked(tid: Tid) -> io::Result<u64> {
    let mut mask = 0u64;
    request(GET_SIGNAL_MASK, tid, size_of::<u64>(), &raw mut mask as usize)?;
    Ok(mask)
}

/// Sets them.
pub(crate) fn set_blocked(tid: Tid, mask: u64) -> io::Result<()> {
    request(SET_SIGNAL_MASK, tid, size_of::<u64>(), &raw const mask as usize)
}

/// Processor time that a process has used; zero when it is gone.
pub(crate) fn processor_time(process: Tid) -> Duration {
    /// The kernel's number of the clock that the scheduler keeps.
    const SCHEDULED: libc::clockid_t = 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes the time alone.
    let read = unsafe { libc::clock_gettime(!process << 3 | SCHEDULED, &raw mut time) };
    let of = |number: i64| u64::try_from(number).unwrap_or_default();
    if read == 0 {
        Duration::from_secs(of(time.tv_sec)) + Duration::from_nanos(of(time.tv_nsec))
    } else {
        Duration::ZERO
    }
}

#[cfg(target_env = "musl")]
type RequestCode = libc::c_int;
#[cfg(not(target_env = "musl"))]
type RequestCode = libc::c_uint;

fn request(what: RequestCode, tid: Tid, address: usize, data: usize) -> io::Result<()> {
    // SAFETY: the requests of this module take plain numbers, or read or write through `data` at most the kernel's size
    // of its target. The target lives in the caller: registers, a signal mask, or a buffer with its length.
    let done = unsafe { libc::ptrace(what, tid, address, data) };
    if done == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_have_the_kernels_size() {
        assert_eq!(size_of::<Registers>(), 27 * 8);
        assert_eq!(std::mem::offset_of!(Registers, rip), 16 * 8);
        assert_eq!(std::mem::offset_of!(Registers, base), 21 * 8);
    }

    #[test]
    fn stops_are_told_apart() {
        assert_eq!(stop_of(EVENT_STOP << 16 | libc::SIGTRAP << 8 | 0x7f), Stop::Told);
        assert_eq!(stop_of(SYSTEM_CALL_STOP << 8 | 0x7f), Stop::SystemCall);
        assert_eq!(stop_of(libc::PTRACE_EVENT_EXEC << 16 | libc::SIGTRAP << 8 | 0x7f), Stop::NewProgram);
        assert_eq!(stop_of(libc::SIGUSR1 << 8 | 0x7f), Stop::Signal(libc::SIGUSR1));
        assert_eq!(stop_of(0), Stop::Gone);
    }
}
