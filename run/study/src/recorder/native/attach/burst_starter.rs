//! Bursts in a running process: a thread is stopped wherever it is, and continues in the engine's code cache.

use super::attached::Attached;
use crate::error::{Doing as _, Result};
use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::ptrace::{Registers, Tid};
use crate::recorder::native::tracee::threads::{Doing, Still, code_of, is_in};
use lineup_bundle::Library;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Acquire;
use std::time::Duration;

/// The code segment of 64-bit programs.
const CODE_SEGMENT: u64 = 0x33;
/// Bytes of a stack, from its top on, that hold the return address of a function that copies memory.
const FRAME_BYTES: usize = 256;
/// The flag for single steps.
const STEPS: u64 = 0x100;

/// The result of an attempt to begin a burst.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(in crate::recorder::native) enum Attempt {
    /// It has begun.
    Begun,
    /// No thread runs.
    AllWait,
    /// The thread is in a system call, or about to handle a signal.
    InKernel,
    /// It is in a restartable sequence.
    InSequence,
    /// It runs code of no file: the kernel's, or code that was written at run time.
    InNoFile,
    /// It is in the engine, in a burst, or in a signal handler, which returns to the engine.
    InEngine,
    /// It has ended, or does not stop.
    Gone,
}

/// Begins bursts in a process.
pub(in crate::recorder::native) struct BurstStarter<'a> {
    attached: &'a Attached<'a>,
    memory: File,
    /// Code of files, without the engine's.
    code: Vec<Range<u64>>,
    /// The engine's code.
    engine: Vec<Range<u64>>,
    /// The time that threads have stood still for bursts, and the longest.
    pub(in crate::recorder::native) stood: Duration,
    pub(in crate::recorder::native) longest: Duration,
}

impl<'a> BurstStarter<'a> {
    /// Knows the process's code.
    pub(in crate::recorder::native) fn new(attached: &'a Attached<'a>) -> Result<BurstStarter<'a>> {
        let memory = attached.process.memory().doing("opening the process's memory")?;
        let (stood, longest) = (Duration::ZERO, Duration::ZERO);
        let mut starter =
            BurstStarter { attached, memory, code: Vec::new(), engine: Vec::new(), stood, longest };
        starter.look();
        Ok(starter)
    }

    /// Reads which code the process has.
    pub(in crate::recorder::native) fn look(&mut self) {
        let maps = self.attached.process.maps();
        let engine = Library::Engine.file_name();
        self.code = code_of(&maps, |name| !name.is_empty() && !name.starts_with('[') && name != engine);
        let cache = self.attached.memory.control().cache_start.load(Acquire)
            ..self.attached.memory.control().cache_end.load(Acquire);
        self.code.retain(|range| !is_in(std::slice::from_ref(&cache), range.start));
        self.engine = code_of(&maps, |name| name == engine);
        self.engine.push(cache);
    }

    /// Begins a burst in one of the threads that run: `choose` picks a number below the given one.
    pub(in crate::recorder::native) fn begin(&mut self, choose: &mut dyn FnMut(usize) -> usize) -> Attempt {
        let process = &self.attached.process;
        let own = self.attached.own;
        let runs = |tid: &Tid| *tid != own && process.doing(*tid) == Doing::Runs;
        let running: Vec<Tid> = process.threads().into_iter().filter(runs).collect();
        if running.is_empty() {
            return Attempt::AllWait;
        }
        let tid = running[choose(running.len())];
        // Until the length of the stop is known.
        let _urgent = ptrace::Urgent::begin();
        let Some(still) = self.attached.process.stop_one(tid) else { return Attempt::Gone };
        let since = still.since;
        let attempt = self.begin_in(tid, still);
        let stood = since.elapsed();
        self.stood += stood;
        self.longest = self.longest.max(stood);
        attempt
    }

    fn begin_in(&self, tid: Tid, still: Still) -> Attempt {
        let Some(registers) = still.registers() else { return Attempt::Gone };
        if still.has_signal() || registers.system_call as i64 >= 0 {
            return Attempt::InKernel;
        }
        if is_in(&self.engine, registers.rip) || self.is_called_by_engine(&registers) {
            return Attempt::InEngine;
        }
        let is_plain = registers.code_segment == CODE_SEGMENT && registers.flags & STEPS == 0;
        if !is_in(&self.code, registers.rip) || !is_plain {
            return Attempt::InNoFile;
        }
        if still.is_in_sequence(&registers, &self.memory) {
            return Attempt::InSequence;
        }
        self.lead_in(tid, &registers)
    }

    /// True when a thread may be in a function that the engine calls, holding a lock of the engine's: it calls nothing
    /// but copies of memory, which have small frames. A handler of the program's may return to the engine, too: its
    /// burst ends there.
    fn is_called_by_engine(&self, registers: &Registers) -> bool {
        let mut bytes = [0; FRAME_BYTES];
        let read = self.memory.read_at(&mut bytes, registers.rsp).unwrap_or(0);
        let mut words = bytes[..read].as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        words.any(|word| is_in(&self.engine, word))
    }

    /// Leads a thread that stands still into the code cache.
    fn lead_in(&self, tid: Tid, registers: &Registers) -> Attempt {
        let control = self.attached.memory.control();
        let slots = registers.base.wrapping_add(control.slots.load(Acquire));
        let at = |slot: &AtomicU64| slots.wrapping_add(slot.load(Acquire));
        let (pc, busy) = (at(&control.pc_slot), at(&control.busy_slot));
        let mut is_busy = [0; 8];
        let is_read = self.memory.read_exact_at(&mut is_busy, busy).is_ok();
        if !is_read || is_busy != [0; 8] {
            return Attempt::InEngine;
        }
        let write = |value: u64, at: u64| self.memory.write_all_at(&value.to_le_bytes(), at).is_ok();
        if !write(registers.rip, pc) || !write(1, busy) {
            return Attempt::Gone;
        }
        let inside = Registers { rip: control.burst_code.load(Acquire), ..*registers };
        match ptrace::set_registers(tid, &inside) {
            Ok(()) => Attempt::Begun,
            Err(_) => {
                write(0, busy);
                Attempt::Gone
            }
        }
    }

    /// The process's engine thread, as the system lists it while the process is the program that was attached to.
    pub(in crate::recorder::native) fn engine_thread(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/task/{}", self.attached.process.id, self.attached.own))
    }

    /// Processor time that the process has used.
    pub(in crate::recorder::native) fn used(&self) -> Duration {
        ptrace::processor_time(self.attached.process.id)
    }
}
