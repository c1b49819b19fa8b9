//! The child's side of a start. It prepares itself, reports to its parent what that cost, waits for the release, and
//! becomes the measured program. Not for users: it lets the parent attach counters before the first instruction and
//! subtract the usage before the start.

use crate::effects;
use crate::effects::Scope;
use crate::error::{Doing, Error, Result, in_full};
use crate::process::cpus::keep_on;
use crate::process::placed::Placed;
use nix::sys::personality::{self, Persona};
use nix::sys::resource::{UsageWho, getrusage};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::convert::Infallible;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// The word that lets the program run.
pub(crate) const ALONE: u8 = b'\n';
/// The word that lets the program run under the tracer that the parent has attached.
pub(crate) const OBSERVED: u8 = b'o';
/// The same, with the bytes that a client sends.
pub(crate) const OBSERVED_WITH_CLIENT: u8 = b'c';

/// A program to become.
pub struct Launch {
    /// CPUs that the program may run on; empty for all.
    pub cpus: Vec<usize>,
    /// The program's parts lie at the same addresses in every run, where the system allows that.
    pub fixed_addresses: bool,
    /// The program's standard input.
    pub stdin: PathBuf,
    /// A copy of a folder that the program is to find at the original's path, and to start in.
    pub placed: Option<Placed>,
    /// Variables added to the program's environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// The first of the arguments that the program sees, where that is another name.
    pub called: Option<OsString>,
}

/// Ends only by failing: success replaces the process.
pub fn run(launch: &Launch) -> Result<Infallible> {
    let control = std::io::stdin().as_fd().try_clone_to_owned().doing("the control socket")?;
    let mut control = UnixStream::from(control);
    let Err(error) = become_program(launch, &mut control);
    // The parent may be gone; then nobody needs the message.
    let _ = control.write_all(in_full(&error).as_bytes());
    Err(error)
}

fn become_program(launch: &Launch, control: &mut UnixStream) -> Result<Infallible> {
    set_parent_process_death_signal(Some(Signal::KILL)).doing("asking to end with the parent")?;
    if !launch.cpus.is_empty() {
        let cpus = launch.cpus.iter().filter_map(|cpu| u32::try_from(*cpu).ok());
        keep_on(None, cpus).doing("placing the program on its CPUs")?;
    }
    if launch.fixed_addresses {
        // Some containers forbid it: then addresses differ from run to run, as they do without.
        let _ = personality::get().and_then(|now| personality::set(now | Persona::ADDR_NO_RANDOMIZE));
    }
    if let Some(placed) = &launch.placed {
        placed.enter()?;
    }
    let stdin = File::open(&launch.stdin)
        .doing_with(|| format!("opening {} as standard input", launch.stdin.display()))?;
    rustix::stdio::dup2_stdin(&stdin).doing("replacing standard input")?;
    let [program, arguments @ ..] = launch.command.as_slice() else {
        return Err(Error::Start("there is no program to run".into()));
    };
    let mut command = Command::new(program);
    command.arg0(launch.called.as_ref().unwrap_or(program));
    command.args(arguments).envs(launch.environment.iter().cloned());
    control.write_all(own_usage()?.as_bytes()).doing("reporting to the parent")?;
    let mut word = [0u8; 1];
    control.read_exact(&mut word).doing("waiting for the parent's word")?;
    match word {
        [OBSERVED] => effects::install(Scope::Effects)?,
        [OBSERVED_WITH_CLIENT] => effects::install(Scope::WithClient)?,
        _ => {}
    }
    let error = command.exec();
    Err(error).doing_with(|| format!("cannot run {}", program.to_string_lossy()))
}

/// This process's number and usage so far, as one line of numbers. The usage is user and system microseconds, minor and
/// major faults, voluntary and involuntary switches, and peak memory in KiB.
fn own_usage() -> Result<String> {
    let usage = getrusage(UsageWho::RUSAGE_SELF).doing("getrusage")?;
    let microseconds =
        |time: nix::sys::time::TimeVal| i128::from(time.tv_sec()) * 1_000_000 + i128::from(time.tv_usec());
    Ok(format!(
        "{} {} {} {} {} {} {} {}\n",
        std::process::id(),
        microseconds(usage.user_time()),
        microseconds(usage.system_time()),
        usage.minor_page_faults(),
        usage.major_page_faults(),
        usage.voluntary_context_switches(),
        usage.involuntary_context_switches(),
        usage.max_rss(),
    ))
}
