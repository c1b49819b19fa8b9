//! Finding the emulator and running it.

use super::request::Output;
use crate::interrupt::Interrupts;
use anyhow::{Context, Result, bail};
use lineup_model::abi::Machine;
use lineup_recording::ProgramExit;
use rustix::process::{Pid, Signal};
use std::ffi::{OsStr, OsString};
use std::os::fd::AsFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The file name of the recorder.
const PLUGIN: &str = "liblineup_plugin.so";

/// An emulator with the recorder.
pub(super) struct Emulator {
    command: PathBuf,
    plugin: PathBuf,
    /// Where libraries for the program's machine are, when it is not this machine's.
    sysroot: Option<&'static str>,
    /// How it names itself.
    pub version: String,
}

/// A program that ran.
pub(super) struct Ran {
    /// How it ended.
    pub(super) exit: ProgramExit,
}

impl Emulator {
    /// The emulator for programs of a machine.
    pub(super) fn find(machine: Machine) -> Result<Emulator> {
        let (name, sysroot) = emulator_of(machine);
        let command = on_path(name)
            .with_context(|| format!("{name} is not installed; on Debian: apt install qemu-user"))?;
        let version = crate::tool::output(Command::new(&command).arg("--version")).context(name)?;
        let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_owned();
        let sysroot = sysroot.filter(|root| Path::new(root).is_dir());
        Ok(Emulator { command, plugin: plugin()?, sysroot, version })
    }

    /// Runs a program to its end with the recorder under a plan.
    pub(super) fn run(&self, run: &Run<'_>, interrupts: &Interrupts) -> Result<Ran> {
        let mut command = Command::new(&self.command);
        let plugin = argument_of(&self.plugin, run.plan)?;
        command.arg("-plugin").arg(plugin);
        if let Some(root) = self.sysroot {
            command.args(["-L", root]);
        }
        command.arg(run.program).args(run.arguments).envs(run.environment.iter().cloned());
        if let Some(directory) = run.directory {
            command.current_dir(directory);
        }
        match run.shown {
            Output::Hidden => {
                command.stdout(Stdio::null()).stderr(Stdio::null());
            }
            Output::Shown => {}
            Output::OnStandardError => {
                let ours = std::io::stderr().as_fd().try_clone_to_owned();
                command.stdout(ours.context("duplicating standard error")?);
            }
        }
        if !run.reads_input {
            command.stdin(Stdio::null());
        }
        interrupts.check()?;
        // Its own group, so that a signal reaches whatever the program starts as well.
        let mut child = command.process_group(0).spawn().context("starting the emulator")?;
        let group = Pid::from_child(&child);
        interrupts.entrust(group);
        let status = child.wait().context("waiting for the emulator");
        interrupts.release(group);
        let status = status?;
        interrupts.check()?;
        let exit = match (status.code(), status.signal()) {
            (Some(code), _) => ProgramExit::Exited(code),
            (None, signal) => ProgramExit::Signaled(signal.unwrap_or(Signal::KILL.as_raw())),
        };
        Ok(Ran { exit })
    }
}

/// One run of a program.
pub(super) struct Run<'a> {
    /// The recorder's plan.
    pub(super) plan: &'a Path,
    /// The program's file.
    pub(super) program: &'a Path,
    /// Its arguments.
    pub(super) arguments: &'a [OsString],
    /// Its working directory.
    pub(super) directory: Option<&'a Path>,
    /// Variables added to its environment.
    pub(super) environment: &'a [(OsString, OsString)],
    /// What becomes of its output.
    pub(super) shown: Output,
    /// Whether it reads our standard input.
    pub(super) reads_input: bool,
}

/// The emulator's name for a machine, and where Debian's cross compilers put its libraries.
fn emulator_of(machine: Machine) -> (&'static str, Option<&'static str>) {
    match machine {
        Machine::X86_64 => {
            ("qemu-x86_64", (!cfg!(target_arch = "x86_64")).then_some("/usr/x86_64-linux-gnu"))
        }
        Machine::AArch64 => {
            ("qemu-aarch64", (!cfg!(target_arch = "aarch64")).then_some("/usr/aarch64-linux-gnu"))
        }
        Machine::Arm => ("qemu-arm", Some("/usr/arm-linux-gnueabihf")),
        Machine::I386 => ("qemu-i386", Some("/usr/i686-linux-gnu")),
    }
}

/// The command that runs a program outside recordings: the program itself on its own machine, else under the
/// emulator.
pub fn native_or_emulated(machine: Machine, program: OsString, arguments: &[OsString]) -> Vec<OsString> {
    let mut command = Vec::new();
    if !is_native(machine) {
        let (name, sysroot) = emulator_of(machine);
        command.push(name.into());
        command.extend(sysroot.into_iter().flat_map(|root| ["-L".into(), root.into()]));
    }
    command.push(program);
    command.extend(arguments.iter().cloned());
    command
}

/// True when this machine runs programs of that machine itself.
pub fn is_native(machine: Machine) -> bool {
    match machine {
        Machine::X86_64 => cfg!(target_arch = "x86_64"),
        Machine::AArch64 => cfg!(target_arch = "aarch64"),
        Machine::Arm | Machine::I386 => false,
    }
}

/// A program in one of the folders of `PATH`.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// The recorder: named by `LINEUP_PLUGIN`, else beside this executable, where cargo puts both, else where packages
/// put libraries.
fn plugin() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("LINEUP_PLUGIN") {
        let path = PathBuf::from(path);
        return path.canonicalize().with_context(|| format!("LINEUP_PLUGIN names {}", path.display()));
    }
    let own = std::env::current_exe().context("finding this executable")?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places =
        [folder.join(PLUGIN), folder.join("..").join(PLUGIN), folder.join("../lib/lineup").join(PLUGIN)];
    let Some(found) = places.iter().find(|place| place.is_file()) else {
        bail!(
            "the recorder {PLUGIN} is not beside {}; build it with `cargo build -p lineup-plugin`, or name it with LINEUP_PLUGIN",
            own.display()
        );
    };
    found.canonicalize().with_context(|| found.display().to_string())
}

/// The emulator's argument that loads the recorder with a plan.
pub fn plugin_argument(plan: &Path) -> Result<String> {
    argument_of(&plugin()?, plan)
}

fn argument_of(plugin: &Path, plan: &Path) -> Result<String> {
    Ok(format!("{},plan={}", argument(plugin)?, argument(plan)?))
}

/// A path as part of a plugin argument, where commas separate.
fn argument(path: &Path) -> Result<&str> {
    let text = path.to_str().filter(|text| !text.contains(','));
    text.with_context(|| {
        format!("the emulator takes no comma or odd byte in the path {}", OsStr::new(path).display())
    })
}
