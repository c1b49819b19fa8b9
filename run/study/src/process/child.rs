//! One child process: held at the gate, released, watched, reaped.

use crate::error::{Doing, Error, Result};
use crate::process::descendants::Descendants;
use crate::process::forked::start_by_fork;
use crate::process::interrupt::Interrupts;
use crate::process::keeper;
use crate::process::keeper::{End, Wire};
use crate::process::launch;
use crate::process::own_file::own_file;
use crate::process::run::{On, Run, Stopped};
use crate::process::thread_placement::ThreadPlacement;
use lineup_prove::output::Output;
use lineup_prove::run::{Ending, Usage};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Seek;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// The destination of a child's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// Kept and handed back.
    Captured,
    /// The same, in memory: for messages that must not be lost when they report a full disk.
    Remembered,
    /// Standard output goes to ours, and standard error too.
    Ours,
    /// Standard output and standard error both go to our standard error.
    Shown,
    /// Standard output is read while the child runs, see [`Waiting::take_pipe`]; standard error is kept.
    Piped,
}

/// The grace period between a request to end and the kill.
const GRACE: Duration = Duration::from_secs(2);

/// The polling interval for a program that is to end early.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// The grace period for a program that is ended because its time is over or its client is done: it may have much to
/// write.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A child that is ready to become the program and waits for the word.
pub struct Waiting {
    /// The process between it and us, which it is a child of.
    keeper: Child,
    wire: Wire,
    /// The child, which leads a process group.
    group: Pid,
    /// Readable when the child has ended.
    ended: OwnedFd,
    used: Usage,
    captured: Option<(File, File)>,
    interrupts: Interrupts,
    run: Run,
    /// Places its threads on separate CPUs.
    apart: Option<ThreadPlacement>,
}

/// A child that has ended.
pub struct Finished {
    /// Its exit status or signal.
    pub ending: Ending,
    /// From the word to the end.
    pub wall_ns: u64,
    /// Its resource usage, without that before the release.
    pub usage: Usage,
    /// Its output; empty unless captured.
    pub stdout: Output,
    /// Its error output; empty unless captured.
    pub stderr: Output,
    /// The captured standard output itself.
    pub stdout_file: Option<File>,
    /// The reason why it was ended; `None` when it ended by itself.
    pub stopped: Option<Stopped>,
    /// Processes that still ran when the first had ended, and were ended.
    pub left_running: usize,
    /// Its client's result, when it had one. `wall_ns` is then the client's time, from its start to its end.
    pub client: Option<Client>,
}

/// A child's course, known before it is reaped.
pub(crate) struct Course {
    /// From the word to the end.
    pub(crate) wall: Duration,
    /// The reason to end it early.
    pub(crate) stopped: Option<Stopped>,
    /// Processes that it left running, and that were ended.
    pub(crate) left_running: usize,
    /// Its client's result.
    pub(crate) client: Option<Finished>,
}

/// A client's result.
pub struct Client {
    /// Its exit status or signal.
    pub ending: Ending,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
}

impl Waiting {
    /// Starts a child in its own process group and waits until it is at the gate.
    pub fn start(run: &Run, streams: Streams, interrupts: &Interrupts) -> Result<Self> {
        interrupts.check()?;
        let (control, theirs) = UnixStream::pair().doing("a control socket")?;
        let guardian = interrupts.guardian().doing("starting the process that cleans up after us")?;
        let mut command = launcher(run, guardian.mark())?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let captured = match streams {
            Streams::Captured | Streams::Remembered => {
                let files = kept_output(streams)?;
                command.stdout(also(&files.0)?).stderr(also(&files.1)?);
                Some(files)
            }
            Streams::Ours => {
                command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
                None
            }
            Streams::Shown => {
                command.stdout(std::io::stderr()).stderr(std::io::stderr());
                None
            }
            Streams::Piped => {
                let files = kept_output(streams)?;
                command.stdout(Stdio::piped()).stderr(also(&files.1)?);
                Some(files)
            }
        };
        // A group of its own: the terminal's Ctrl-C is not for it.
        let mut keeper =
            start_by_fork(&mut command).process_group(0).spawn().doing("starting a child process")?;
        // Our copy of the other end must go, or its death would not be seen on the socket.
        drop(command);
        let wire = Wire::new(control);
        let (group, used) = match read_report(&wire) {
            Ok(report) => report,
            Err(error) => {
                wire.close();
                let _ = keeper.wait();
                interrupts.check()?;
                return Err(error);
            }
        };
        interrupts.entrust(group);
        let ended = pidfd_open(group, PidfdFlags::empty()).doing("watching the program");
        Ok(Self {
            keeper,
            wire,
            group,
            ended: ended?,
            used,
            captured,
            interrupts: interrupts.clone(),
            run: run.clone(),
            apart: None,
        })
    }

