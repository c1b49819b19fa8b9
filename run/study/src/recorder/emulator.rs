//! Finding the emulator and running it.

use crate::error::{Doing, Error, Result};
use crate::process::alias::Alias;
use crate::process::run::Run;
use crate::process::tool;
use lineup_bundle::Library;
use lineup_kernel::machine::emulator_version;
use lineup_model::abi::Machine;
use lineup_recording::plan::Follow;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The plugin interface's version that the recorder must request from these emulator versions on, as an argument. With
/// older emulators the recorder detects the version by itself; it cannot tell these apart.
const ASKED_SINCE: [((u32, u32), &str); 2] = [((11, 1), ",interface=7"), ((11, 0), ",interface=6")];

/// The argument for an emulator with this version.
fn interface_of(emulator: (u32, u32)) -> &'static str {
    ASKED_SINCE.iter().find(|(since, _)| emulator >= *since).map_or("", |(_, asked)| asked)
}

/// An emulator with the recorder.
pub(super) struct Emulator {
    command: PathBuf,
    plugin: Alias,
    interface: &'static str,
    /// The folder of libraries for the program's machine, when it is not this machine's.
    sysroot: Option<&'static str>,
    /// Its version text.
    pub version: String,
}

impl Emulator {
    /// The emulator for programs of a machine.
    pub(super) fn find(machine: Machine) -> Result<Emulator> {
        let name = machine.description().program_emulator;
        if machine.description().code.is_none() {
            return Err(Error::Start(format!(
                "programs for {machine} are not recorded: Lineup reads their types, not their instructions; `lineup \
                 layout` shows the types"
            )));
        }
        let command = on_path(name).ok_or_else(|| Error::not_installed(name, "qemu-user"))?;
        let version = tool::output(Command::new(&command).arg("--version")).doing(name)?;
        let version = String::from_utf8_lossy(&version.stdout).lines().next().unwrap_or_default().to_owned();
        require_plugins(&command, machine)?;
        let sysroot = sysroot_of(machine).filter(|root| Path::new(root).is_dir());
        let interface = emulator_version(&version).map_or("", interface_of);
        let plugin = Alias::of(&library(Library::Plugin)?)?;
        Ok(Emulator { command, plugin, interface, sysroot, version })
    }

    /// The emulator's file.
    pub(super) fn path(&self) -> &Path {
        &self.command
    }

    /// The argument that loads the recorder for an audit.
    pub(super) fn audit_argument(&self, table: &str) -> String {
        format!("{}{},audit={table}", self.plugin.text(), self.interface)
    }

    /// The run of a program with the recorder under a plan: the same run, with the emulator in front of the command.
    pub(super) fn with_recorder(&self, run: &Run, command: &[OsString], plan: &str) -> Run {
        let mut all: Vec<OsString> = vec![self.command.clone().into(), "-plugin".into()];
        all.push(argument_of(&self.plugin, self.interface, plan).into());
        all.extend(self.options().map(OsString::from));
        // A script's interpreter is called by the path that the script names, another program as the user typed it.
        let is_script = command.len() > run.command.len();
        all.extend(run.called.iter().filter(|_| !is_script).flat_map(|name| ["-0".into(), name.clone()]));
        all.extend(if is_script { command } else { &run.command }.iter().cloned());
        Run { command: all, called: None, ..run.clone() }
    }

    /// The command by which a program that replaces the recorded one is started; `None` when the emulator's path is not
    /// text.
    pub(super) fn follow(&self) -> Option<Follow> {
        Some(Follow {
            emulator: self.command.to_str()?.to_owned(),
            recorder: format!("{}{}", self.plugin.text(), self.interface),
            options: self.options().map(str::to_owned).collect(),
        })
    }

    fn options(&self) -> impl Iterator<Item = &'static str> {
        self.sysroot.into_iter().flat_map(|root| ["-L", root])
    }
}

/// The version text of the emulator for a machine's programs, if it can make recordings.
///
/// # Errors
/// When there is none, or it takes no plugins.
pub fn program_emulator(machine: Machine) -> Result<String> {
    Ok(Emulator::find(machine)?.version)
}

