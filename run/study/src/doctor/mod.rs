//! Checks of what works on this machine, and hints on what to install for the rest. Recorders and counters are tried
//! out.

mod packages;

use crate::error::Error;
use crate::guest::emulator::find_emulator;
use crate::perf::counters;
use crate::perf::events::{DEVICES, MemorySampling, memory_sampling};
use crate::process::tool;
use crate::progress::Progress;
use crate::recorder;
use crate::trials::bolt::Bolt;
use lineup_model::machine::{Board, Machine};
use lineup_prove::metric::Absence;
pub use packages::System;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Something that works here or does not.
pub struct Check {
    /// As `--require` takes it.
    pub name: String,
    /// Its purpose.
    pub purpose: &'static str,
    /// Its state.
    pub state: State,
}

/// The state of a checked item.
pub enum State {
    /// It works; with the tool or version that provides it.
    Works(String),
    /// It does not work; the reason, and the remedy.
    Lacks(String, String),
    /// It does not, and nothing that can be installed changes that.
    Cannot(String),
}

impl State {
    /// True when it works.
    pub fn works(&self) -> bool {
        matches!(self, State::Works(_))
    }

    /// The state, and the remedy.
    pub fn words(&self) -> (&str, Option<&str>) {
        match self {
            State::Works(what) | State::Cannot(what) => (what, None),
            State::Lacks(what, next) => (what, Some(next)),
        }
    }

    /// The state of a tool that was found or not, with the package to install.
    fn of(found: Result<String, Error>, install: String) -> State {
        match found {
            Ok(what) => State::Works(what),
            Err(error) => {
                let is_missing = error.is_not_installed();
                match error {
                    Error::Tool { tool, what, next } => {
                        State::Lacks(format!("{tool} {what}"), if is_missing { install } else { next })
                    }
                    other => State::Cannot(other.to_string()),
                }
            }
        }
    }
}

/// Every check, in the order in which users need them.
pub fn checks(system: &System, progress: &dyn Progress) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut add = |name: &str, purpose, state| {
        checks.push(Check { name: name.to_owned(), purpose, state });
    };
    progress.stage("trying the native engine");
    add("native engine", "recording programs of this machine at their own speed", native());
    add("attaching", "recording a process that runs (--pid)", attaching());
    progress.stage("trying emulators of programs");
    for machine in Machine::ALL.into_iter().filter(|machine| machine.description().code.is_some()) {
        let name = format!("{machine} programs, emulated");
        add(
            &name,
            "recording programs of other machines, and a second opinion on this one's",
            emulated(machine, system),
        );
    }
    progress.stage("looking for emulators of machines");
    for (machine, board) in Machine::ALL.into_iter().filter_map(|one| Some((one, one.description().board?))) {
        let name = format!("{machine} kernels");
        add(&name, "recording whole kernels", kernels(machine, board, system));
    }
    progress.stage("trying counters");
    add("hardware counters", "cycles, misses and the like in `measure` and `compare`", counted("cycles"));
    add("software counters", "page faults and the like in `measure` and `compare`", counted("page-faults"));
    add("memory sampling", "evidence from hardware: which addresses loads waited for", sampling());
    progress.stage("looking for compilers and tools");
    add(
        "compiler",
        "`study`: building the program with its patch",
        named("cc", system.install("gcc make", "gcc make")),
    );
    add("libclang", "reading sources: what may move", libclang(system));
    let bolt = Bolt::find(None).map(|bolt| bolt.version().to_owned());
    add(
        "llvm-bolt",
        "`study --code`: the order of code",
        State::of(bolt, system.install("bolt-19", "llvm-bolt")),
    );
    add("types of this kernel", "`layout` of the running kernel's types", kernel_types());
    checks
}

fn libclang(system: &System) -> State {
    match crate::source::installed_libclang() {
        Ok(found) => match found.missing_headers {
            None => State::Works(format!("{}, {}", found.version, found.file.display())),
            Some(package) => State::Lacks(
                format!(
                    "{} has no headers of its own: units that include intrinsics cannot be read",
                    found.version
                ),
                system.install(&package, "clang-libs"),
            ),
        },
        Err(_) => State::Lacks(
            "libclang is not installed".to_owned(),
            system.install("libclang1-19 libclang-common-19-dev", "clang-libs"),
        ),
    }
}

