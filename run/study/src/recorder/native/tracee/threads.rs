//! Threads of another process: seeing their state, stopping them, and letting them continue as if they had not been
//! stopped.

use crate::recorder::native::tracee::ptrace;
use crate::recorder::native::tracee::ptrace::{Registers, Stop, Tid, Urgent};
use lineup_follow::maps::{self, Mapping};
use std::cell::Cell;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The longest wait for a thread that was asked to stop.
const PATIENCE: Duration = Duration::from_millis(200);

/// The part of a stack that is searched at most.
const MOST_STACK_BYTES: u64 = 4 << 20;

/// System calls that report an interruption when a thread is stopped in them, though no handler ran: by number on
/// x86-64. They have done nothing by then, so that they can be made again.
const MADE_AGAIN: [u64; 21] = [
    0, 1, 19, 20, // read, write, readv, writev
    43, 44, 45, 46, 47, 288, // accept, sendto, recvfrom, sendmsg, recvmsg, accept4
    65, 220, 69, 70,  // semop, semtimedop, msgsnd, msgrcv
    128, // rt_sigtimedwait
    208, 333, // io_getevents, io_pgetevents
    232, 281, 441, // epoll_wait, epoll_pwait, epoll_pwait2
    426, // io_uring_enter
];

/// A process that is attached to.
#[derive(Clone)]
pub(crate) struct Process {
    pub(crate) id: Tid,
    /// The longest time that one of its threads has stood still.
    longest_stop: Rc<Cell<Duration>>,
}

/// A thread's activity, seen without stopping it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// It runs, or is about to.
    Runs,
    /// It waits in a system call.
    Waits { number: u64, second: u64, rsp: u64, rip: u64 },
    /// It does not exist any more.
    Gone,
}

/// A thread that stands still, until this is dropped.
pub(crate) struct Still {
    pub(crate) tid: Tid,
    /// `None` when other code lets it continue.
    standing: Option<Standing>,
    /// The signal that it gets when it continues.
    signal: i32,
    is_gone: bool,
    /// It has stood still from then on at the earliest.
    pub(crate) since: Instant,
}

/// The stop of one thread: its length is known when this is dropped, once the thread continues.
pub(crate) struct Standing {
    longest: Rc<Cell<Duration>>,
    told: Instant,
    _urgent: Urgent,
}

impl Drop for Standing {
    fn drop(&mut self) {
        self.longest.set(self.longest.get().max(self.told.elapsed()));
    }
}

impl Process {
    pub(crate) fn new(id: Tid) -> Process {
        Process { id, longest_stop: Rc::default() }
    }

    /// The longest time that one of its threads has stood still.
    pub(crate) fn longest_stop(&self) -> Duration {
        self.longest_stop.get()
    }

    /// The numbers of its threads.
    pub(crate) fn threads(&self) -> Vec<Tid> {
        let Ok(folder) = fs::read_dir(format!("/proc/{}/task", self.id)) else { return Vec::new() };
        folder.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// True when any of its threads has not ended. An ended thread stays among them until its parent has asked for its
    /// status.
    pub(crate) fn is_running(&self) -> bool {
        let state = |tid: Tid| {
            let stat = fs::read_to_string(format!("/proc/{}/task/{tid}/stat", self.id)).ok()?;
            // Behind the name, which may hold anything.
            stat.rsplit_once(") ")?.1.chars().next()
        };
        self.threads().into_iter().any(|tid| state(tid).is_some_and(|state| !matches!(state, 'Z' | 'X')))
    }

    /// The text of its maps.
    pub(crate) fn maps(&self) -> String {
        fs::read_to_string(format!("/proc/{}/maps", self.id)).unwrap_or_default()
    }

    /// Its memory, to read and write.
    pub(crate) fn memory(&self) -> std::io::Result<File> {
        File::options().read(true).write(true).open(format!("/proc/{}/mem", self.id))
    }

    /// A thread's activity.
    pub(crate) fn doing(&self, tid: Tid) -> Doing {
        match fs::read_to_string(format!("/proc/{}/task/{tid}/syscall", self.id)) {
            Ok(text) => doing(&text),
            Err(_) => Doing::Gone,
        }
    }

    /// The words on a stack from its top on, as far as its mapping reaches.
    pub(crate) fn stack(&self, memory: &File, places: &Places, rsp: u64) -> Vec<u64> {
        let Some(end) = places.end_around(rsp) else { return Vec::new() };
        let mut bytes = vec![0; usize::try_from((end - rsp).min(MOST_STACK_BYTES)).unwrap_or(0)];
        let read = memory.read_at(&mut bytes, rsp).unwrap_or(0);
        let words = bytes[..read].chunks_exact(8);
        words.filter_map(|word| Some(u64::from_le_bytes(word.try_into().ok()?))).collect()
    }

    /// Stops all threads but one. `None` when one of them does not stop.
    pub(crate) fn stop(&self, but: Option<Tid>) -> Option<Vec<Still>> {
        // New threads are made while others are still being stopped.
        const MOST_LOOKS: usize = 100;
        let mut still: Vec<Still> = Vec::new();
        for _ in 0..MOST_LOOKS {
            let is_new = |tid: &Tid| Some(*tid) != but && still.iter().all(|still| still.tid != *tid);
            let new: Vec<Tid> = self.threads().into_iter().filter(is_new).collect();
            if new.is_empty() {
                return Some(still);
            }
            // A thread that has ended meanwhile is not listed at the next look.
            let told: Vec<StoppingThread> = new.into_iter().filter_map(|tid| self.tell(tid)).collect();
            // Waits for each asked thread, but not while others stand still.
            let mut late = Vec::new();
            for told in told {
                match told.wait(PATIENCE) {
                    Ok(one) => still.push(one),
                    Err(told) => late.push(told),
                }
            }
            if !late.is_empty() {
                drop(still);
                late.into_iter().for_each(StoppingThread::let_go);
                return None;
            }
        }
        None
    }
}

/// A thread that was asked to stop.
struct StoppingThread {
    tid: Tid,
    standing: Standing,
}

fn doing(text: &str) -> Doing {
    let mut words = text.split_whitespace();
    let number = words.next().and_then(|number| number.parse().ok());
    let rest: Vec<u64> =
        words.filter_map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()).collect();
    match (number, rest.as_slice()) {
        (Some(number), [_, second, _, _, _, _, rsp, rip]) => {
            Doing::Waits { number, second: *second, rsp: *rsp, rip: *rip }
        }
        _ => Doing::Runs,
    }
}

