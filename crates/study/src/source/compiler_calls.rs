//! Which compiler calls a build makes: every program that it starts is looked at, however it finds it.
//!
//! The build is traced: the kernel stops each of its processes when it becomes another program, and only then, so that
//! a build takes hardly longer. The thread that starts it is the tracer; when it ends, so does the tracing.

use anyhow::{Context, Result, anyhow};
use lineup_sources::CompileCommand;
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

/// How a traced build ended.
pub(crate) struct Traced {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// The compiler calls; empty where tracing is forbidden.
    pub(crate) calls: Vec<CompileCommand>,
}

/// Waits for a line, so that the tracer is there before the build starts anything.
const GATE: &str = r#"read -r go && exec sh -c "$1" </dev/null"#;

/// Runs a shell command in a folder and notes the compiler calls.
pub(crate) fn run(build: &str, folder: &Path) -> Result<Traced> {
    std::thread::scope(|scope| scope.spawn(|| run_here(build, folder)).join())
        .map_err(|_| anyhow!("the thread that traces the build ended early"))?
}

fn run_here(build: &str, folder: &Path) -> Result<Traced> {
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = Command::new("sh")
        .args(["-c", GATE, "sh", build])
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?)
        .spawn()
        .context("cannot run sh for the build")?;
    let pid = Pid::from_raw(i32::try_from(child.id()).context("the build's process id")?);
    let options = Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACECLONE;
    let is_traced = ptrace::seize(pid, options).is_ok();
    let mut gate = child.stdin.take().context("the build's gate")?;
    gate.write_all(b"\n").context("starting the build")?;
    drop(gate);
    let (status, calls) = match is_traced {
        true => follow(pid)?,
        false => (child.wait().context("waiting for the build")?, Vec::new()),
    };
    Ok(Traced { status, stdout: all_of(&mut stdout)?, stderr: all_of(&mut stderr)?, calls })
}

fn all_of(file: &mut File) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Lets the build and all its processes run until it ends.
fn follow(build: Pid) -> Result<(ExitStatus, Vec<CompileCommand>)> {
    let mut calls = Vec::new();
    // Children of this thread only: other threads wait for their own.
    let which = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    loop {
        match waitpid(None::<Pid>, Some(which)) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("waiting for the build"),
            Ok(WaitStatus::Exited(pid, code)) if pid == build => {
                return Ok((ExitStatus::from_raw(code << 8), calls));
            }
            Ok(WaitStatus::Signaled(pid, signal, _)) if pid == build => {
                return Ok((ExitStatus::from_raw(signal as i32), calls));
            }
            Ok(WaitStatus::PtraceEvent(pid, _, event)) => {
                if event == ptrace::Event::PTRACE_EVENT_EXEC as i32 {
                    calls.extend(call_of(pid));
                }
                go_on(pid, None);
            }
            // A signal on its way to the process is passed on.
            Ok(WaitStatus::Stopped(pid, signal)) => go_on(pid, Some(signal)),
            Ok(_) => {}
        }
    }
}

fn go_on(pid: Pid, signal: Option<Signal>) {
    // It fails only when the process is gone already.
    let _ = ptrace::cont(pid, signal);
}

/// What a process has just become, when that is a compiler.
fn call_of(pid: Pid) -> Option<CompileCommand> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let words = line.split(|&byte| byte == 0);
    let mut arguments: Vec<String> = words.map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    // The last argument ends in a zero byte, too.
    arguments.pop();
    let directory = std::fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    let arguments = arguments.into_iter().flat_map(|argument| from_file(&directory, argument)).collect();
    Some(CompileCommand { directory, arguments }).filter(CompileCommand::is_compiler)
}

/// The arguments in `@FILE`, which the build may take away later.
fn from_file(directory: &Path, argument: String) -> Vec<String> {
    let text = argument.strip_prefix('@').and_then(|file| std::fs::read_to_string(directory.join(file)).ok());
    text.and_then(|text| shell_words::split(&text).ok()).unwrap_or_else(|| vec![argument])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_seen_however_they_are_called() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.c"), "int a;\n").expect("writes");
        std::fs::create_dir(folder.path().join("sub")).expect("makes");
        std::fs::write(folder.path().join("sub/b.c"), "int b;\n").expect("writes");
        std::fs::write(folder.path().join("flags"), "-DX='1 2'").expect("writes");
        let build = "CC=/usr/bin/cc; $CC -c a.c && (cd sub && env cc @../flags -c b.c & wait) && echo done";
        let traced = run(build, folder.path()).expect("builds");
        assert!(traced.status.success(), "{}", String::from_utf8_lossy(&traced.stderr));
        assert_eq!(traced.stdout, b"done\n");
        let sources: Vec<String> = traced
            .calls
            .iter()
            .flat_map(|call| call.sources().map(str::to_string).collect::<Vec<_>>())
            .collect();
        assert_eq!(sources, ["a.c", "b.c"]);
        assert!(traced.calls[1].directory.ends_with("sub"));
        assert!(traced.calls[1].arguments.contains(&"-DX=1 2".to_string()));
    }

    #[test]
    fn a_build_that_fails_or_dies_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let failed = run("echo no >&2; exit 3", folder.path()).expect("runs");
        assert_eq!((failed.status.code(), failed.stderr.as_slice()), (Some(3), b"no\n".as_slice()));
        let died = run("kill -9 $$", folder.path()).expect("runs");
        assert_eq!(died.status.signal(), Some(9));
    }

    #[test]
    fn signals_of_the_build_reach_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let traced =
            run("trap 'echo caught' USR1; kill -USR1 $$; sleep 0; exit 0", folder.path()).expect("runs");
        assert_eq!(traced.stdout, b"caught\n");
    }
}