/// The first line that a program prints.
fn version(program: impl AsRef<Path>) -> Option<String> {
    let output = tool::output(Command::new(program.as_ref()).arg("--version")).ok()?;
    Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
}

fn named(name: &str, install: String) -> State {
    match recorder::on_path(name).and_then(version) {
        Some(what) => State::Works(what),
        None => State::Lacks(format!("{name} is not installed"), install),
    }
}

/// Records a program that does nothing, with one engine; the error's last line when that fails.
fn records(engine: &str) -> Result<(), String> {
    let trial = || -> std::io::Result<std::process::Output> {
        let folder = tempfile::tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["record", "--whole-program", "--engine", engine, "--out"])
            .arg(folder.path().join("trial.rec"));
        tool::output(command.args(["--", "true"]))
    };
    let output = trial().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let last = said.lines().last().unwrap_or_default();
    Err(last.strip_prefix("lineup: ").unwrap_or(last).to_owned())
}

fn native() -> State {
    match records("native") {
        Ok(()) => State::Works("counted a program from its first instruction to its last".to_owned()),
        Err(why) if cfg!(target_arch = "x86_64") => State::Cannot(why),
        Err(_) => State::Cannot("this machine is no x86-64".to_owned()),
    }
}

fn attaching() -> State {
    const SCOPE: &str = "/proc/sys/kernel/yama/ptrace_scope";
    let scope = fs::read_to_string(SCOPE).unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    match scope.trim() {
        "" | "0" => State::Works("processes of the same user".to_owned()),
        "3" => State::Cannot(format!("{SCOPE} is 3: no process may be traced until the next boot")),
        _ if is_root => State::Works("processes of every user".to_owned()),
        set => State::Lacks(
            format!("{SCOPE} is {set}: only the superuser may trace"),
            "run `lineup` with sudo, or: sysctl kernel.yama.ptrace_scope=0".to_owned(),
        ),
    }
}

fn emulated(machine: Machine, system: &System) -> State {
    let found = recorder::program_emulator(machine);
    let state = State::of(found, system.install("qemu-user", "qemu-user"));
    match state {
        State::Works(what) if machine.is_host() => match records("qemu") {
            Ok(()) => State::Works(format!("{what}; counted a program with it")),
            Err(why) => State::Cannot(why),
        },
        other => other,
    }
}

fn kernels(machine: Machine, board: &Board, system: &System) -> State {
    let install = system.install(board.package, board.fedora_package);
    let found = find_emulator(machine).and_then(|emulator| {
        recorder::require_plugins(&emulator.command, machine)?;
        Ok(emulator.name)
    });
    State::of(found, install)
}

fn counted(event: &str) -> State {
    match counters::works(event) {
        Ok(()) => State::Works(format!("a counter of {event} was opened")),
        Err(Absence::NotPermitted) => State::Lacks(
            "the kernel does not permit it".to_owned(),
            "sysctl kernel.perf_event_paranoid=1, or run `lineup` with sudo".to_owned(),
        ),
        Err(absence) => State::Cannot(format!("the machine does not count {event}: {}", absence.words())),
    }
}

/// The processor's memory sampling, as the kernel reports it: Intel's PEBS, AMD's IBS, Arm's SPE.
fn sampling() -> State {
    let what = match memory_sampling(Path::new(DEVICES)) {
        Some(MemorySampling::Pebs) => "loads and stores with their addresses (PEBS)",
        Some(MemorySampling::Ibs) => "instructions with the addresses that they access (IBS)",
        Some(MemorySampling::Spe) => "instructions with the addresses that they access (SPE)",
        None => {
            return State::Cannot(format!(
                "the kernel names no such event below {DEVICES}: usual in virtual machines"
            ));
        }
    };
    State::Works(what.to_owned())
}

fn kernel_types() -> State {
    const TYPES: &str = "/sys/kernel/btf/vmlinux";
    match fs::metadata(TYPES) {
        Ok(about) => State::Works(format!("{TYPES}, {} KB", about.len() / 1024)),
        Err(_) => {
            State::Cannot(format!("the kernel has no {TYPES}: it was built without CONFIG_DEBUG_INFO_BTF"))
        }
    }
}
