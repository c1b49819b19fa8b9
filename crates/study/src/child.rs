//! One child process: held at the gate, released, watched, reaped.

use crate::apart::Apart;
use crate::descendants::{Descendants, Mark};
use crate::error::{Doing, Error, Result};
use crate::interrupt::Interrupts;
use crate::launch;
use crate::run::{On, Run, Stopped};
use lineup_prove::output::Output;
use lineup_prove::run::{Ending, Usage};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};
use wait4::Wait4;

/// Where a child's output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Streams {
    /// Kept and handed back.
    Captured,
    /// The same, in memory: for words that must not be lost where a full disk is what they complain about.
    Remembered,
    /// Standard output goes to ours, and standard error too.
    Ours,
    /// Standard output and standard error both go to our standard error.
    Shown,
    /// Standard output is read while the child runs, see [`Waiting::take_pipe`]; standard error is kept.
    Piped,
}

/// How long a child that is told to end may take.
const GRACE: Duration = Duration::from_secs(2);

/// How often a program is looked at that is to end early.
pub(crate) const LOOK: Duration = Duration::from_millis(10);

/// How long a program may take that is ended because its time is over or its client is done: it may have much to write.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// A child that is ready to become the program and waits for the word.
pub struct Waiting {
    child: Child,
    group: Pid,
    descendants: Descendants,
    control: UnixStream,
    used: Usage,
    captured: Option<(File, File)>,
    interrupts: Interrupts,
    accounted: Usage,
    run: Run,
    /// What keeps its threads apart.
    apart: Option<Apart>,
}

/// A child that has ended.
pub struct Finished {
    /// How it ended.
    pub ending: Ending,
    /// From the word to the end.
    pub wall_ns: u64,
    /// What it used, without what came before the word.
    pub usage: Usage,
    /// Its output; empty unless captured.
    pub stdout: Output,
    /// Its error output; empty unless captured.
    pub stderr: Output,
    /// The captured standard output itself.
    pub stdout_file: Option<File>,
    /// Why it was ended, when it did not end by itself.
    pub stopped: Option<Stopped>,
    /// Processes that still ran when the first had ended, and were ended.
    pub left_running: usize,
    /// What its client did, when it had one. `wall_ns` is then the client's time, from its start to its end.
    pub client: Option<Client>,
}

/// What came of a child before it is reaped.
pub(crate) struct Course {
    /// From the word to the end.
    pub(crate) wall: Duration,
    /// Why it is to be ended.
    pub(crate) stopped: Option<Stopped>,
    /// Processes that it left running, and that were ended.
    pub(crate) left_running: usize,
    /// What its client did.
    pub(crate) client: Option<Finished>,
}

/// What a client did.
pub struct Client {
    /// How it ended.
    pub ending: Ending,
    /// What it printed.
    pub stdout: Output,
    /// What it complained about.
    pub stderr: Output,
}

impl Waiting {
    /// Starts a child in its own process group and waits until it is at the gate.
    pub fn start(run: &Run, streams: Streams, interrupts: &Interrupts) -> Result<Self> {
        interrupts.check()?;
        let (control, theirs) = UnixStream::pair().doing("a control socket")?;
        let mut command = launcher(run)?;
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let guardian = interrupts.guardian().doing("starting the process that cleans up after us")?;
        let mark = Mark::new(guardian.mark());
        let (name, value) = mark.variable();
        command.env(name, value);
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
        let accounted = children_usage()?;
        let child = command.process_group(0).spawn().doing("starting a child process")?;
        // Our copy of the child's end must go, or its death would not be seen on the socket.
        drop(command);
        let group = Pid::from_child(&child);
        interrupts.entrust(group);
        let mut waiting = Self {
            child,
            group,
            descendants: Descendants::new(group, mark),
            control,
            used: Usage::default(),
            captured,
            interrupts: interrupts.clone(),
            accounted,
            run: run.clone(),
            apart: None,
        };
        waiting.read_report()?;
        Ok(waiting)
    }

    /// The child's process id.
    pub fn pid(&self) -> Pid {
        self.group
    }

    /// Gives the word and does not wait.
    pub fn release(&mut self) -> Result<()> {
        self.control.write_all(b"\n").doing("releasing the child")?;
        if let On::EachOnItsOwn(cpus) = &self.run.on {
            self.apart = Some(Apart::begin(self.group, cpus.clone()));
        }
        Ok(())
    }

    /// Gives the word to a child that a tracer is attached to, and does not wait.
    pub(crate) fn release_observed(&mut self) -> Result<()> {
        self.control.write_all(&[launch::OBSERVED]).doing("releasing the child")
    }

    /// The files that its standard output and standard error go to; `None` when they are not kept.
    pub(crate) fn captured(&self) -> std::io::Result<Option<[File; 2]>> {
        let Some((stdout, stderr)) = &self.captured else { return Ok(None) };
        Ok(Some([stdout.try_clone()?, stderr.try_clone()?]))
    }