/// The address ranges of a process's mappings.
pub(crate) struct Places(Vec<Range<u64>>);

impl Places {
    pub(crate) fn of(maps: &str) -> Places {
        Places(maps::mappings(maps).map(|mapping| mapping.start..mapping.end).collect())
    }

    /// The end of the mapping that holds an address.
    fn end_around(&self, address: u64) -> Option<u64> {
        let after = self.0.partition_point(|range| range.start <= address);
        let range = self.0[..after].last().filter(|range| range.contains(&address))?;
        Some(range.end)
    }
}

/// The executable parts of a process's maps whose file's name satisfies `is_wanted`.
pub(crate) fn code_of(maps: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
    let name = |mapping: &Mapping<'_>| mapping.path.rsplit('/').next().unwrap_or_default().to_owned();
    let wanted =
        maps::mappings(maps).filter(|mapping| mapping.permissions.contains('x') && is_wanted(&name(mapping)));
    wanted.map(|mapping| mapping.start..mapping.end).collect()
}

/// True when an address lies in one of some ranges.
pub(crate) fn is_in(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

impl Process {
    /// Stops a thread. `None` when it does not stop.
    pub(crate) fn stop_one(&self, tid: Tid) -> Option<Still> {
        self.tell(tid)?.wait(PATIENCE).map_err(StoppingThread::let_go).ok()
    }

    /// A signature of the program's own with which one of its threads has registered memory for restartable sequences.
    pub(crate) fn own_signature(&self) -> Option<u32> {
        /// The signature that Linux' own libraries register on this machine.
        const USUAL: u32 = 0x5305_3053;
        let tasks = fs::read_dir(format!("/proc/{}/task", self.id)).ok()?;
        let names = tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok());
        let of = |tid: Tid| self.stop_one(tid).and_then(|still| ptrace::registered_sequences(still.tid));
        names.filter_map(of).map(|registered| registered.signature).find(|signature| *signature != USUAL)
    }

    /// As [`Process::stop_one`], for a thread that is attached to.
    pub(crate) fn stop_seized(&self, tid: Tid) -> Option<Still> {
        let told = self.about_to_tell(tid);
        ptrace::interrupt(tid).ok()?;
        told.wait(PATIENCE).map_err(StoppingThread::let_go).ok()
    }

    /// As [`Process::stop_one`], for the engine's own thread: nobody waits for it, and it may wait long for a
    /// processor.
    pub(crate) fn stop_own(&self, tid: Tid) -> Option<Still> {
        const PATIENCE: Duration = Duration::from_secs(60);
        Process::new(self.id).tell(tid)?.wait(PATIENCE).ok()
    }

    fn tell(&self, tid: Tid) -> Option<StoppingThread> {
        let told = self.about_to_tell(tid);
        (ptrace::seize(tid).is_ok() && ptrace::interrupt(tid).is_ok()).then_some(told)
    }

    fn about_to_tell(&self, tid: Tid) -> StoppingThread {
        let urgent = Urgent::begin();
        let standing = Standing { longest: self.longest_stop.clone(), told: Instant::now(), _urgent: urgent };
        StoppingThread { tid, standing }
    }
}

impl StoppingThread {
    /// Waits until it stands still.
    fn wait(self, patience: Duration) -> Result<Still, StoppingThread> {
        match ptrace::wait_since(self.tid, patience) {
            Some((stop, since)) => Ok(Still {
                tid: self.tid,
                standing: Some(self.standing),
                signal: if let Stop::Signal(signal) = stop { signal } else { 0 },
                is_gone: stop == Stop::Gone,
                since,
            }),
            None => Err(self),
        }
    }