    /// The child's process id.
    pub fn pid(&self) -> Pid {
        self.group
    }

    /// Releases the child and does not wait.
    pub fn release(&mut self) -> Result<()> {
        self.wire.send(launch::ALONE).doing("releasing the child")?;
        if let On::EachOnItsOwn(cpus) = &self.run.on {
            self.apart = Some(ThreadPlacement::begin(self.group, cpus.clone()));
        }
        Ok(())
    }

    /// Releases a child that a tracer is attached to, and does not wait.
    pub(crate) fn release_observed(&mut self) -> Result<()> {
        let is_driven = self.run.drive.is_some();
        let word = if is_driven { launch::OBSERVED_WITH_CLIENT } else { launch::OBSERVED };
        self.wire.send(word).doing("releasing the child")
    }

    /// The files that its standard output and standard error go to; `None` when they are not kept.
    pub(crate) fn captured(&self) -> std::io::Result<Option<[File; 2]>> {
        let Some((stdout, stderr)) = &self.captured else { return Ok(None) };
        Ok(Some([stdout.try_clone()?, stderr.try_clone()?]))
    }

    /// True when the child is gone.
    pub fn has_ended(&self) -> Result<bool> {
        keeper::is_readable(&self.ended, Some(Duration::ZERO)).doing("looking after a child process")
    }

    /// Ends the child and its descendants: with SIGTERM first, so that it can clean up after itself.
    pub fn end(&mut self) {
        self.descendants().signal(Signal::TERM);
        // Without a keeper there is nothing to wait for.
        let _ = self.wire.is_nothing_left(GRACE);
        self.close();
        let _ = self.keeper.wait();
    }

    /// The child's standard output, once, when it is piped.
    pub fn take_pipe(&mut self) -> Option<ChildStdout> {
        self.keeper.stdout.take()
    }

    /// Reaps a child that took this course and has ended, or ends it when it was stopped.
    pub(crate) fn conclude(mut self, course: Course) -> Result<Finished> {
        let Course { wall, stopped, left_running, client } = course;
        let wall_ns = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
        let wall_ns = client.as_ref().map_or(wall_ns, |client| client.wall_ns);
        if stopped.is_some() {
            self.stop()?;
        }
        drop(self.apart.take());
        self.close();
        let end = self.wire.end();
        let _ = self.keeper.wait();
        self.interrupts.check()?;
        let (complaint, End { status, usage }) = end.doing("following the program to its end")?;
        if !complaint.is_empty() {
            return Err(Error::Start(complaint));
        }
        let ending = match (status.code(), status.signal()) {
            (None, _) if stopped.is_some() => Ending::Stopped,
            (Some(status), _) => Ending::Exited(status),
            (None, signal) => Ending::Killed(signal.unwrap_or_default()),
        };
        let mut usage = minus(usage, self.used);
        let floor = self.used.peak_memory_bytes.unwrap_or_default();
        usage.peak_memory_bytes = usage.peak_memory_bytes.filter(|peak| *peak > floor);
        let (stdout, stderr, stdout_file) = self.take_output()?;
        let client = client.map(|client| Client {
            ending: client.ending,
            stdout: client.stdout,
            stderr: client.stderr,
        });
        Ok(Finished { ending, wall_ns, usage, stdout, stderr, stdout_file, stopped, left_running, client })
    }

    /// Waits for the end, without reaping the child; false when the deadline came first.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Result<bool> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        keeper::is_readable(&self.ended, left).doing("waiting for the program")
    }

    /// Waits up to `time`; true when the program and all its descendants have ended.
    pub(crate) fn is_over(&self, time: Duration) -> Result<bool> {
        self.wire.is_nothing_left(time).doing("waiting for the program and what came from it")
    }

    /// Ends the program and its descendants: with SIGTERM first, so that they can write their last output.
    pub(crate) fn stop(&self) -> Result<()> {
        self.descendants().signal(Signal::TERM);
        if !self.is_over(LAST_WORDS)? {
            self.close();
            self.wait_until(None)?;
        }
        Ok(())
    }

    /// All its processes.
    pub(crate) fn descendants(&self) -> Descendants {
        Descendants::of(Pid::from_child(&self.keeper))
    }

    /// The run and the interrupts this child was started with.
    pub(crate) fn origin(&self) -> (&Run, &Interrupts) {
        (&self.run, &self.interrupts)
    }

    /// Ends the processes that still run, and reaps the child.
    fn close(&self) {
        // Before that, for as long as the child is not reaped the group's number is its own.
        self.interrupts.release(self.group);
        self.wire.close();
    }

    fn take_output(&mut self) -> Result<(Output, Output, Option<File>)> {
        let Some((mut stdout, mut stderr)) = self.captured.take() else {
            return Ok((Output::of(b""), Output::of(b""), None));
        };
        let outputs = (read_output(&mut stdout)?, read_output(&mut stderr)?);
        Ok((outputs.0, outputs.1, Some(stdout)))
    }
}