    /// True when the child is gone.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait().doing("looking after a child process")?.is_some())
    }

    /// Ends the child and its group: kindly first, so that it can clean up after itself.
    pub fn end(&mut self) {
        self.descendants.signal(Signal::TERM);
        let deadline = Instant::now() + GRACE;
        // Not reaped before all of its group are gone: the group's number stays its own.
        while !self.descendants.living().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.descendants.kill();
        // It is gone by now.
        let _ = self.child.wait();
        self.interrupts.release(self.group);
    }

    /// The child's standard output, once, when it is piped.
    pub fn take_pipe(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
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
        let ended = self.reap()?;
        let mut complaint = String::new();
        self.control.read_to_string(&mut complaint).doing("reading from the child")?;
        self.interrupts.check()?;
        if !complaint.is_empty() {
            return Err(Error::Start(complaint));
        }
        let ending = match (ended.status.code(), ended.status.signal()) {
            (None, _) if stopped.is_some() => Ending::Stopped,
            (Some(status), _) => Ending::Exited(status),
            (None, signal) => Ending::Killed(signal.unwrap_or_default()),
        };
        let mut usage = minus(minus(children_usage()?, self.accounted), self.used);
        let floor = self.used.peak_memory_bytes.unwrap_or_default();
        usage.peak_memory_bytes = Some(ended.rusage.maxrss).filter(|peak| *peak > floor);
        let (stdout, stderr, stdout_file) = self.take_output()?;
        let client = client.map(|client| Client {
            ending: client.ending,
            stdout: client.stdout,
            stderr: client.stderr,
        });
        Ok(Finished { ending, wall_ns, usage, stdout, stderr, stdout_file, stopped, left_running, client })
    }

    /// Reads what the child used until now, or what stopped it.
    fn read_report(&mut self) -> Result<()> {
        let mut line = String::new();
        let mut reader = BufReader::new(&self.control);
        reader.read_line(&mut line).doing("waiting for the child")?;
        self.interrupts.check()?;
        self.used = parse_report(&line).ok_or_else(|| match line.trim() {
            "" => Error::Start("the child process ended before it could start the program".into()),
            complaint => Error::Start(complaint.to_owned()),
        })?;
        Ok(())
    }

    /// Waits for the end, which is left to be reaped; false when the deadline came first.
    pub(crate) fn wait_until(&self, deadline: Option<Instant>) -> Result<bool> {
        // Not by `waitid`: while a tracer of ours is attached, that would take the stops that are meant for the tracer.
        let child = pidfd_open(self.group, PidfdFlags::empty()).doing("watching the program")?;
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // A time that the kernel cannot express never comes.
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            match poll(&mut [PollFd::new(&child, PollFlags::IN)], timeout.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error).doing("waiting for the program"),
                Ok(0) if left.is_none_or(|left| !left.is_zero()) => {}
                Ok(ended) => return Ok(ended > 0),
            }
        }
    }

    /// Whether it has ended, and all that came from it; waits so long for that.
    pub(crate) fn is_over(&self, time: Duration) -> Result<bool> {
        if !self.wait_until(Some(Instant::now() + time))? {
            return Ok(false);
        }
        if self.descendants.living().is_empty() {
            return Ok(true);
        }
        std::thread::sleep(time);
        Ok(false)
    }

    /// Ends the program and all that came from it, and leaves it to be reaped: kindly first, so that they can say their
    /// last words.
    pub(crate) fn stop(&self) -> Result<()> {
        self.descendants.signal(Signal::TERM);
        let deadline = Instant::now() + LAST_WORDS;
        while !self.is_over(LOOK)? && Instant::now() < deadline {}
        self.descendants.kill();
        self.wait_until(None)?;
        Ok(())
    }

    /// All its processes.
    pub(crate) fn descendants(&self) -> &Descendants {
        &self.descendants
    }

    /// What this child was started from.
    pub(crate) fn origin(&self) -> (&Run, &Interrupts) {
        (&self.run, &self.interrupts)
    }

    fn reap(&mut self) -> Result<wait4::ResUse> {
        self.interrupts.release(self.group);
        // The leader is not yet reaped, so the group's number cannot have been given to another.
        // No process left is the normal case.
        self.descendants.kill();
        self.child.wait4().doing("reaping the program")
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
        if let Ok(None) = self.child.try_wait() {
            self.end();
        }
    }
}

/// Files for what a child prints.
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

/// What a file of output holds; the file stands at its start again.
fn read_output(file: &mut File) -> Result<Output> {
    let read = file.rewind().and_then(|()| Output::read(file));
    read.and_then(|output| file.rewind().map(|()| output)).doing("reading the program's output")
}

/// The command line that turns into the program.
fn launcher(run: &Run) -> Result<Command> {
    let ourselves = std::env::current_exe().doing("finding the lineup program itself")?;
    let mut command = Command::new(ourselves);
    command.arg("launch-child");
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
    command.arg("--").args(&run.command);
    if let Some(directory) = &run.directory {
        command.current_dir(directory);
    }
    command.envs(run.environment.iter().map(|(name, value)| (name, value)));
    Ok(command)
}

/// The launcher's line of numbers.
fn parse_report(line: &str) -> Option<Usage> {
    let numbers: Vec<u64> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    let [user, system, minor, major, voluntary, involuntary, peak] = *numbers.as_slice() else {
        return None;
    };
    Some(Usage {
        user_ns: user.saturating_mul(1000),
        system_ns: system.saturating_mul(1000),
        minor_faults: minor,
        major_faults: major,
        voluntary_switches: voluntary,
        involuntary_switches: involuntary,
        peak_memory_bytes: Some(peak.saturating_mul(1024)),
    })
}

/// What all children reaped so far used.
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
