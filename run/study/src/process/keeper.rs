//! A small process between Lineup and each program that it runs. Processes that the program leaves behind become its
//! children: the kernel gives every orphan to the nearest ancestor that asks for them (a *child subreaper*), whatever
//! group, session or environment the orphan has. So "nothing is left" is the kernel's answer, not the result of a
//! search through `/proc`.
//!
//! It sends two messages over the socket by which programs are started. The first is a zero byte once nothing is left.
//! The second, after Lineup has closed its end, is a line with the program's end and the usage of all processes. When
//! Lineup's end closes, the keeper ends the processes that still run: also when Lineup was killed.

use crate::error::{Doing, Error, Result};
use crate::process::descendants::{Descendants, KILLED};
use crate::process::forked::start_by_fork;
use crate::process::guardian;
use crate::process::own_file::own_file;
use lineup_prove::run::Usage;
use nix::sys::resource::{UsageWho, getrusage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, getpid, pidfd_open, set_child_subreaper, waitid,
};
use std::cell::RefCell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wait4::Wait4;

/// The hidden command of the `lineup` program that [`serve`] stands behind.
pub const COMMAND: &str = "keep-child";

/// The keeper's message when the program and all its descendants have ended.
const NOTHING_IS_LEFT: u8 = 0;

/// The interval between searches for processes to end.
const AGAIN: Duration = Duration::from_millis(5);

/// `__WNOTHREAD` of `wait.h`: children of the calling thread alone.
const OF_THIS_THREAD: u32 = 0x2000_0000;
/// `__WALL` of `wait.h`: also children whose end sends another signal than SIGCHLD.
const OF_EVERY_KIND: u32 = 0x4000_0000;

/// Starts the program's launcher, `command` of this program, and keeps its descendants.
/// Standard input is the socket.
///
/// # Errors
/// When the system refuses a needed resource.
pub fn serve(command: &[OsString]) -> Result<()> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().doing("the control socket")?;
    let mut socket = UnixStream::from(socket);
    let ended = Keeper::start(command).and_then(|keeper| keeper.keep(&mut socket));
    // The process that started us may be gone; then nobody needs the result.
    let _ = match &ended {
        Ok(end) => socket.write_all(end.to_line().as_bytes()),
        Err(error) => socket.write_all(crate::error::in_full(error).as_bytes()),
    };
    ended.map(|_| ())
}

/// The keeper's side.
struct Keeper {
    /// Readable when a child has ended.
    ended: UnixStream,
    program: Child,
    /// Readable when the program has ended.
    program_ended: OwnedFd,
    descendants: Descendants,
}

impl Keeper {
    fn start(command: &[OsString]) -> Result<Self> {
        set_child_subreaper(Some(getpid())).doing("asking for the orphans of the program")?;
        let (ended, ends) = UnixStream::pair().doing("a socket for the ends of children")?;
        ended.set_nonblocking(true).doing("a socket for the ends of children")?;
        signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, ends)
            .doing("watching for the ends of children")?;
        let program = start_by_another_thread(command)?;
        let pid = Pid::from_child(&program);
        let program_ended = pidfd_open(pid, PidfdFlags::empty()).doing("watching the program")?;
        // A reader of the program's output waits until nobody can write any more.
        let nowhere = File::options().write(true).open("/dev/null").doing("opening /dev/null")?;
        rustix::stdio::dup2_stdout(&nowhere).doing("giving up standard output")?;
        rustix::stdio::dup2_stderr(&nowhere).doing("giving up standard error")?;
        Ok(Keeper { ended, program, program_ended, descendants: Descendants::of(getpid()) })
    }

    /// Until the other end of the socket is closed and nothing is left.
    fn keep(mut self, socket: &mut UnixStream) -> Result<End> {
        let mut is_said = false;
        let mut killing: Option<Instant> = None;
        loop {
            // In this order: the program's orphans are ours before its end can be seen.
            let is_nothing_left = self.has_program_ended()? && !has_orphans()?;
            if is_nothing_left && !is_said {
                is_said = true;
                let _ = socket.write_all(&[NOTHING_IS_LEFT]);
            }
            if let Some(since) = killing {
                if is_nothing_left || since.elapsed() >= KILLED {
                    break;
                }
                self.descendants.signal(Signal::KILL);
            }
            if self.wait(socket, killing.map(|_| AGAIN))? {
                killing.get_or_insert_with(Instant::now);
            }
        }
        if !is_said {
            let _ = socket.write_all(&[NOTHING_IS_LEFT]);
        }
        let program = self.program.wait4().doing("reaping the program")?;
        let peak_memory_bytes = Some(program.rusage.maxrss);
        Ok(End { status: program.status, usage: Usage { peak_memory_bytes, ..children_usage()? } })
    }

    fn has_program_ended(&self) -> Result<bool> {
        is_readable(&self.program_ended, Some(Duration::ZERO)).doing("watching the program")
    }

    /// Waits until a child has ended, at most for `time`; true when the other end of the socket is closed. It reads
    /// nothing, since the program's launcher gets its commands over the same socket.
    fn wait(&mut self, socket: &UnixStream, time: Option<Duration>) -> Result<bool> {
        let timeout = time.and_then(|time| Timespec::try_from(time).ok());
        let mut events =
            [PollFd::new(&self.ended, PollFlags::IN), PollFd::new(socket, PollFlags::RDHUP | PollFlags::HUP)];
        // Once the other end is closed, it always is.
        let watched = if time.is_some() { &mut events[..1] } else { &mut events[..] };
        match poll(watched, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error).doing("waiting for the program"),
        }
        let is_closed = !events[1].revents().is_empty();
        let mut heard = [0; 64];
        while self.ended.read(&mut heard).is_ok_and(|count| count > 0) {}
        Ok(is_closed)
    }
}

