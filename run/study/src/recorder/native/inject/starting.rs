//! A process that is about to become a statically linked program, into which the engine is injected.

use super::layout::Library;
use super::thread_block::Parts;
use crate::error::{Doing, Error, Result};
use crate::recorder::native::shared_memory::Memory;
use crate::recorder::native::tracee::caller::{Caller, trap_of};
use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::ptrace::{Registers, Stop, Tid};
use crate::recorder::native::tracee::refusals::{self, of_injection};
use crate::recorder::native::tracee::threads::Process;
use lineup_recording::native::state;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

/// The longest wait for the program's next system call.
const PATIENCE: Duration = Duration::from_secs(60);
const SET_BASE: u64 = 158;
const BASE_IS_SET: u64 = 0x1002;
/// The system calls of C libraries before they set the base: reading files, memory, and the kind of system. By number
/// on x86-64: read, mmap, mprotect, munmap, brk, uname, readlink, sysinfo, arch_prctl, set_tid_address,
/// set_robust_list, openat, readlinkat, prlimit64, getrandom, rseq.
const BEFORE: [u64; 16] = [0, 9, 10, 11, 12, 63, 89, 99, SET_BASE, 218, 273, 257, 267, 302, 318, 334];
/// The engine's return value when it records, and does not lead into its cache at once.
const BEGUN: u64 = 1;

/// A process that is about to become the program, held by this thread.
pub(crate) struct Starting {
    tid: Tid,
}

impl Starting {
    /// Holds a process. All else must be done by the same thread.
    pub(crate) fn hold(process: Pid) -> Result<Starting> {
        let starting = Starting { tid: process.as_raw_nonzero().get() };
        match ptrace::seize_to_exec(starting.tid) {
            Ok(()) => Ok(starting),
            Err(error) => {
                starting.end();
                Err(of_injection(format!("the system does not let it be stopped (ptrace): {error}")))
            }
        }
    }

    /// It may be gone already.
    fn end(&self) {
        let process = Pid::from_raw(self.tid);
        let _ = process.map(|process| kill_process(process, Signal::KILL));
    }

    /// Lets it become the program, and injects the engine there. If that fails, the program has been ended before it
    /// had any effect. If the process ends before it becomes the program, the code that waits for it reports the
    /// reason.
    pub(crate) fn bring(self, engine: &Path, memory: &Memory) -> Result<()> {
        let brought = self.run(engine, memory);
        let is_gone = ptrace::registers(self.tid).is_err();
        if brought.as_ref().map_or(true, |has_begun| !has_begun) {
            self.end();
        }
        let says_why = || matches!(memory.control().state.load(Acquire), state::REFUSED | state::GAVE_UP);
        match brought {
            Err(Error::Unfit { why, has_run }) => Err(Error::Unfit { why, has_run }),
            // The engine's message, or the process's end, is the reason.
            Err(_) if says_why() || is_gone => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Starts the engine; true when it records. It has reported the reason when it does not.
    fn run(&self, engine: &Path, memory: &Memory) -> Result<bool> {
        let library = Library::read(engine)?;
        if !self.reaches(Stop::NewProgram)? {
            return Ok(true);
        }
        // Out of the call that made it the program: from there on it can be made to call others.
        ptrace::to_system_call(self.tid).doing("letting the program run")?;
        if !self.reaches(Stop::SystemCall)? {
            return Ok(true);
        }
        if let Some(why) = refusals::of_start(self.tid) {
            return Err(of_injection(why.to_owned()));
        }
        let process = Process::new(self.tid);
        let own = process.memory().doing("opening the program's memory")?;
        let trap = trap_of(&process, &own).ok_or_else(|| of_injection("it makes no system calls".into()))?;
        let parts = Parts::read(self.tid, &own)?;
        let mut caller = self.caller(trap)?;
        let block = parts.extend(&library, &mut caller, &own)?;
        caller.put_back()?;
        let base = self.run_to_base()?;
        block.relocate(&own)?;
        while !block.is_filled(base, &own) {
            self.run_call()?;
        }
        block.settle(base, &own)?;
        let mut caller = self.caller(trap)?;
        let functions = library.lay_out(&mut caller, &own, engine, block.distance)?;
        let path = caller.text(&memory.path())?;
        let begun = caller.call(functions.inject, [path, 0])?;
        let registers = caller.put_back()?;
        if begun == 0 {
            if memory.control().state.load(Acquire) == 0 {
                return Err(of_injection(
                    "the engine in it could not open the memory that it shares with lineup".into(),
                ));
            }
            return Ok(false);
        }
        if begun != BEGUN {
            self.lead_in(&registers, begun, &own)?;
        }
        debug_assert_eq!(memory.control().state.load(Acquire), state::RUNS);
        ptrace::let_go(self.tid, 0).doing("letting the program go")?;
        Ok(true)
    }

    fn caller(&self, trap: u64) -> Result<Caller> {
        let memory = Process::new(self.tid).memory().doing("opening the program's memory")?;
        Caller::held(self.tid, trap, memory)
    }

    /// Makes the program continue in the engine's cache, through this function.
    fn lead_in(&self, registers: &Registers, function: u64, memory: &File) -> Result<()> {
        let rsp = registers.rsp - 8;
        memory.write_all_at(&registers.rip.to_le_bytes(), rsp).doing("writing the program's stack")?;
        let inside = Registers { rip: function, rsp, ..*registers };
        ptrace::set_registers(self.tid, &inside).doing("setting the program's registers")
    }

    /// Waits until it stands still so; false when it is gone.
    fn reaches(&self, wanted: Stop) -> Result<bool> {
        loop {
            match ptrace::wait(self.tid, PATIENCE) {
                None => {
                    return Err(of_injection(
                        "it takes more than a minute until its first thread is set up".into(),
                    ));
                }
                Some(Stop::Gone) => return Ok(false),
                Some(stop) if stop == wanted => return Ok(true),
                Some(stop) => {
                    let signal = if let Stop::Signal(signal) = stop { signal } else { 0 };
                    let go_on = if wanted == Stop::SystemCall {
                        ptrace::to_system_call_with
                    } else {
                        ptrace::go_on_with
                    };
                    go_on(self.tid, signal).doing("letting the program run")?;
                }
            }
        }
    }

    /// Runs until the program has set its thread's base; returns that base.
    fn run_to_base(&self) -> Result<u64> {
        loop {
            let [entered, left] = self.run_call()?;
            if (entered.system_call, entered.rdi) == (SET_BASE, BASE_IS_SET) && left.rax == 0 {
                return Ok(left.base);
            }
        }
    }

    /// Runs to the end of the next system call; returns the registers at its beginning and at its end.
    fn run_call(&self) -> Result<[Registers; 2]> {
        let reach = || -> Result<Registers> {
            ptrace::to_system_call(self.tid).doing("letting the program run")?;
            if !self.reaches(Stop::SystemCall)? {
                return Err(of_injection("it ended before its first thread was set up".into()));
            }
            ptrace::registers(self.tid).doing("reading the program's registers")
        };
        let entered = reach()?;
        if !BEFORE.contains(&entered.system_call) {
            return Err(of_injection(format!(
                "it makes system call {} before its first thread is set up, as no C library does",
                entered.system_call
            )));
        }
        Ok([entered, reach()?])
    }
}
