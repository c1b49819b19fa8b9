//! Makes a thread of another process call functions, and then continue as if nothing had happened.
//!
//! The thread must not be in the middle of something that these functions do as well: taking memory, loading a library.
//! So it is a thread that waits in a system call that neither makes. If there is none, it is a running one with no code
//! of the C library or the loader below it on its stack.

use crate::error::{Doing as _, Error, Result};
use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::ptrace::{Registers, Stop, Tid};
use crate::recorder::native::tracee::threads::{
    Doing, Places, Process, Standing, Still, code_of, is_in, make_call_again,
};
use lineup_follow::images::GuestImage;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// The longest search for a thread.
const PATIENCE: Duration = Duration::from_secs(5);
/// From then on one that runs will do.
const UNTIL_RUNNING: Duration = Duration::from_millis(100);
/// The longest call of a function: it may wait for this process.
const LONGEST_CALL: Duration = Duration::from_secs(30);
const STACK_BYTES: u64 = 1 << 20;

/// System calls that wait for others, by their number on x86-64: neither the allocator nor the loader makes them, but
/// for reading.
const WAITS: [u64; 24] = [
    0, 7, 23, 34, 35, 43, 45, 47, 61, 65, 128, 130, 202, 208, 219, 220, 230, 232, 247, 270, 271, 281, 288,
    441,
];
const FUTEX: u64 = 202;
const FUTEX_OPERATION: u64 = 0x7f;
/// The futex operation of condition variables and joins. Locks use another one, and may be the allocator's.
const FUTEX_WAIT_BITSET: u64 = 9;
/// The return address of called functions: nothing lies there, so that the thread stops.
const NOWHERE: u64 = 0;
const MAP: u64 = 9;
const UNMAP: u64 = 11;
const OPEN: u64 = 2;
const CLOSE: u64 = 3;
const EXIT: u64 = 60;
/// The direction flag and the one for single steps.
const FLAGS_TO_CLEAR: u64 = 0x500;
/// The distance from a symbol of the C library within which its callers' code may lie.
const NEAR_BYTES: u64 = 4096;

/// The code ranges of the process's libraries.
pub(crate) struct Libraries {
    loader: Vec<Range<u64>>,
    c_library: Vec<Range<u64>>,
    /// Functions of the C library that call the program's: `main`, and those of threads.
    bottoms: Vec<u64>,
    /// A system call instruction.
    trap: u64,
}

impl Libraries {
    /// `None` when there is no C library.
    pub(crate) fn new(process: &Process, c_library: &GuestImage) -> Option<Libraries> {
        let maps = process.maps();
        let own = c_library.loaded.path.rsplit('/').next().unwrap_or_default();
        let code = code_of(&maps, |name| name == own);
        let bottoms = ["__libc_start_main", "clone", "__clone", "pthread_create"];
        let memory = process.memory().ok()?;
        Some(Libraries {
            loader: code_of(&maps, |name| name.starts_with("ld-")),
            bottoms: bottoms.iter().filter_map(|name| c_library.symbol(name)).collect(),
            trap: code.iter().find_map(|range| trap_in(&memory, range))?,
            c_library: code,
        })
    }

    /// True when a library can be loaded while a thread is at its place, judged by its stack.
    fn is_safe(&self, doing: Doing, process: &Process, memory: &File, maps: &str) -> bool {
        match doing {
            Doing::Waits { number, second, rsp, rip } => {
                let is_wait = WAITS.contains(&number)
                    && (number != FUTEX || second & FUTEX_OPERATION == FUTEX_WAIT_BITSET);
                let is_loading = |word: &u64| is_in(&self.loader, *word);
                let is_of_file = maps_file(maps, rip);
                is_wait
                    && is_of_file
                    && !is_loading(&rip)
                    && !process.stack(memory, &Places::of(maps), rsp).iter().any(is_loading)
            }
            Doing::Runs | Doing::Gone => false,
        }
    }

    fn is_safe_running(&self, registers: &Registers, process: &Process, memory: &File, maps: &str) -> bool {
        let is_bottom = |word: u64| self.bottoms.iter().any(|bottom| word.abs_diff(*bottom) < NEAR_BYTES);
        let is_busy =
            |word: &u64| is_in(&self.loader, *word) || (is_in(&self.c_library, *word) && !is_bottom(*word));
        maps_file(maps, registers.rip)
            && !is_in(&self.c_library, registers.rip)
            && !is_in(&self.loader, registers.rip)
            && !process.stack(memory, &Places::of(maps), registers.rsp).iter().any(is_busy)
    }
}