/// Refuses an emulator that was built without plugins, as those for programs of Debian 13 and of later Ubuntu are.
///
/// # Errors
/// When it was, or cannot be run.
pub fn require_plugins(command: &Path, machine: Machine) -> Result<()> {
    let name = command.file_name().unwrap_or_default().to_string_lossy();
    let name = name.as_ref();
    let help = tool::output(Command::new(command).arg("--help")).doing(name)?;
    if String::from_utf8_lossy(&help.stdout).lines().any(|line| line.starts_with("-plugin")) {
        return Ok(());
    }
    let of_systems = name.strip_prefix("qemu-system-").map(|target| format!("{target}-softmmu"));
    let is_of_programs = of_systems.is_none();
    let target = of_systems.unwrap_or_else(|| format!("{}-linux-user", name.trim_start_matches("qemu-")));
    let build = format!(
        "build one from QEMU's sources with `./configure --enable-plugins --target-list={target}`, and put it first in PATH"
    );
    let next = match machine.is_host() && is_of_programs {
        true => format!("the native engine needs none; for what only the emulator records, {build}"),
        false => build,
    };
    Err(Error::Tool { tool: name.to_owned(), what: "was built without plugins".into(), next })
}

/// The folder of libraries for a machine's programs; `None` for this machine's.
fn sysroot_of(machine: Machine) -> Option<&'static str> {
    (!machine.is_host()).then_some(machine.description().sysroot)
}

/// The run of a program outside recordings: directly on its own machine, else under the emulator.
pub fn native_or_emulated(machine: Machine, run: Run) -> Run {
    let Some(root) = sysroot_of(machine) else { return run };
    let emulator = machine.description().program_emulator;
    let emulator = [emulator, "-L", root].map(OsString::from);
    Run { command: emulator.into_iter().chain(run.command).collect(), called: None, ..run }
}

/// A program in one of the folders of `PATH`.
pub fn on_path(name: impl AsRef<Path>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(&name)).find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

/// The file that a command's first word names, as a shell finds it: a word without a slash in the folders of `PATH`.
///
/// # Errors
/// When no folder of `PATH` has it.
pub fn executable(word: &OsStr) -> Result<PathBuf> {
    if word.as_bytes().contains(&b'/') {
        return Ok(word.into());
    }
    on_path(word).ok_or_else(|| {
        let (name, here) = (word.display(), Path::new(word));
        let why = match (here.is_dir(), here.is_file()) {
            (true, _) => "it is a folder; name a program behind --".to_owned(),
            (_, true) => format!("it is in no folder of PATH; for the one in this folder write ./{name}"),
            _ => "it is in no folder of PATH".to_owned(),
        };
        Error::argument(name.to_string(), why)
    })
}

/// A library of Lineup: named by a variable, else next to this executable, where cargo puts it, or where packages put
/// libraries, else unpacked from this executable.
pub(crate) fn library(library: Library) -> Result<PathBuf> {
    let variable = match library {
        Library::Engine => "LINEUP_ENGINE_FILE",
        Library::Plugin => "LINEUP_PLUGIN",
        Library::Heap => "LINEUP_HEAP_FILE",
    };
    let (file, package) = (library.file_name(), library.package());
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        return path.canonicalize().doing_with(|| format!("{variable} names {}", path.display()));
    }
    let own = std::env::current_exe().doing("finding this executable")?;
    let folder = own.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(file), folder.join("..").join(file), folder.join("../lib/lineup").join(file)];
    if let Some(found) = places.iter().find(|place| place.is_file()) {
        return found.canonicalize().doing_with(|| found.display().to_string());
    }
    library.unpacked().doing("unpacking what is brought into programs")?.ok_or_else(|| Error::Tool {
        tool: format!("the library {file}"),
        what: format!("is not next to {}", own.display()),
        next: format!("build it with `cargo build -p {package}`, or name it with {variable}"),
    })
}

/// Checks that there is a recorder for emulators.
///
/// # Errors
/// When there is none.
pub fn require_recorder() -> Result<()> {
    library(Library::Plugin).map(drop)
}

/// The emulator's argument that loads the recorder with a plan.
pub struct PluginArgument {
    /// The argument.
    pub text: String,
    _plugin: Alias,
}

/// The argument that loads the recorder with a plan, whose name holds no comma, into an emulator of this version.
///
/// # Errors
/// When there is no recorder.
pub fn plugin_argument(plan: &str, emulator: (u32, u32)) -> Result<PluginArgument> {
    let plugin = Alias::of(&library(Library::Plugin)?)?;
    Ok(PluginArgument { text: argument_of(&plugin, interface_of(emulator), plan), _plugin: plugin })
}

fn argument_of(plugin: &Alias, interface: &str, plan: &str) -> String {
    format!("{}{interface},plan={plan}", plugin.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_asked_of_emulators_that_do_not_tell_which_they_want() {
        let asked = [(7, 2), (10, 2), (11, 0), (11, 1), (12, 0)].map(interface_of);
        assert_eq!(asked, ["", "", ",interface=6", ",interface=7", ",interface=7"]);
    }
}