/// Starts the launcher as a child of a thread that lives as long as this process. The kernel gives orphans to the first
/// thread, and `wait` tells one thread's children from another's. So the program can stay unreaped, and keep its
/// number, while orphans are waited for.
fn start_by_another_thread(command: &[OsString]) -> Result<Child> {
    let ourselves = own_file().doing("finding the lineup program itself")?;
    let mut launcher = Command::new(ourselves);
    start_by_fork(&mut launcher).args(command).env_remove(guardian::MARK).process_group(0);
    let (tell, started) = mpsc::channel();
    let start = move || {
        // The receiver waits.
        let _ = tell.send(launcher.spawn());
        drop(launcher);
        loop {
            // The program ends with the thread that it is a child of.
            std::thread::park();
        }
    };
    std::thread::Builder::new().name("parent".into()).spawn(start).doing("starting a thread")?;
    let started =
        started.recv().map_err(|_| Error::Start("the thread that starts the program ended".into()))?;
    started.doing("starting a child process")
}

/// Reaps ended orphans; true when others still run.
fn has_orphans() -> Result<bool> {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let options = options | WaitIdOptions::from_bits_retain(OF_THIS_THREAD | OF_EVERY_KIND);
    loop {
        match waitid(WaitId::All, options) {
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) => return Ok(true),
            Err(rustix::io::Errno::CHILD) => return Ok(false),
            Err(error) => return Err(error).doing("waiting for what the program left"),
        }
    }
}

/// A program's end, and the resource usage of it and its descendants.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    pub(crate) usage: Usage,
}

impl End {
    fn to_line(&self) -> String {
        let Usage { user_ns, system_ns, minor_faults, major_faults, .. } = self.usage;
        let Usage { voluntary_switches, involuntary_switches, peak_memory_bytes, .. } = self.usage;
        format!(
            "{} {user_ns} {system_ns} {minor_faults} {major_faults} {voluntary_switches} {involuntary_switches} {}",
            self.status.into_raw(),
            peak_memory_bytes.unwrap_or_default()
        )
    }

    fn parse(line: &str) -> Option<End> {
        let (status, numbers) = line.split_once(' ')?;
        let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [user_ns, system_ns, minor_faults, major_faults, voluntary_switches, involuntary_switches, peak] =
            *numbers.as_slice()
        else {
            return None;
        };
        let usage = Usage {
            user_ns,
            system_ns,
            minor_faults,
            major_faults,
            voluntary_switches,
            involuntary_switches,
            peak_memory_bytes: Some(peak),
        };
        Some(End { status: ExitStatus::from_raw(status.parse().ok()?), usage })
    }
}

/// The resource usage of all children reaped so far.
fn children_usage() -> Result<Usage> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).doing("getrusage")?;
    let count = |value: i64| u64::try_from(value).unwrap_or_default();
    let ns = |time: nix::sys::time::TimeVal| count(time.tv_sec() * 1_000_000_000 + time.tv_usec() * 1000);
    Ok(Usage {
        user_ns: ns(usage.user_time()),
        system_ns: ns(usage.system_time()),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        peak_memory_bytes: None,
    })
}

/// Waits until there is something to read, at most for `time`, or without a limit.
pub(crate) fn is_readable(file: &impl AsFd, time: Option<Duration>) -> rustix::io::Result<bool> {
    let deadline = time.map(|time| Instant::now() + time);
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A time that the kernel cannot express is treated as no limit.
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut [PollFd::new(file, PollFlags::IN)], timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error),
            Ok(0) if left.is_none_or(|left| !left.is_zero()) => {}
            Ok(ready) => return Ok(ready > 0),
        }
    }
}

