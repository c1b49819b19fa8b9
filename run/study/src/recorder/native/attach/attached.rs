//! The engine in a process that runs: loaded, begun, left and unloaded.

use super::changes::{self, Traps};
use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::refusals;

use crate::error::{Doing as _, Error, Result};
use crate::recorder::native::shared_memory::Memory;
use crate::recorder::native::tracee::caller::{Caller, Libraries};
use crate::recorder::native::tracee::ptrace::Tid;
use crate::recorder::native::tracee::threads::{Doing, Places, Process, is_in};
use lineup_follow::images::{GuestImage, open_image};
use lineup_follow::maps;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::time::{Duration, Instant};

/// The longest wait for threads to leave the engine's code.
const LEAVING: Duration = Duration::from_secs(10);
/// Room for the stack of the engine's own thread, and for the thread data that the C library's functions use.
const THREAD_BYTES: u64 = 1 << 20;
/// `RTLD_NOW`, by which a library's functions are bound before it is there.
const BIND_NOW: u64 = 2;
/// The engine's answer when an earlier attachment could not unmap it.
const ENGINE_OF_BEFORE: u64 = 2;
/// The flag that the older entry to the C library's loader needs in addition.
const OLD_ENTRY: u64 = 0x8000_0000;

/// The process to attach to, found fit for it.
pub(crate) fn check(process: u32) -> Result<()> {
    let process = Tid::try_from(process).unwrap_or(Tid::MAX);
    if let Some(why) = refusals::refusal(process) {
        return Err(Error::Start(why));
    }
    match ptrace::seize(process) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(Error::Start(refusals::of_permission(process)))
        }
        Err(error) => Err(Error::Start(format!("process {process} cannot be attached to: {error}"))),
        Ok(()) => {
            // It runs: it is stopped, so that it can be let go.
            drop(Process::new(process).stop_seized(process));
            Ok(())
        }
    }
}

/// A process's command: its program's file, and its arguments.
pub(crate) fn command(process: u32) -> Result<Vec<OsString>> {
    check(process)?;
    let program =
        std::fs::read_link(format!("/proc/{process}/exe")).doing("reading which program it runs")?;
    let words = std::fs::read(format!("/proc/{process}/cmdline")).doing("reading its arguments")?;
    let arguments = words.split(|byte| *byte == 0).skip(1).filter(|word| !word.is_empty());
    let arguments = arguments.map(|word| OsString::from_vec(word.to_vec()));
    Ok(std::iter::once(program.into_os_string()).chain(arguments).collect())
}

/// The engine in a process.
pub(crate) struct Attached<'a> {
    pub(super) process: Process,
    pub(super) memory: &'a Memory,
    libraries: Libraries,
    /// The engine's file, and the loader's handle for it.
    engine: PathBuf,
    handle: u64,
    close: u64,
    /// The engine's own thread, and where its stack begins.
    pub(super) own: Tid,
    stack: u64,
    leave: u64,
    give_back_traps: u64,
    give_back: u64,
}

/// The result of leaving a process.
pub(crate) struct Left {
    /// The longest time that one of its threads has stood still.
    pub(crate) stood: Duration,
    /// The parts of Lineup that stay in it, in words.
    pub(crate) stays: Option<String>,
}

impl Left {
    /// Notes for the user.
    pub(crate) fn notes(self) -> impl Iterator<Item = String> {
        let stood =
            format!("no thread of the process stood still for longer than {} µs", self.stood.as_micros());
        std::iter::once(stood).chain(self.stays)
    }
}

/// Functions of the C library's that load and unload.
struct Loader {
    open: u64,
    flags: u64,
    close: u64,
}

impl Loader {
    fn of(images: &[GuestImage]) -> Option<Loader> {
        let symbol = |name: &str| images.iter().find_map(|image| image.symbol(name));
        let new = || Some(Loader { open: symbol("dlopen")?, flags: BIND_NOW, close: symbol("dlclose")? });
        let old = || {
            let (open, close) = (symbol("__libc_dlopen_mode")?, symbol("__libc_dlclose")?);
            Some(Loader { open, flags: BIND_NOW | OLD_ENTRY, close })
        };
        new().or_else(old)
    }
}

