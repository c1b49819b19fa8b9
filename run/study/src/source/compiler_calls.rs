//! The compiler calls of a build: every program that it starts is looked at, whichever way it is found.
//!
//! The build is traced: the kernel stops each of its processes only when it becomes another program, so that a build
//! takes hardly longer. The thread that starts the build is the tracer; when it ends, so does the tracing.

use crate::error::{Error, Result};
use crate::process::child::{Finished, Waiting};
use lineup_sources::CompileCommand;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::path::Path;
use std::time::Instant;

/// Runs a build that waits for its release, and adds its compiler calls to `calls`; none where tracing is forbidden.
///
/// A single thread traces. The kernel reports a stop of a traced process to any thread that waits for it, and only this
/// thread can handle it. Processes that the build leaves running are traced no more when the thread ends.
pub(crate) fn noted(mut waiting: Waiting, calls: &mut Vec<CompileCommand>) -> Result<Finished> {
    let started = std::thread::scope(|scope| scope.spawn(|| traced(&mut waiting, calls)).join())
        .map_err(|_| Error::Start("the thread that traces the build ended early".into()))??;
    waiting.finish(started)
}

/// Releases a build and follows it until it ends; returns the time of its start. Processes that it leaves behind are
/// traced until this thread ends.
fn traced(waiting: &mut Waiting, calls: &mut Vec<CompileCommand>) -> Result<Instant> {
    let build = Pid::from_raw(waiting.pid().as_raw_nonzero().get());
    let options = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE;
    let is_traced = ptrace::seize(build, options).is_ok();
    let started = Instant::now();
    waiting.release()?;
    if is_traced {
        calls.extend(follow(build));
    }
    Ok(started)
}

/// Lets the build and all its processes run until it ends. Its end reaches its starter once it was seen here.
fn follow(build: Pid) -> Vec<CompileCommand> {
    let mut calls = Vec::new();
    // Processes that this thread traces, not the children of others.
    let which = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        match waitpid(None, Some(which)) {
            Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) if pid == build => return calls,
            Ok(WaitStatus::PtraceEvent(pid, _, event)) => {
                if event == ptrace::Event::PTRACE_EVENT_EXEC as i32 {
                    calls.extend(call_of(pid));
                }
                go_on(pid, None);
            }
            // A signal on its way to the process is passed on.
            Ok(WaitStatus::Stopped(pid, signal)) => go_on(pid, Some(signal)),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return calls,
        }
    }
}

fn go_on(pid: Pid, signal: Option<Signal>) {
    // It fails only when the process is gone already.
    let _ = ptrace::cont(pid, signal);
}

/// The compiler call that a process has just become, if it is one.
fn call_of(pid: Pid) -> Option<CompileCommand> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|&byte| byte == 0);
    let mut arguments: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    // The last argument ends in a zero byte, too.
    arguments.pop();
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let arguments = arguments.into_iter().flat_map(|argument| from_file(&directory, argument)).collect();
    Some(CompileCommand::called(directory, arguments)).filter(CompileCommand::is_compiler)
}

/// The arguments in `@FILE`, which the build may take away later.
fn from_file(directory: &Path, argument: String) -> Vec<String> {
    let text = argument.strip_prefix('@').and_then(|file| std::fs::read_to_string(directory.join(file)).ok());
    text.and_then(|text| shell_words::split(&text).ok()).unwrap_or_else(|| vec![argument])
}