/// Our end of the socket to a program's launcher and its keeper.
pub(crate) struct Wire {
    socket: UnixStream,
    /// Bytes that were received and not yet consumed.
    heard: RefCell<Vec<u8>>,
}

impl Wire {
    pub(crate) fn new(socket: UnixStream) -> Self {
        Wire { socket, heard: RefCell::default() }
    }

    /// Sends a word to the launcher.
    pub(crate) fn send(&self, word: u8) -> std::io::Result<()> {
        (&self.socket).write_all(&[word])
    }

    /// The launcher's line, or its complaint when it ended before.
    pub(crate) fn line(&self) -> std::io::Result<String> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | &NOTHING_IS_LEFT);
        while !self.heard.borrow().iter().any(is_end) && self.hear()? {}
        let mut heard = self.heard.borrow_mut();
        let length = heard.iter().position(is_end).unwrap_or(heard.len());
        let line = String::from_utf8_lossy(&heard[..length]).into_owned();
        // The byte that says that nothing is left must stay for a later read.
        let is_line = heard.get(length) == Some(&b'\n');
        heard.drain(..length + usize::from(is_line));
        Ok(line)
    }

    /// True when the program and all its descendants have ended; waits at most for `time`.
    pub(crate) fn is_nothing_left(&self, time: Duration) -> std::io::Result<bool> {
        let deadline = Instant::now() + time;
        loop {
            if self.heard.borrow().contains(&NOTHING_IS_LEFT) {
                return Ok(true);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if !is_readable(&self.socket, Some(left))? {
                return Ok(false);
            }
            if !self.hear()? {
                return Err(gone());
            }
        }
    }

    /// Makes the keeper end the processes that still run, and reap them.
    pub(crate) fn close(&self) {
        // A keeper that is gone has nothing to end.
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// The launcher's complaint, if it could not start the program, and the end; waits until the socket is closed.
    pub(crate) fn end(&self) -> std::io::Result<(String, End)> {
        while self.hear()? {}
        let heard = self.heard.borrow();
        let (complaint, end) = match heard.iter().position(|byte| *byte == NOTHING_IS_LEFT) {
            Some(at) => (&heard[..at], &heard[at + 1..]),
            None => (&heard[..], &[][..]),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match End::parse(&text(end)) {
            Some(end) => Ok((text(complaint), end)),
            None if end.is_empty() => Err(gone()),
            None => Err(std::io::Error::other(text(end))),
        }
    }

    /// Waits for more bytes; false when there will be no more.
    fn hear(&self) -> std::io::Result<bool> {
        let mut bytes = [0; 4096];
        loop {
            match (&self.socket).read(&mut bytes) {
                Ok(count) => {
                    self.heard.borrow_mut().extend(&bytes[..count]);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // It was killed before it had read all.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }
}

fn gone() -> std::io::Error {
    std::io::Error::other(
        "the process that keeps it (`lineup keep-child`) was killed, and the program with it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_what_was_said_of_it() {
        let usage = Usage { user_ns: 5, major_faults: 7, peak_memory_bytes: Some(9), ..Usage::default() };
        let end = End { status: ExitStatus::from_raw(0x0700), usage };
        let read = End::parse(&end.to_line()).unwrap();
        assert_eq!((read.status.code(), read.usage), (Some(7), usage));
        assert!(End::parse("").is_none());
        assert!(End::parse("1 2 3").is_none());
    }

    #[test]
    fn what_is_said_comes_in_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let wire = Wire::new(ours);
        theirs.write_all(b"1 2 3\ncannot run it").unwrap();
        assert_eq!(wire.line().unwrap(), "1 2 3");
        assert!(!wire.is_nothing_left(Duration::ZERO).unwrap());
        theirs.write_all(&[NOTHING_IS_LEFT]).unwrap();
        assert!(wire.is_nothing_left(Duration::from_secs(60)).unwrap());
        theirs.write_all(b"256 1 2 3 4 5 6 7").unwrap();
        drop(theirs);
        let (complaint, end) = wire.end().unwrap();
        assert_eq!((complaint.as_str(), end.status.code()), ("cannot run it", Some(1)));
    }

    #[test]
    fn a_launcher_that_ends_early_is_heard() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let wire = Wire::new(ours);
        theirs.write_all(b"no such folder\0").unwrap();
        assert_eq!(wire.line().unwrap(), "no such folder");
        assert!(wire.is_nothing_left(Duration::ZERO).unwrap());
        drop(theirs);
        assert!(wire.end().is_err(), "the keeper is gone");
    }
}