impl Drop for Waiting {
    /// A child must not stay behind.
    fn drop(&mut self) {
        if let Ok(None) = self.keeper.try_wait() {
            self.end();
        }
    }
}

/// Files for a child's output.
fn kept_output(streams: Streams) -> Result<(File, File)> {
    let file = || match streams {
        Streams::Remembered => {
            memfd_create("output", MemfdFlags::CLOEXEC).map(File::from).map_err(Into::into)
        }
        _ => tempfile::tempfile(),
    };
    let file = || file().doing("making a file for the program's output");
    Ok((file()?, file()?))
}

fn also(file: &File) -> Result<File> {
    file.try_clone().doing("sharing the file for the program's output")
}

/// The content of an output file; rewinds the file first.
fn read_output(file: &mut File) -> Result<Output> {
    let read = file.rewind().and_then(|()| Output::read(file));
    read.and_then(|output| file.rewind().map(|()| output)).doing("reading the program's output")
}

/// A variable as `NAME=VALUE`.
fn variable(name: &OsStr, value: &OsStr) -> OsString {
    let mut both = name.to_owned();
    both.push("=");
    both.push(value);
    both
}

/// The command line that turns into the program, as a child of its keeper.
fn launcher(run: &Run, mark: (&str, &OsStr)) -> Result<Command> {
    let ourselves = own_file().doing("finding the lineup program itself")?;
    let mut command = Command::new(ourselves);
    command.env(mark.0, mark.1).arg(keeper::COMMAND).arg("--").arg("launch-child");
    // Only the program has them: an allocator that the loader puts before others must not run in its launcher.
    for (name, value) in &run.environment {
        command.arg("--variable").arg(variable(name, value));
    }
    if let On::These(cpus) = &run.on {
        let list: Vec<String> = cpus.iter().map(u32::to_string).collect();
        command.arg("--cpus").arg(list.join(","));
    }
    if run.fixed_addresses {
        command.arg("--fixed-addresses");
    }
    command.arg("--stdin").arg(run.input.path());
    if let Some(placed) = &run.placed {
        command.arg("--copy").arg(&placed.copy).arg("--original").arg(&placed.original);
    }
    if let Some(called) = &run.called {
        command.arg("--called").arg(called);
    }
    command.arg("--").args(&run.command);
    if let Some(directory) = &run.directory {
        command.current_dir(directory);
    }
    Ok(command)
}

/// The child's number and its usage until now, or the reason why its start failed.
fn read_report(wire: &Wire) -> Result<(Pid, Usage)> {
    let line = wire.line().doing("waiting for the child")?;
    parse_report(&line).ok_or_else(|| match line.trim() {
        "" => Error::Start("the child process ended before it could start the program".into()),
        complaint => Error::Start(complaint.to_owned()),
    })
}

/// The launcher's line of numbers.
fn parse_report(line: &str) -> Option<(Pid, Usage)> {
    let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [pid, user, system, minor, major, voluntary, involuntary, peak] = *numbers.as_slice() else {
        return None;
    };
    let used = Usage {
        user_ns: user.saturating_mul(1000),
        system_ns: system.saturating_mul(1000),
        minor_faults: minor,
        major_faults: major,
        voluntary_switches: voluntary,
        involuntary_switches: involuntary,
        peak_memory_bytes: Some(peak.saturating_mul(1024)),
    };
    Some((Pid::from_raw(i32::try_from(pid).ok()?)?, used))
}

fn minus(total: Usage, part: Usage) -> Usage {
    Usage {
        user_ns: total.user_ns.saturating_sub(part.user_ns),
        system_ns: total.system_ns.saturating_sub(part.system_ns),
        minor_faults: total.minor_faults.saturating_sub(part.minor_faults),
        major_faults: total.major_faults.saturating_sub(part.major_faults),
        voluntary_switches: total.voluntary_switches.saturating_sub(part.voluntary_switches),
        involuntary_switches: total.involuntary_switches.saturating_sub(part.involuntary_switches),
        peak_memory_bytes: total.peak_memory_bytes,
    }
}