/// True when a file's code lies at an address. The engine's cache, a file in memory, does not count.
fn maps_file(maps: &str, address: u64) -> bool {
    let mut all = lineup_follow::maps::mappings(maps);
    all.any(|mapping| {
        (mapping.start..mapping.end).contains(&address)
            && mapping.path.starts_with('/')
            && !mapping.path.starts_with("/memfd:")
    })
}

/// A system call instruction of a program that has no C library.
pub(crate) fn trap_of(process: &Process, memory: &File) -> Option<u64> {
    code_of(&process.maps(), |_| true).iter().find_map(|range| trap_in(memory, range))
}

fn trap_in(memory: &File, range: &Range<u64>) -> Option<u64> {
    let mut code = vec![0; usize::try_from(range.end - range.start).ok()?];
    memory.read_exact_at(&mut code, range.start).ok()?;
    let place = code.windows(2).position(|bytes| *bytes == [0x0f, 0x05])?;
    Some(range.start + place as u64)
}

/// A thread that calls functions for us, until this is dropped.
pub(crate) struct Caller {
    pub(crate) tid: Tid,
    /// Its registers as they were.
    pub(crate) registers: Registers,
    extended: Vec<u8>,
    blocked: u64,
    trap: u64,
    stack: u64,
    memory: File,
    /// `None` of the engine's own thread, for which nobody waits.
    standing: Option<Standing>,
}