/// Files of the C library that are mapped.
fn c_libraries(process: &Process) -> Vec<GuestImage> {
    let files = maps::native_files(&process.maps());
    let is_c_library = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or_default();
        ["libc.so", "libc-2", "libdl.so", "libdl-2", "ld-musl"].iter().any(|begin| name.starts_with(begin))
    };
    let own = files.iter().filter(|file| is_c_library(&file.path));
    own.filter_map(|file| open_image(&file.path, file.start)).collect()
}

impl<'a> Attached<'a> {
    /// Loads the engine into a process, and begins. A process that cannot be recorded is left as it was; the memory
    /// then holds the reason.
    pub(crate) fn new(process: u32, engine: &Path, memory: &'a Memory) -> Result<Option<Attached<'a>>> {
        let process = Process::new(Tid::try_from(process).unwrap_or(Tid::MAX));
        let images = c_libraries(&process);
        let no_c_library = || Error::Start("the process has no C library that could load another".into());
        let c_library = images.iter().find(|image| image.symbol("__libc_start_main").is_some());
        let loader = Loader::of(&images).ok_or_else(no_c_library)?;
        let libraries =
            c_library.and_then(|image| Libraries::new(&process, image)).ok_or_else(no_c_library)?;
        // Read before any thread stands still. Its addresses are distances until its load address is known.
        let file = open_image(&engine.to_string_lossy(), 0);
        let distance = |name: &str| {
            let found = file.as_ref().and_then(|file| file.symbol(name));
            found.ok_or_else(|| Error::Start(format!("the engine's file lacks {name}")))
        };
        let (attach, begin) = (distance("lineup_engine_attach")?, distance("lineup_engine_begin")?);
        let (leave, give_back) = (distance("lineup_engine_leave")?, distance("lineup_engine_give_back")?);
        let give_back_traps = distance("lineup_engine_give_back_traps")?;
        let make_thread = distance("lineup_engine_thread")?;
        memory.control().signature.store(process.own_signature().map_or(0, u64::from), Release);
        let mut caller = Caller::find(&process, &libraries, None, &|_, _| ())?;
        let path = caller.text(&engine.to_string_lossy())?;
        let handle = caller.call(loader.open, [path, loader.flags])?;
        let start = engine_start(&process, engine).filter(|_| handle != 0);
        let Some(start) = start else {
            let why = "the process's loader does not load the engine: there may be no room for its thread-local \
                       variables, or it may not read its file";
            return Err(Error::Start(why.into()));
        };
        let at = |distance: u64| start.wrapping_add(distance);
        let stack = caller.map(THREAD_BYTES)?;
        let made = caller.call(at(make_thread), [stack, THREAD_BYTES])?;
        let Some(own) = Tid::try_from(made as i64).ok().filter(|own| *own > 0) else {
            caller.unmap(stack, THREAD_BYTES)?;
            caller.call(loader.close, [handle, 0])?;
            return Err(Error::Start("the process could not make another thread".into()));
        };
        drop(caller);
        let attached = Attached {
            process,
            memory,
            libraries,
            engine: engine.to_owned(),
            handle,
            close: loader.close,
            own,
            stack,
            leave: at(leave),
            give_back_traps: at(give_back_traps),
            give_back: at(give_back),
        };
        attached.begin(at(attach), at(begin)).map(|begun| begun.then_some(attached))
    }

    /// Starts the engine. A process that cannot be recorded is left as it was; the result is then false.
    fn begin(&self, attach: u64, begin: u64) -> Result<bool> {
        let mut own = self.own_thread()?;
        let path = own.text(&self.memory.path())?;
        match own.call(attach, [path, 0])? {
            1 => {}
            ENGINE_OF_BEFORE => {
                self.close(own)?;
                let why = "the engine is still in the process from the time before, since it could not be left then";
                return Err(Error::Start(why.into()));
            }
            _ => {
                self.give_up(own)?;
                return Ok(false);
            }
        }
        if let Err(error) = changes::make(&self.process, self.memory, self.own) {
            self.give_up(own)?;
            return Err(error);
        }
        own.call(begin, [0; 2])?;
        Ok(true)
    }

    /// The engine's own thread, to call functions.
    fn own_thread(&self) -> Result<Caller> {
        Caller::of(&self.process, &self.libraries, self.own)
    }

    /// True when the process still exists.
    pub(crate) fn is_running(&self) -> bool {
        self.process.is_running()
    }

    /// Leaves the process as it was.
    pub(crate) fn leave(self) -> Result<Left> {
        if self.process.threads().into_iter().any(refusals::limits_calls) {
            // A call of the engine's, or of the loader's to unload it, would end the process.
            changes::take_back(&self.process, self.memory, (self.own, &self.code()))?;
            let stays = "the process has forbidden itself system calls (seccomp) while it was recorded; the engine's memory, \
                         library and thread stay in it";
            return Ok(Left { stood: self.process.longest_stop(), stays: Some(stays.into()) });
        }
        let mut own = self.own_thread()?;
        let is_known = own.call(self.leave, [0; 2])? == 1;
        let unsettled = changes::take_back(&self.process, self.memory, (self.own, &self.code()))?;
        let is_left = self.is_left(&unsettled);
        self.give_back_traps(&mut own)?;
        let stays = self.unload(own, is_left, is_known)?;
        Ok(Left { stood: self.process.longest_stop(), stays })
    }

    /// Unloads the engine if no thread is in it; returns the remaining parts in words.
    fn unload(&self, mut own: Caller, is_left: bool, is_known: bool) -> Result<Option<String>> {
        if let Some(left) = changes::left(&self.process, self.memory) {
            self.end(own)?;
            return Ok(Some(format!(
                "the engine stays mapped in the process, since its code leads there: {left}"
            )));
        }
        if !is_left {
            self.end(own)?;
            let held = self.memory.ranges().iter().map(|range| range.end - range.start).sum::<u64>() >> 20;
            return Ok(Some(format!(
                "a thread of the process comes back to code of the engine, such as from a signal handler that has not \
                 ended; {held} MB of addresses and the engine's library stay mapped in it, and nothing leads there"
            )));
        }
        own.call(self.give_back, [0; 2])?;
        if let Err(why) = self.close(own) {
            return Ok(Some(format!(
                "the engine's library stays in the process, which nothing leads to: {why}"
            )));
        }
        let is_mapped = engine_start(&self.process, &self.engine).is_some();
        Ok(match (is_mapped, is_known) {
            (true, _) => {
                Some("the engine's library stays mapped in the process, which nothing leads to".into())
            }
            (_, false) => Some("some memory of the engine's stays mapped in the process".into()),
            _ => None,
        })
    }

    /// No trap stands in the program's code any more, and none that a thread has met is pending.
    fn give_back_traps(&self, own: &mut Caller) -> Result<()> {
        if self.memory.control().trap_slot.load(Acquire) != 0 {
            own.call(self.give_back_traps, [0; 2])?;
        }
        Ok(())
    }

    /// No code of the program leads to the engine: unmaps its memory, and unloads it.
    fn give_up(&self, mut own: Caller) -> Result<()> {
        own.call(self.leave, [0; 2])?;
        self.give_back_traps(&mut own)?;
        own.call(self.give_back, [0; 2])?;
        self.close(own)
    }

    /// Ends the engine's own thread. It executes nothing of its own any more, so that it needs no stack.
    fn end(&self, mut own: Caller) -> Result<()> {
        own.unmap(self.stack, THREAD_BYTES)?;
        own.end()
    }

    /// Ends the engine's own thread and unloads the engine.
    fn close(&self, own: Caller) -> Result<()> {
        self.end(own)?;
        let mut caller = self.caller()?;
        caller.call(self.close, [self.handle, 0])?;
        Ok(())
    }

    /// A thread of the program, to call functions.
    fn caller(&self) -> Result<Caller> {
        Caller::find(&self.process, &self.libraries, Some(self.own), &|tid, rip| self.lead_out(tid, rip))
    }

    /// Leads a thread out of the code cache where it waits in a system call: it continues in the program's own code,
    /// where the kernel makes the call again.
    fn lead_out(&self, tid: Tid, rip: u64) {
        let cache =
            self.memory.control().cache_start.load(Acquire)..self.memory.control().cache_end.load(Acquire);
        if !cache.contains(&rip) {
            return;
        }
        let Some(still) = self.process.stop_one(tid) else { return };
        let (Some(registers), Ok(memory)) = (still.registers(), self.process.memory()) else { return };
        let is_waiting = cache.contains(&registers.rip) && registers.system_call as i64 >= 0;
        if !is_waiting {
            return;
        }
        let control = self.memory.control();
        let slots = registers.base.wrapping_add(control.slots.load(Acquire));
        let read = |slot: &AtomicU64| {
            let mut bytes = [0; 8];
            let at = slots.wrapping_add(slot.load(Acquire));
            memory.read_exact_at(&mut bytes, at).ok().map(|()| (at, u64::from_le_bytes(bytes)))
        };
        if let (Some((_, pc)), Some((busy_at, 1))) = (read(&control.pc_slot), read(&control.busy_slot)) {
            let outside = ptrace::Registers { rip: pc, rcx: pc, ..registers };
            if ptrace::set_registers(tid, &outside).is_ok() {
                let _ = memory.write_all_at(&0u64.to_le_bytes(), busy_at);
            }
        }
    }

    /// Waits until every thread was seen outside the engine's code, with nothing on its stack that leads back. False
    /// when one stays.
    fn is_left(&self, unsettled: &BTreeSet<Tid>) -> bool {
        let ranges = self.code();
        let mut left: BTreeSet<Tid> = BTreeSet::new();
        let begun = Instant::now();
        while begun.elapsed() < LEAVING {
            let threads = self.process.threads();
            let inside: Vec<Tid> =
                threads.into_iter().filter(|tid| *tid != self.own && !left.contains(tid)).collect();
            if inside.is_empty() {
                return true;
            }
            left.extend(inside.into_iter().filter(|tid| self.is_outside(*tid, &ranges, unsettled)));
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    /// True when a thread is outside the engine's code; one with unsettled signals has to stop for the check.
    fn is_outside(&self, tid: Tid, ranges: &[Range<u64>], unsettled: &BTreeSet<Tid>) -> bool {
        let Ok(memory) = self.process.memory() else { return false };
        let maps = Places::of(&self.process.maps());
        let leads_back = |rip: u64, rsp: u64, slots: Option<u64>| {
            // The engine's words of a thread may lie above its stack in the same mapping.
            let words =
                slots.filter(|slots| *slots > rsp).map_or(usize::MAX, |slots| ((slots - rsp) / 8) as usize);
            let stack = self.process.stack(&memory, &maps, rsp).into_iter().take(words);
            is_in(ranges, rip) || { stack }.any(|word| is_in(ranges, word))
        };
        match self.process.doing(tid) {
            Doing::Gone => return true,
            Doing::Waits { rip, rsp, .. } if !unsettled.contains(&tid) && !leads_back(rip, rsp, None) => {
                return true;
            }
            Doing::Waits { rip, .. } => self.lead_out(tid, rip),
            Doing::Runs => {}
        }
        let Some(still) = self.process.stop_one(tid) else { return false };
        let is_outside = still.registers().is_some_and(|registers| {
            let slots = registers.base.wrapping_add(self.memory.control().slots.load(Acquire));
            !leads_back(registers.rip, registers.rsp, Some(slots))
        });
        is_outside && Traps::of(self.memory).is_none_or(|traps| traps.settle(&still, &memory, ranges))
    }

    /// The ranges of the engine's code.
    fn code(&self) -> Vec<Range<u64>> {
        let text = self.process.maps();
        let held = self.memory.ranges();
        let is_own = |mapping: &maps::Mapping<'_>| {
            Path::new(mapping.path) == self.engine || is_in(&held, mapping.start)
        };
        let code =
            maps::mappings(&text).filter(|mapping| mapping.permissions.contains('x') && is_own(mapping));
        code.map(|mapping| self.used(mapping.start..mapping.end)).collect()
    }

    /// The part of a mapping that can hold code. Most of the cache is empty: a number on a stack that happens to point
    /// there leads nowhere.
    fn used(&self, mapping: Range<u64>) -> Range<u64> {
        /// A reserve for code that is still made while threads come out.
        const MORE_BYTES: u64 = 1 << 20;
        let used = self.memory.control().cache_used.load(Acquire);
        match mapping.contains(&used) && mapping.contains(&self.memory.control().cache_start.load(Acquire)) {
            true => mapping.start..mapping.end.min(used + MORE_BYTES),
            false => mapping,
        }
    }
}

/// The engine's load address in a process; `None` when it is not loaded.
fn engine_start(process: &Process, engine: &Path) -> Option<u64> {
    let files = maps::native_files(&process.maps());
    files.into_iter().find(|file| Path::new(&file.path) == engine).map(|file| file.start)
}