    /// Waits until it stands still, and lets it go: no thread can be let go that does not stand, and one that is not
    /// would stop for good as soon as it gets a processor.
    fn let_go(self) {
        const PATIENCE: Duration = Duration::from_secs(60);
        drop(self.wait(PATIENCE));
    }
}

impl Still {
    /// It stays stopped; the owner of the returned value lets it continue.
    pub(crate) fn taken_over(mut self) -> Option<Standing> {
        self.standing.take()
    }

    /// True when a signal is about to be delivered to it.
    pub(crate) fn has_signal(&self) -> bool {
        self.signal != 0
    }

    /// True when this signal is about to be delivered, or is pending.
    pub(crate) fn has_met(&self, signal: i32) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.tid)).unwrap_or_default();
        self.signal == signal || mask(&status, "SigPnd") & 1 << (signal - 1) != 0
    }

    /// Whether it stands in a restartable sequence. Whoever has it execute other code there takes the sequence's
    /// protection away: the kernel would no longer begin the sequence anew.
    pub(crate) fn is_in_sequence(&self, registers: &Registers, memory: &File) -> bool {
        /// Where the memory that a thread shares with the kernel names the descriptor.
        const DESCRIPTOR_AT: u64 = 8;
        let words = |at: u64| {
            let mut bytes = [0; 24];
            memory.read_exact_at(&mut bytes, at).ok()?;
            Some([0, 8, 16].map(|from| bytes[from..from + 8].try_into().map_or(0, u64::from_le_bytes)))
        };
        let begun =
            ptrace::registered_sequences(self.tid).and_then(|known| words(known.address + DESCRIPTOR_AT));
        let descriptor = begun.map(|[address, ..]| address).filter(|address| *address != 0).and_then(words);
        // Version and flags, the start, the length.
        descriptor.is_some_and(|[_, start, bytes]| registers.rip.wrapping_sub(start) < bytes)
    }

    /// Its registers; `None` when it is gone.
    pub(crate) fn registers(&self) -> Option<Registers> {
        ptrace::registers(self.tid).ok().filter(|_| !self.is_gone)
    }
}

impl Drop for Still {
    fn drop(&mut self) {
        if !self.is_gone && self.standing.is_some() {
            if self.signal == 0 {
                make_call_again(self.tid);
            }
            let _ = ptrace::let_go(self.tid, self.signal);
        }
    }
}

/// Has a thread that we have interrupted make its system call again, where the kernel does not see to that.
pub(crate) fn make_call_again(tid: Tid) {
    let Ok(registers) = ptrace::registers(tid) else { return };
    if is_interrupted(&registers) && !has_pending_signal(tid) {
        let again = Registers { rax: registers.system_call, rip: registers.rip - 2, ..registers };
        let _ = ptrace::set_registers(tid, &again);
    }
}

/// True when a call has reported an interruption, and can be made again.
fn is_interrupted(registers: &Registers) -> bool {
    registers.rax as i64 == -i64::from(libc::EINTR) && MADE_AGAIN.contains(&registers.system_call)
}

/// True when a signal is pending that the thread does not block: then that signal has interrupted it.
fn has_pending_signal(tid: Tid) -> bool {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).unwrap_or_default();
    let mask = |name: &str| mask(&status, name);
    (mask("SigPnd") | mask("ShdPnd")) & !mask("SigBlk") & !mask("SigIgn") != 0
}

/// A set of signals in a thread's `status` file.
fn mask(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_does_is_read() {
        let waits = "232 0x5 0x7f00 0x40 0xffffffff 0x0 0x0 0x7ffe10 0x7f1234\n";
        assert_eq!(doing(waits), Doing::Waits { number: 232, second: 0x7f00, rsp: 0x7ffe10, rip: 0x7f1234 });
        assert_eq!(doing("running\n"), Doing::Runs);
        assert_eq!(doing("-1 0x7ffe10 0x7f1234\n"), Doing::Runs);
    }

    #[test]
    fn calls_are_made_again_that_only_we_have_interrupted() {
        let epoll = Registers { rax: -4i64 as u64, system_call: 232, ..Registers::default() };
        assert!(is_interrupted(&epoll));
        // The kernel makes these again by itself, or nothing was interrupted.
        assert!(!is_interrupted(&Registers { rax: -512i64 as u64, ..epoll }));
        assert!(!is_interrupted(&Registers { system_call: u64::MAX, ..epoll }));
        // `pause` is over only when a handler has run.
        assert!(!is_interrupted(&Registers { system_call: 34, ..epoll }));
    }

    #[test]
    fn code_is_found_by_the_name_of_its_file() {
        let maps = "1000-2000 r-xp 00000000 08:01 11    /lib/ld-linux-x86-64.so.2\n\
                    3000-4000 r--p 00000000 08:01 11    /lib/ld-linux-x86-64.so.2\n\
                    5000-6000 r-xp 00000000 08:01 12    /lib/libc.so.6\n";
        let loader = code_of(maps, |name| name.starts_with("ld-"));
        assert_eq!((loader.len(), loader[0].start, loader[0].end), (1, 0x1000, 0x2000));
        assert!(is_in(&code_of(maps, |_| true), 0x5fff) && !is_in(&code_of(maps, |_| true), 0x3000));
    }
}