impl Caller {
    /// Finds a thread of the program's. `lead_out` is asked for a thread's sake that waits in code of the engine's.
    pub(crate) fn find(
        process: &Process,
        libraries: &Libraries,
        but: Option<Tid>,
        lead_out: &dyn Fn(Tid, u64),
    ) -> Result<Caller> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let memory = process.memory().doing("opening the process's memory")?;
            let maps = process.maps();
            for tid in process.threads().into_iter().filter(|tid| Some(*tid) != but) {
                let doing = process.doing(tid);
                if let Doing::Waits { rip, .. } = doing {
                    lead_out(tid, rip);
                }
                let is_late = begun.elapsed() > UNTIL_RUNNING && doing == Doing::Runs;
                if !is_late && !libraries.is_safe(doing, process, &memory, &maps) {
                    continue;
                }
                let Some(still) = process.stop_one(tid).filter(|still| !still.has_signal()) else { continue };
                let Some(registers) = still.registers() else { continue };
                let is_safe = match doing {
                    Doing::Waits { number, rip, .. } => {
                        (registers.system_call, registers.rip) == (number, rip)
                    }
                    _ => {
                        !still.is_in_sequence(&registers, &memory)
                            && libraries.is_safe_running(&registers, process, &memory, &maps)
                    }
                };
                if is_safe {
                    return Caller::new(still, registers, libraries, memory);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if process.threads().is_empty() {
            return Err(Error::Start("the process has ended".into()));
        }
        let why =
            "no thread of the process came to a place within five seconds where it could load a library";
        Err(Error::Start(why.into()))
    }

    /// The engine's own thread, which sleeps.
    pub(crate) fn of(process: &Process, libraries: &Libraries, tid: Tid) -> Result<Caller> {
        let memory = process.memory().doing("opening the process's memory")?;
        let still = process.stop_own(tid);
        let registers = still.as_ref().and_then(Still::registers);
        match (still, registers) {
            (Some(still), Some(registers)) => {
                let mut own = Caller::new(still, registers, libraries, memory)?;
                own.standing = None;
                Ok(own)
            }
            _ => Err(Error::Start("the engine's own thread in the process does not stop".into())),
        }
    }

    /// A thread that its tracer holds where it has just left a system call, and holds on after [`Caller::put_back`].
    pub(crate) fn held(tid: Tid, trap: u64, memory: File) -> Result<Caller> {
        let registers = ptrace::registers(tid).doing("reading a thread's registers")?;
        let (extended, blocked) = block(tid)?;
        let mut caller = Caller { tid, registers, extended, blocked, trap, stack: 0, memory, standing: None };
        caller.stack = caller.map(STACK_BYTES)?;
        Ok(caller)
    }

    fn new(still: Still, registers: Registers, libraries: &Libraries, memory: File) -> Result<Caller> {
        let tid = still.tid;
        let (extended, blocked) = block(tid)?;
        // From here on it is let go by the caller.
        let standing = still.taken_over();
        let trap = libraries.trap;
        let mut caller = Caller { tid, registers, extended, blocked, trap, stack: 0, memory, standing };
        caller.stack = caller.map(STACK_BYTES)?;
        Ok(caller)
    }

    /// The thread stands still as before; its registers.
    pub(crate) fn put_back(mut self) -> Result<Registers> {
        self.unmap(self.stack, STACK_BYTES)?;
        self.stack = 0;
        // The kernel must not restart a system call.
        let registers = Registers { system_call: u64::MAX, ..self.registers };
        ptrace::set_extended(self.tid, &mut self.extended).doing("setting a thread's registers")?;
        self.set(&registers)?;
        ptrace::set_blocked(self.tid, self.blocked).doing("setting a thread's signals")?;
        self.tid = 0;
        Ok(registers)
    }

    /// Opens a file to read; `path` is a text of the process's.
    pub(crate) fn open(&mut self, path: u64) -> Result<u64> {
        const FLAGS: u64 = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
        let opened = self.system_call(OPEN, [path, FLAGS, 0], [0; 3])?;
        match opened as i64 {
            0.. => Ok(opened),
            _ => Err(Error::Start("the program may not read the engine's file".into())),
        }
    }

    /// Closes the file that [`Caller::open`] opened.
    pub(crate) fn close(&mut self, file: u64) -> Result<()> {
        self.system_call(CLOSE, [file, 0, 0], [0; 3]).map(|_| ())
    }

    /// Maps a file's bytes over memory that was mapped for them.
    pub(crate) fn map_file(
        &mut self,
        at: u64,
        bytes: u64,
        protection: i32,
        (file, offset): (u64, u64),
    ) -> Result<()> {
        let flags = (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64;
        let mapped = self.system_call(MAP, [at, bytes, protection as u64], [flags, file, offset])?;
        match mapped == at {
            true => Ok(()),
            false => Err(Error::Start("the program cannot map the engine's file".into())),
        }
    }

    /// Fresh memory of the process.
    pub(crate) fn map(&mut self, bytes: u64) -> Result<u64> {
        let both = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let mapped = self.system_call(MAP, [0, bytes, both], [flags, u64::MAX, 0])?;
        match mapped as i64 {
            1.. => Ok(mapped),
            _ => Err(Error::Start("the process has no memory for a stack".into())),
        }
    }

    /// Unmaps that memory.
    pub(crate) fn unmap(&mut self, at: u64, bytes: u64) -> Result<()> {
        self.system_call(UNMAP, [at, bytes, 0], [0; 3]).map(|_| ())
    }

    /// The thread ends.
    pub(crate) fn end(mut self) -> Result<()> {
        self.unmap(self.stack, STACK_BYTES)?;
        self.stack = 0;
        let ends = Registers { rip: self.trap, rax: EXIT, rdi: 0, system_call: u64::MAX, ..self.registers };
        self.set(&ends)?;
        ptrace::go_on(self.tid).doing("letting a thread run")?;
        while ptrace::wait(self.tid, LONGEST_CALL).is_some_and(|stop| stop != Stop::Gone) {
            ptrace::go_on(self.tid).doing("letting a thread run")?;
        }
        self.tid = 0;
        Ok(())
    }

    /// Calls a function with two arguments on a stack of its own.
    pub(crate) fn call(&mut self, function: u64, arguments: [u64; 2]) -> Result<u64> {
        // The ABI's alignment at an entry: the return address lies at a multiple of 16, less 8.
        let rsp = self.stack + STACK_BYTES - 4096 - 8;
        self.memory.write_all_at(&NOWHERE.to_le_bytes(), rsp).doing("writing the stack of a call")?;
        let begin = Registers {
            rip: function,
            rsp,
            rdi: arguments[0],
            rsi: arguments[1],
            rax: 0,
            system_call: u64::MAX,
            flags: self.registers.flags & !FLAGS_TO_CLEAR,
            ..self.registers
        };
        self.run_to_end(&begin)
    }

    /// A text where functions find it; one at a time.
    pub(crate) fn text(&self, text: &str) -> Result<u64> {
        let at = self.stack + STACK_BYTES - 4096;
        let bytes = [text.as_bytes(), &[0]].concat();
        self.memory.write_all_at(&bytes, at).doing("writing the argument of a call")?;
        Ok(at)
    }

    fn system_call(&mut self, number: u64, first: [u64; 3], last: [u64; 3]) -> Result<u64> {
        let [rdi, rsi, rdx] = first;
        let mut begin =
            Registers { rip: self.trap, rax: number, rdi, rsi, rdx, system_call: u64::MAX, ..self.registers };
        begin.set_last_arguments(last);
        self.set(&begin)?;
        // Into the call, and out of it.
        self.run_to_system_call()?;
        self.run_to_system_call()?;
        Ok(ptrace::registers(self.tid).doing("reading a thread's registers")?.rax)
    }

    /// Runs from these registers until the function has returned to the unmapped address; returns its result.
    fn run_to_end(&mut self, begin: &Registers) -> Result<u64> {
        self.set(begin)?;
        loop {
            ptrace::go_on(self.tid).doing("letting a thread run")?;
            match self.stop()? {
                Stop::Signal(libc::SIGSEGV) => {
                    let registers = ptrace::registers(self.tid).doing("reading a thread's registers")?;
                    if registers.rip == NOWHERE {
                        return Ok(registers.rax);
                    }
                    return Err(Error::Start("the engine's own code in the process met SIGSEGV".into()));
                }
                Stop::Signal(signal) => {
                    return Err(Error::Start(format!(
                        "the engine's own code in the process met {}",
                        lineup_model::signal_name(signal)
                    )));
                }
                Stop::Told | Stop::SystemCall | Stop::NewProgram | Stop::Gone => {}
            }
        }
    }

    fn set(&self, registers: &Registers) -> Result<()> {
        ptrace::set_registers(self.tid, registers).doing("setting a thread's registers")
    }

    /// Runs into a system call, or out of it.
    fn run_to_system_call(&mut self) -> Result<()> {
        loop {
            ptrace::to_system_call(self.tid).doing("letting a thread run")?;
            if self.stop()? == Stop::SystemCall {
                return Ok(());
            }
        }
    }

    fn stop(&mut self) -> Result<Stop> {
        match ptrace::wait(self.tid, LONGEST_CALL) {
            Some(Stop::Gone) => {
                self.tid = 0;
                Err(Error::Start("the process has ended".into()))
            }
            Some(stop) => Ok(stop),
            None => Err(Error::Start("the engine's own code in the process does not end".into())),
        }
    }

    /// Brings the thread to where the kernel sees to interrupted calls, with all its registers as they were.
    fn restore(&mut self) -> std::io::Result<()> {
        ptrace::interrupt(self.tid)?;
        ptrace::go_on(self.tid)?;
        while !matches!(ptrace::wait(self.tid, LONGEST_CALL), Some(Stop::Told | Stop::Gone) | None) {
            ptrace::go_on(self.tid)?;
        }
        ptrace::set_extended(self.tid, &mut self.extended)?;
        ptrace::set_registers(self.tid, &self.registers)?;
        ptrace::set_blocked(self.tid, self.blocked)?;
        make_call_again(self.tid);
        ptrace::let_go(self.tid, 0)
    }
}

/// Blocks a thread's signals: its extended registers, and which were blocked before.
fn block(tid: Tid) -> Result<(Vec<u8>, u64)> {
    let known = ptrace::extended(tid).and_then(|extended| Ok((extended, ptrace::blocked(tid)?)));
    let known = known.doing("reading a thread's registers")?;
    // Signals that report a failed instruction stay unblocked: the kernel would take their handlers away.
    let failures = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP];
    let failures = failures.into_iter().fold(0, |all, signal| all | 1 << (signal - 1));
    ptrace::set_blocked(tid, !failures).doing("blocking a thread's signals")?;
    Ok(known)
}

impl Drop for Caller {
    fn drop(&mut self) {
        if self.tid == 0 {
            return;
        }
        if self.stack != 0 {
            // It stays when the thread cannot: then it is the process's last care.
            let _ = self.unmap(self.stack, STACK_BYTES);
        }
        if self.tid != 0 {
            let _ = self.restore();
        }
    }
}
