//! Finding the emulator and running it.

use crate::alias::Alias;
use crate::run::Run;
use anyhow::{Context, Result, bail};
use lineup_model::abi::Machine;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

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

    /// The run of a program with the recorder under a plan: the same run, with the emulator in front.
    pub(super) fn with_recorder(&self, run: &Run, plan: &str) -> Result<Recorded> {
        let plugin = Alias::of(&self.plugin)?;
        let mut command: Vec<OsString> = vec![self.command.clone().into(), "-plugin".into()];
        command.push(argument_of(&plugin, plan).into());
        if let Some(root) = self.sysroot {
            command.extend(["-L".into(), root.into()]);
        }
        command.extend(run.command.iter().cloned());
        Ok(Recorded { run: Run { command, ..run.clone() }, _plugin: plugin })
    }
}

/// A run under the emulator with the recorder in it.
pub(super) struct Recorded {
    pub(super) run: Run,
    /// The recorder's name is good while this lives.
    _plugin: Alias,
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
pub struct PluginArgument {
    /// The argument.
    pub text: String,
    _plugin: Alias,
}

/// The argument that loads the recorder with a plan, whose name holds no comma.
///
/// # Errors
/// When there is no recorder.
pub fn plugin_argument(plan: &str) -> Result<PluginArgument> {
    let plugin = Alias::of(&plugin()?)?;
    Ok(PluginArgument { text: argument_of(&plugin, plan), _plugin: plugin })
}

fn argument_of(plugin: &Alias, plan: &str) -> String {
    format!("{},plan={plan}", plugin.text())
}
